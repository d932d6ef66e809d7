package hostdb

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/superfly/ltx"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// Prepared describes a prepared generation whose build is complete.
type Prepared struct {
	Generation     string
	InstallKey     string // of install.json
	InstallSHA256  string // of install.json's bytes
	SnapshotTXID   uint64 // N: the replicator is opened with Base N; 0 for an empty one
	DatabaseSHA256 string // of the database file at N; "" for an empty one
	Objects        []ObjectRef
}

// The modes of a build.
const (
	modeSnapshot = "snapshot"
	modeEmpty    = "empty"
)

// build is build.json, a build's first object: all that a rebuild must repeat.
type build struct {
	V          int       `json:"v"` // 1
	Location   string    `json:"location"`
	Generation string    `json:"generation"`
	Mode       string    `json:"mode"`
	Source     string    `json:"source"`     // the set's generation
	SetSHA256  string    `json:"set_sha256"` // of the set's encoding
	TXID       uint64    `json:"txid"`       // N
	LTXTime    time.Time `json:"ltx_time"`   // in every LTX header: the time of transaction N
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

	// Check is called before each write and ends the build by an error. It
	// reads again whatever allows the build: claim, guard, lease.
	Check func(context.Context) error
}

// BuildPrepared makes, in one pass over set, the prepared generation p under
// location and the database file at path: build.json, a full image at the set's
// last transaction N, a level-0 file for N that a replicator goes on from, and
// install.json, in this order. The local file appears last, as [Restore] makes
// it, and has passed PRAGMA integrity_check.
//
// A build that failed anywhere is made again by the same call: what is there
// must be the same bytes, anything else is [ErrBroken]. Nothing may lie at path
// ([ErrNotFresh]). An empty set makes the two records and no file.
//
// It costs a GET per object of the set and four PUTs.
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
	j := job{Builder: b, location: location, p: p, set: set}
	if set.Empty {
		if err := j.intend(ctx, time.Time{}); err != nil {
			return Prepared{}, err
		}
		return j.complete(ctx, "", nil)
	}
	db, err := newPlace(path)
	if err != nil {
		return Prepared{}, err
	}
	defer db.discard()
	f, err := fetch(ctx, b.Store, set, filepath.Dir(path))
	if err != nil {
		return Prepared{}, err
	}
	defer f.close()
	out, err := j.transfer(ctx, f, db)
	if err != nil {
		return Prepared{}, err
	}
	return out, db.commit()
}

// job is one build.
type job struct {
	Builder
	location, p string
	set         RecoverySet
	buildSHA256 string
}

// transfer makes the generation's objects and the database file, all but its
// name.
func (j *job) transfer(ctx context.Context, f *fetched, db *place) (Prepared, error) {
	if err := j.intend(ctx, ltxTime(f.last())); err != nil {
		return Prepared{}, err
	}
	image, err := newImage(filepath.Dir(db.path), rootHeader(f.last(), 1))
	if err != nil {
		return Prepared{}, err
	}
	defer image.discard()
	err = f.pages(ctx, func(pgno uint32, data []byte) error {
		if _, err := db.out.Write(data); err != nil {
			return err
		}
		return image.page(pgno, data)
	})
	if err != nil {
		return Prepared{}, err
	}
	if err := image.finish(); err != nil {
		return Prepared{}, err
	}
	digest, err := db.finish()
	if err != nil {
		return Prepared{}, err
	}
	if err := db.integrity(ctx); err != nil {
		return Prepared{}, err
	}
	objects, err := j.putRoot(ctx, image)
	if err != nil {
		return Prepared{}, err
	}
	return j.complete(ctx, digest, objects)
}

// intend writes build.json.
func (j *job) intend(ctx context.Context, at time.Time) error {
	intent, err := intentOf(j.location, j.p, j.set, at)
	if err != nil {
		return err
	}
	ref, err := j.putRecord(ctx, buildKey(j.location, j.p), intent)
	j.buildSHA256 = ref.SHA256
	return err
}

// putRoot writes the full image [1,N] and the level-0 file [N,N]. A [1,1] is a
// full image by definition, so for N = 1 both are the same bytes; otherwise the
// second needs no pages.
func (j *job) putRoot(ctx context.Context, m *image) ([]ObjectRef, error) {
	names := rootNames(m.header.MaxTXID)
	first, err := j.put(ctx, ltxPrefix(j.location, j.p)+names[0].String(), m.content(), m.sha256())
	if err != nil {
		return nil, err
	}
	anchor, digest := m.content(), m.sha256()
	if m.header.MaxTXID > 1 {
		body, err := encodeEmpty(rootHeader(m.header, m.header.MaxTXID))
		if err != nil {
			return nil, err
		}
		anchor, digest = inline(body), record.Digest(body)
	}
	second, err := j.put(ctx, ltxPrefix(j.location, j.p)+names[1].String(), anchor, digest)
	return []ObjectRef{first, second}, err
}

// complete writes install.json.
func (j *job) complete(ctx context.Context, digest string, objects []ObjectRef) (Prepared, error) {
	m := install{V: 1, Generation: j.p, BuildSHA256: j.buildSHA256, TXID: j.set.MaxTXID, DatabaseSHA256: digest}
	for _, o := range objects {
		m.Objects = append(m.Objects, ObjectRef{Key: o.Key, SHA256: o.SHA256, Size: o.Size})
	}
	ref, err := j.putRecord(ctx, installKey(j.location, j.p), m)
	if err != nil {
		return Prepared{}, err
	}
	return m.prepared(ref.Key, ref.SHA256, objects), nil
}

func (j *job) putRecord(ctx context.Context, key string, v any) (ObjectRef, error) {
	body, err := record.Encode(v)
	if err != nil {
		return ObjectRef{}, err
	}
	return j.put(ctx, key, inline(body), record.Digest(body))
}

// put makes one object of the build.
func (j *job) put(ctx context.Context, key string, c content, digest string) (ObjectRef, error) {
	if err := j.Check(ctx); err != nil {
		return ObjectRef{}, fmt.Errorf("before writing %s: %w", key, err)
	}
	info, err := create(ctx, j.Store, key, c, c.size)
	if errors.Is(err, errOtherBytes) {
		err = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return ObjectRef{Key: key, ETag: info.ETag, VersionID: info.VersionID, SHA256: digest, Size: c.size}, err
}

// intentOf derives build.json from the set and the time of its last transaction.
func intentOf(location, p string, set RecoverySet, at time.Time) (build, error) {
	digest, err := set.digest()
	intent := build{
		V: 1, Location: location, Generation: p, Mode: modeSnapshot,
		Source: set.Generation, SetSHA256: digest, TXID: set.MaxTXID, LTXTime: at,
	}
	if set.Empty {
		intent.Mode = modeEmpty
	}
	return intent, err
}

func (m install) prepared(key, digest string, objects []ObjectRef) Prepared {
	return Prepared{
		Generation: m.Generation, InstallKey: key, InstallSHA256: digest,
		SnapshotTXID: m.TXID, DatabaseSHA256: m.DatabaseSHA256, Objects: objects,
	}
}

func buildKey(location, p string) string { return prefix(location, p) + "build.json" }

func installKey(location, p string) string { return prefix(location, p) + "install.json" }

func ltxTime(h ltx.Header) time.Time { return time.UnixMilli(h.Timestamp).UTC() }
