package hostdb

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/superfly/ltx"
	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// Prepared describes a prepared generation whose build is complete.
type Prepared struct {
	Generation     string
	InstallKey     string // of install.json
	InstallSHA256  string // of install.json's bytes
	SnapshotTXID   uint64 // N: the replicator is opened with Base N; 0 for an empty one
	DatabaseSHA256 string // digest of the database file at N, as [Restore] returns it; "" for an empty one

	// Objects are the LTX objects in the order in which they apply, and last the
	// anchor.
	Objects []ObjectRef
}

// The modes of a build.
const (
	modeCopy  = "copy"
	modeEmpty = "empty"
)

// build is build.json, a build's first object: all that a rebuild must repeat.
// It follows from the set alone.
type build struct {
	V          int    `json:"v"` // 1
	Location   string `json:"location"`
	Generation string `json:"generation"`
	Mode       string `json:"mode"`
	Source     string `json:"source"`     // the set's generation
	SetSHA256  string `json:"set_sha256"` // of the set's encoding
	TXID       uint64 `json:"txid"`       // N
}

// install is install.json, a build's last object: all that the build made.
type install struct {
	V              int         `json:"v"` // 1
	Generation     string      `json:"generation"`
	BuildSHA256    string      `json:"build_sha256"` // of build.json's bytes
	TXID           uint64      `json:"txid"`
	DatabaseSHA256 string      `json:"database_sha256"`
	Objects        []ObjectRef `json:"objects,omitempty"` // key, SHA-256 and size
}

// Builder makes prepared generations.
type Builder struct {
	Store objstore.Store

	// Check is called before each step that writes: the intent, the copies and
	// the manifest. It ends the build by an error. It reads again whatever
	// allows the build: claim, guard, lease.
	Check func(context.Context) error

	// Warm is the directory of [Warm], from which the build starts where it can.
	// The database at the built path is then taken from there. "" builds cold.
	Warm string
}

// BuildPrepared makes the prepared generation p under location and the database
// file at path: build.json, a copy of each object of set, one object of at most
// about 4 MiB in place of the last and smallest of them, a level-0 file for the
// set's last transaction N that a replicator goes on from, and install.json, in
// this order. The copies are made inside the store where it is an
// [objstore.Copier]. The local file appears last, as [Restore] makes it; what
// of it was not warm has been fetched once, and SQLite has checked it whole
// unless it was warm.
//
// A build that failed anywhere is made again by the same call: what is there
// must be the same bytes, anything else is [ErrBroken]. Nothing may lie at path
// ([ErrNotFresh]). An empty set makes the two records and no file.
//
// It costs a GET for each object that is not warm, a copy for each large object,
// and four PUTs.
func (b Builder) BuildPrepared(ctx context.Context, set RecoverySet, location, p, path string) (Prepared, error) {
	out, err := b.build(ctx, set, location, p, path)
	if err != nil {
		return Prepared{}, fmt.Errorf("build %s from %s: %w", p, set.Generation, err)
	}
	return out, nil
}

func (b Builder) build(ctx context.Context, set RecoverySet, location, p, path string) (Prepared, error) {
	if b.Store == nil || b.Check == nil {
		return Prepared{}, errors.New("builder: Store and Check are required")
	}
	if err := errors.Join(checkNames(location, p), set.check()); err != nil {
		return Prepared{}, err
	}
	if set.Generation == p {
		return Prepared{}, fmt.Errorf("generation %s: %w: a generation is never built from itself", p, errBadName)
	}
	j := job{Builder: b, location: location, p: p, set: set, dir: b.Warm}
	if set.Empty {
		if err := j.intend(ctx); err != nil {
			return Prepared{}, err
		}
		return j.complete(ctx, "", nil)
	}
	if err := checkVacant(path); err != nil {
		return Prepared{}, err
	}
	if j.dir == "" {
		j.dir = path + ".building"
		if err := os.RemoveAll(j.dir); err != nil {
			return Prepared{}, err
		}
		defer os.RemoveAll(j.dir)
	}
	return j.transfer(ctx, path)
}

// job is one build.
type job struct {
	Builder
	location, p string
	set         RecoverySet
	dir         string // of the base
	root        root
	keys        []string // of the root's names
	buildSHA256 string
}

// transfer makes the generation's objects and the database file. The store copies
// while the base is brought to the set's position.
func (j *job) transfer(ctx context.Context, path string) (_ Prepared, err error) {
	if j.root, err = rootOf(j.set); err != nil {
		return Prepared{}, err
	}
	j.keys = j.root.keys(j.location, j.p)
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return Prepared{}, err
	}
	var b *base
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		b, err = bring(ctx, j.Store, j.set, j.dir) // also for the next attempt, if the store fails this one
		return err
	})
	group.Go(func() error {
		if err := j.intend(gctx); err != nil {
			return err
		}
		if err := j.allowed(gctx, "the copies"); err != nil {
			return err
		}
		return j.copyAll(gctx)
	})
	if err := group.Wait(); err != nil {
		return Prepared{}, err
	}
	objects, err := j.finish(ctx, b)
	if err != nil {
		return Prepared{}, err
	}
	out, err := j.complete(ctx, b.DatabaseSHA256, objects)
	if err != nil {
		return Prepared{}, err
	}
	return out, b.handOver(path)
}

