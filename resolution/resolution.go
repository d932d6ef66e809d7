package resolution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// ErrUnverified: a stored resolution, or the citation of one, does not hold. It
// is neither a decision nor the absence of one: a person has to look.
var ErrUnverified = errors.New("resolution not verified")

// Ref cites a stored resolution: by its key, and by the digest of its exact
// bytes.
type Ref struct {
	Key    string
	SHA256 string // hex
}

// Resolution is a verified decision of an operator. It comes only from [Read]
// or from [Publish]; the zero value decides nothing, and every accessor of it is
// empty.
type Resolution struct {
	ref Ref
	rec Record
}

// Ref cites the record that was verified.
func (r Resolution) Ref() Ref { return r.ref }

// Host is the host whose operation is stuck.
func (r Resolution) Host() string { return r.rec.Host }

// Op is the operation that is stuck.
func (r Resolution) Op() string { return r.rec.Op }

// N is the number of the decision within its operation, from 1.
func (r Resolution) N() int { return r.rec.N }

// Gen is the gen of the claim that the operator saw.
func (r Resolution) Gen() uint64 { return r.rec.Gen }

// Box is the reference of the box that shall go on.
func (r Resolution) Box() string { return r.rec.Box }

// Enrollment is the enrollment of the box that shall go on.
func (r Resolution) Enrollment() string { return r.rec.Enrollment }

// AcceptEmpty reports whether the operator accepts that nothing of the host's
// data is left.
func (r Resolution) AcceptEmpty() bool { return r.rec.AcceptEmpty }

// DecidedAt is when the operator decided, by the clock of the console.
func (r Resolution) DecidedAt() time.Time { return r.rec.DecidedAt }

// Publish stores what an operator decided, as version 1 whatever rec.V says, and
// returns it. The same decision again is success. It costs one PUT, and one GET
// more where the number was taken or the outcome was unknown.
//
// Errors: [ErrInvalid] where nothing was written; [objstore.ErrConflict] where
// the number holds another decision, so that the caller looks at it before it
// takes the next; [objstore.ErrUnknown], after which the same is tried again.
func Publish(ctx context.Context, store objstore.Store, rec Record) (Resolution, error) {
	res, err := publish(ctx, store, rec)
	if err != nil {
		return Resolution{}, fmt.Errorf("resolution: publish %d of %q: %w", rec.N, rec.Op, err)
	}
	return res, nil
}

func publish(ctx context.Context, store objstore.Store, rec Record) (Resolution, error) {
	rec.V = version
	if err := rec.check(); err != nil {
		return Resolution{}, err
	}
	body, err := record.Encode(rec)
	if err != nil {
		return Resolution{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	// What is returned is what the bytes say, and what nobody could read back
	// is not written.
	if rec, err = record.Decode[Record](body); err != nil {
		return Resolution{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	ref := Ref{Key: Key(rec.Op, rec.N), SHA256: record.Digest(body)}
	if _, err := objstore.Create(ctx, store, ref.Key, body); err != nil {
		return Resolution{}, err
	}
	return Resolution{ref: ref, rec: rec}, nil
}

// Read returns the resolution that ref cites: exactly these bytes, at the key
// that they name. It costs one GET. Errors: [ErrUnverified], or a failure of
// the store, which for a citation of nothing is [objstore.ErrNotFound].
func Read(ctx context.Context, store objstore.Store, ref Ref) (Resolution, error) {
	res, err := read(ctx, store, ref)
	if err != nil {
		return Resolution{}, fmt.Errorf("resolution: read %q: %w", ref.Key, err)
	}
	return res, nil
}

func read(ctx context.Context, store objstore.Store, ref Ref) (Resolution, error) {
	if !strings.HasPrefix(ref.Key, prefix) {
		return Resolution{}, fmt.Errorf("%w: a resolution's key starts with %q", ErrUnverified, prefix)
	}
	obj, err := store.Get(ctx, ref.Key)
	if err != nil {
		return Resolution{}, err
	}
	if got := record.Digest(obj.Body); got != ref.SHA256 {
		return Resolution{}, fmt.Errorf("%w: digest %q, cited is %q", ErrUnverified, got, ref.SHA256)
	}
	rec, err := record.Decode[Record](obj.Body)
	if err != nil {
		return Resolution{}, fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	if err := rec.check(); err != nil {
		return Resolution{}, fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	if own := Key(rec.Op, rec.N); own != ref.Key {
		return Resolution{}, fmt.Errorf("%w: it names the key %q", ErrUnverified, own)
	}
	return Resolution{ref: ref, rec: rec}, nil
}
