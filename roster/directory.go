package roster

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// ErrUntrusted: the stored object is not a roster that this process may
// believe. Everything that needs the roster is refused until a person acts.
var ErrUntrusted = errors.New("roster not trusted")

// ErrOutdated: the roster's protocol_floor is above [Protocol]. This build must
// not act and has to be replaced by a newer one.
var ErrOutdated = errors.New("this build is older than the deployment allows")

// Snapshot is the roster as one read saw it.
type Snapshot struct {
	Roster
	SHA256 string // digest of the stored bytes
	ETag   string // what [Update] is conditional on
}

// Directory is the only reader of the roster. It is safe for concurrent use.
type Directory struct {
	store  objstore.Store
	key    ed25519.PublicKey
	bucket string

	mu   sync.Mutex
	seen mark
}

// mark is the age of a roster.
type mark struct {
	revision, gen uint64
	sha256        string
}

// Open returns a directory that believes only rosters that key signed for the
// control store named bucket. It reads nothing yet. Without a key or a name
// every read is refused.
func Open(store objstore.Store, key ed25519.PublicKey, bucket string) *Directory {
	return &Directory{store: store, key: key, bucket: bucket}
}

// Read returns the roster as it is now. It costs one GET. Errors:
// [ErrUntrusted], [ErrOutdated], [objstore.ErrNotFound] where a deployment has
// no roster yet, or a failure of the store.
func (d *Directory) Read(ctx context.Context) (Snapshot, error) {
	snap, err := d.read(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("roster: %w", err)
	}
	return snap, nil
}

func (d *Directory) read(ctx context.Context) (Snapshot, error) {
	floor := d.newest()
	obj, err := d.store.Get(ctx, Key)
	if err != nil {
		return Snapshot{}, err
	}
	return d.accept(obj, floor)
}

// accept believes an object that was read or written after floor was seen, or
// says why not.
func (d *Directory) accept(obj objstore.Object, floor mark) (Snapshot, error) {
	r, err := open(obj.Body, d.key)
	switch {
	case err != nil:
		return Snapshot{}, fmt.Errorf("%w: %w", ErrUntrusted, err)
	case r.DeploymentBucket != d.bucket:
		return Snapshot{}, fmt.Errorf("%w: it is of bucket %q, this deployment's is %q",
			ErrUntrusted, r.DeploymentBucket, d.bucket)
	}
	snap := Snapshot{Roster: r, SHA256: record.Digest(obj.Body), ETag: obj.ETag}
	now := mark{revision: r.Revision, gen: r.Gen, sha256: snap.SHA256}
	if err := now.follows(floor); err != nil {
		return Snapshot{}, fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	d.remember(now)
	if r.ProtocolFloor > Protocol {
		return Snapshot{}, fmt.Errorf("%w: protocol_floor %d, this build speaks %d", ErrOutdated, r.ProtocolFloor, Protocol)
	}
	return snap, nil
}

// newest is what a read compares with. It is taken before the read begins:
// the answer of a read that overlaps another may be the older of the two.
func (d *Directory) newest() mark {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen
}

func (d *Directory) remember(m mark) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.gen > d.seen.gen {
		d.seen = m
	}
}

// follows refuses a roster that is older than floor, and another one of the
// same age: a store that was rolled back and then written again.
func (m mark) follows(floor mark) error {
	switch {
	case m.revision < floor.revision || m.gen < floor.gen:
		return fmt.Errorf("revision %d (gen %d) is older than revision %d (gen %d), which was seen before",
			m.revision, m.gen, floor.revision, floor.gen)
	case m.gen == floor.gen && m.sha256 != floor.sha256:
		return fmt.Errorf("another roster of gen %d was seen before", m.gen)
	}
	return nil
}