// intend writes build.json.
func (j *job) intend(ctx context.Context) error {
	intent, err := intentOf(j.location, j.p, j.set)
	if err != nil {
		return err
	}
	if err := j.allowed(ctx, "the intent"); err != nil {
		return err
	}
	ref, err := j.putRecord(ctx, buildKey(j.location, j.p), intent)
	j.buildSHA256 = ref.SHA256
	return err
}

// finish writes the tail and then the anchor, when all the copies are there, and
// lists what the generation holds. A [1,1] is a full image by definition, so for
// N = 1 the anchor is one too; otherwise it needs no pages.
func (j *job) finish(ctx context.Context, b *base) (objects []ObjectRef, err error) {
	for i, ref := range b.Objects[:j.root.copied] {
		objects = append(objects, ObjectRef{Key: j.keys[i], SHA256: ref.SHA256, Size: ref.Size})
	}
	if i, ok := j.root.tail(); ok {
		body, err := b.tail(i, j.root.names[i].min)
		if err != nil {
			return nil, err
		}
		ref, err := j.putBody(ctx, j.keys[i], body)
		if err != nil {
			return nil, err
		}
		objects = append(objects, ref)
	}
	anchor, err := j.putAnchor(ctx, b)
	return append(objects, anchor), err
}

func (j *job) putAnchor(ctx context.Context, b *base) (ObjectRef, error) {
	key := j.keys[len(j.keys)-1]
	if _, ok := j.root.tail(); b.TXID == 1 && !ok {
		return ObjectRef{Key: key, SHA256: b.Objects[0].SHA256, Size: b.Objects[0].Size}, j.copy(ctx, j.set.Objects[0], key)
	}
	from := len(b.Objects) // no page
	if b.TXID == 1 {
		from = 0
	}
	body, err := b.tail(from, ltx.TXID(b.TXID))
	if err != nil {
		return ObjectRef{}, err
	}
	return j.putBody(ctx, key, body)
}

// putBody makes one object of the build from memory.
func (j *job) putBody(ctx context.Context, key string, body []byte) (ObjectRef, error) {
	return ObjectRef{Key: key, SHA256: record.Digest(body), Size: int64(len(body))}, j.put(ctx, key, inline(body))
}

// complete writes install.json.
func (j *job) complete(ctx context.Context, digest string, objects []ObjectRef) (Prepared, error) {
	m := install{
		V: 1, Generation: j.p, BuildSHA256: j.buildSHA256, TXID: j.set.MaxTXID, DatabaseSHA256: digest, Objects: objects,
	}
	if err := j.allowed(ctx, "the manifest"); err != nil {
		return Prepared{}, err
	}
	ref, err := j.putRecord(ctx, installKey(j.location, j.p), m)
	if err != nil {
		return Prepared{}, err
	}
	return m.prepared(ref.Key, ref.SHA256), nil
}

func (j *job) allowed(ctx context.Context, step string) error {
	if err := j.Check(ctx); err != nil {
		return fmt.Errorf("before writing %s: %w", step, err)
	}
	return nil
}

func (j *job) putRecord(ctx context.Context, key string, v any) (ObjectRef, error) {
	body, err := record.Encode(v)
	if err != nil {
		return ObjectRef{}, err
	}
	return j.putBody(ctx, key, body)
}

// put makes one object of the build.
func (j *job) put(ctx context.Context, key string, c content) error {
	_, err := create(ctx, j.Store, key, c, c.size)
	if errors.Is(err, errOtherBytes) {
		err = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return err
}

// intentOf derives build.json from the set.
func intentOf(location, p string, set RecoverySet) (build, error) {
	digest, err := set.digest()
	intent := build{
		V: 1, Location: location, Generation: p, Mode: modeCopy,
		Source: set.Generation, SetSHA256: digest, TXID: set.MaxTXID,
	}
	if set.Empty {
		intent.Mode = modeEmpty
	}
	return intent, err
}

func (m install) prepared(key, digest string) Prepared {
	return Prepared{
		Generation: m.Generation, InstallKey: key, InstallSHA256: digest,
		SnapshotTXID: m.TXID, DatabaseSHA256: m.DatabaseSHA256, Objects: m.Objects,
	}
}

func buildKey(location, p string) string { return prefix(location, p) + "build.json" }

func installKey(location, p string) string { return prefix(location, p) + "install.json" }
