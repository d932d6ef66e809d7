package roster

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// Create writes the first roster of a deployment, signed by private. Of r the
// bucket, the regions and whoever is enrolled already count; version, revision,
// gen and write are set here. Errors: [ErrInvalid], [objstore.ErrConflict]
// where the deployment has a roster, [objstore.ErrUnknown].
func Create(ctx context.Context, store objstore.Store, private ed25519.PrivateKey, r Roster) (Snapshot, error) {
	if len(private) != ed25519.PrivateKeySize {
		return Snapshot{}, errors.New("roster: create: no private key")
	}
	r.V, r.Revision, r.Gen, r.Write = version, 1, 1, record.Nonce()
	dir := Open(store, private.Public().(ed25519.PublicKey), r.DeploymentBucket)
	snap, err := put(ctx, store, private, dir, r, objstore.IfAbsent())
	if err != nil {
		return Snapshot{}, fmt.Errorf("roster: create: %w", err)
	}
	return snap, nil
}

// Update reads the roster through dir, lets change edit a copy, and writes it
// in one conditional write, signed by private. What change returns is returned,
// and then nothing was written. Version, revision, gen, write and bucket are
// not change's to set. A change that edits nothing still writes, under the same
// revision and the next gen, and so kills every older write in flight.
//
// Update tries once. Errors: those of [Directory.Read], [ErrInvalid] for a
// change that breaks a rule, [objstore.ErrConflict] where another writer was
// first, [objstore.ErrUnknown] and [objstore.ErrSuperseded].
//
// store is where dir reads: a process that only reads needs neither it nor the
// private key.
func Update(ctx context.Context, store objstore.Store, private ed25519.PrivateKey, dir *Directory,
	change func(*Roster) error) (Snapshot, error) {
	snap, err := update(ctx, store, private, dir, change)
	if err != nil {
		return Snapshot{}, fmt.Errorf("roster: update: %w", err)
	}
	return snap, nil
}

func update(ctx context.Context, store objstore.Store, private ed25519.PrivateKey, dir *Directory,
	change func(*Roster) error) (Snapshot, error) {
	if len(private) != ed25519.PrivateKeySize || !dir.key.Equal(private.Public()) {
		return Snapshot{}, errors.New("the private key is not the one that this deployment trusts")
	}
	old, err := dir.read(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	next := old.Roster
	next.Regions, next.Boxes, next.Consoles = edit(old.Regions), edit(old.Boxes), edit(old.Consoles)
	if err := change(&next); err != nil {
		return Snapshot{}, err
	}
	if err := advance(old.Roster, &next); err != nil {
		return Snapshot{}, err
	}
	return put(ctx, store, private, dir, next, objstore.IfMatch(old.ETag))
}

// edit returns a copy of m that can be written to.
func edit[V any](m map[string]V) map[string]V {
	c := make(map[string]V, len(m)+1)
	maps.Copy(c, m)
	return c
}

// advance makes next the legal successor of old.
func advance(old Roster, next *Roster) error {
	next.V, next.DeploymentBucket = old.V, old.DeploymentBucket
	next.Revision, next.Gen, next.Write = old.Revision, old.Gen, old.Write
	if err := checkStep(old, *next); err != nil {
		return err
	}
	was, err := record.Encode(old)
	if err != nil {
		return err
	}
	is, err := record.Encode(*next)
	if err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		next.Revision++
	}
	next.Gen, next.Write = old.Gen+1, record.Nonce()
	return nil
}

// put writes r and returns it as dir accepts it.
func put(ctx context.Context, store objstore.Store, private ed25519.PrivateKey, dir *Directory,
	r Roster, cond objstore.Condition) (Snapshot, error) {
	body, err := seal(r, private)
	if err != nil {
		return Snapshot{}, err
	}
	if r.ProtocolFloor > Protocol {
		return Snapshot{}, fmt.Errorf("%w: protocol_floor %d is above %d, which this build speaks",
			ErrInvalid, r.ProtocolFloor, Protocol)
	}
	info, err := objstore.PutSettled(ctx, store, Key, body, cond)
	if err != nil {
		return Snapshot{}, err
	}
	return dir.accept(objstore.Object{Info: info, Body: body}, mark{})
}
