package hostdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/superfly/ltx"
	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// VerifyPrepared looks at a prepared generation afresh and compares it with the
// set that it was to be built from: the two records, the exact list of LTX
// objects, each copy with the object that the set pins, the tail with its
// SHA-256, its own checksum and its place in the chain, and the anchor with what
// comes before it. A copy that has the pinned ETag and size has the pinned
// bytes; where a store gives a copy another ETag, the copy is read and has the
// SHA-256 that the builder read under the pinned ETag. It reads nothing under
// the source.
//
// What is missing, left over or different is [ErrBroken]. That holds too for a
// build that is not complete yet. It costs one listing and five GETs of at most
// about 4 MiB, and a GET more for each copy with another ETag.
func VerifyPrepared(ctx context.Context, s objstore.Store, location, p string, set RecoverySet) (Prepared, error) {
	out, err := verify(ctx, s, location, p, set)
	if err != nil {
		return Prepared{}, fmt.Errorf("verify %s: %w", p, err)
	}
	return out, nil
}

func verify(ctx context.Context, s objstore.Store, location, p string, set RecoverySet) (Prepared, error) {
	if err := errors.Join(checkNames(location, p), set.check()); err != nil {
		return Prepared{}, err
	}
	plan, err := rootOf(set)
	if err != nil {
		return Prepared{}, err
	}
	seen, err := see(ctx, s, location, p)
	if err != nil {
		return Prepared{}, err
	}
	want, err := intentOf(location, p, set)
	if err != nil {
		return Prepared{}, err
	}
	if seen.intent != want {
		return Prepared{}, fmt.Errorf("%w: build.json says %+v, the set asks for %+v", ErrBroken, seen.intent, want)
	}
	m := seen.install
	if m.V != 1 || m.Generation != p || m.BuildSHA256 != seen.intentSHA256 || m.TXID != set.MaxTXID {
		return Prepared{}, fmt.Errorf("%w: install.json is of build %s at TXID %d, wanted %s at %d", ErrBroken, m.BuildSHA256, m.TXID, seen.intentSHA256, set.MaxTXID)
	}
	listed, err := matchObjects(seen.listed, m.Objects, plan.keys(location, p))
	if err != nil {
		return Prepared{}, err
	}
	if !set.Empty {
		err = verifyRoot(ctx, s, set, plan, listed)
	}
	return m.prepared(installKey(location, p), seen.installSHA256), err
}

// sight is what lies under a prepared generation.
type sight struct {
	listed        []ltxFile
	intent        build
	intentSHA256  string
	install       install
	installSHA256 string
}

func see(ctx context.Context, s objstore.Store, location, p string) (v sight, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		v.listed, err = listLTX(ctx, s, location, p)
		return err
	})
	group.Go(func() (err error) {
		v.intent, v.intentSHA256, err = readRecord[build](ctx, s, buildKey(location, p))
		return err
	})
	group.Go(func() (err error) {
		v.install, v.installSHA256, err = readRecord[install](ctx, s, installKey(location, p))
		return err
	})
	err = group.Wait()
	return v, err
}

// matchObjects requires that listing, manifest and want name the same keys, and
// adds the listed versions to the manifest's entries.
func matchObjects(listed []ltxFile, manifest []ObjectRef, want []string) ([]ObjectRef, error) {
	if len(listed) != len(want) || len(manifest) != len(want) {
		return nil, fmt.Errorf("%w: %d LTX objects are listed and %d in install.json, wanted %d", ErrBroken, len(listed), len(manifest), len(want))
	}
	objects := slices.Clone(manifest)
	for i, key := range want {
		at := slices.IndexFunc(listed, func(f ltxFile) bool { return f.info.Key == key })
		if at < 0 || manifest[i].Key != key || manifest[i].SHA256 == "" || manifest[i].Size != listed[at].info.Size {
			return nil, fmt.Errorf("%w: object %s is not listed and installed as it should be", ErrBroken, key)
		}
		objects[i].ETag, objects[i].VersionID = listed[at].info.ETag, listed[at].info.VersionID
	}
	return objects, nil
}

// verifyRoot compares the listed objects with the set: the copies in order, the
// tail, and the anchor.
func verifyRoot(ctx context.Context, s objstore.Store, set RecoverySet, plan root, listed []ObjectRef) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	for i, have := range listed[:plan.copied] {
		group.Go(func() error { return verifyCopy(ctx, s, set.Objects[i], have) })
	}
	group.Go(func() error {
		anchor := listed[len(listed)-1]
		if i, ok := plan.tail(); ok {
			return verifyTail(ctx, s, plan.names[i], listed[i], anchor)
		}
		if set.MaxTXID == 1 {
			return verifyCopy(ctx, s, set.Objects[0], anchor)
		}
		h, err := readHeader(ctx, s, listed[plan.copied-1])
		if err != nil {
			return err
		}
		return verifyAnchor(ctx, s, h, anchor)
	})
	return group.Wait()
}

// verifyTail requires that the tail is a sound file of that name which no
// session wrote, and that the anchor goes on from it.
func verifyTail(ctx context.Context, s objstore.Store, name ltxName, tail, anchor ObjectRef) error {
	var body bytes.Buffer
	if _, err := download(ctx, s, tail, &body); err != nil {
		return err
	}
	dec := ltx.NewDecoder(bytes.NewReader(body.Bytes()))
	if err := dec.Verify(); err != nil {
		return fmt.Errorf("%w: object %s: %w", ErrBroken, tail.Key, err)
	}
	h := dec.Header()
	if h != rootHeader(h, name.min) || h.MaxTXID != name.max {
		return fmt.Errorf("%w: object %s has header %+v", ErrBroken, tail.Key, h)
	}
	if name.max > 1 {
		return verifyAnchor(ctx, s, h, anchor)
	}
	if anchor.SHA256 != tail.SHA256 || anchor.Size != tail.Size {
		return fmt.Errorf("%w: object %s is not the anchor of %s", ErrBroken, anchor.Key, tail.Key)
	}
	_, err := download(ctx, s, anchor, io.Discard)
	return err
}

// verifyCopy requires that have, as it is listed, holds the bytes that the pin
// names.
func verifyCopy(ctx context.Context, s objstore.Store, pin, have ObjectRef) error {
	if have.Size != pin.Size || pin.SHA256 != "" && have.SHA256 != pin.SHA256 {
		return fmt.Errorf("%w: object %s has %d bytes and SHA-256 %s, the set says %d and %s", ErrBroken, have.Key, have.Size, have.SHA256, pin.Size, pin.SHA256)
	}
	if pin.ETag != "" && have.ETag == pin.ETag {
		return nil
	}
	_, err := download(ctx, s, have, io.Discard)
	return err
}

// readHeader reads the begin of an LTX object.
func readHeader(ctx context.Context, s objstore.Store, ref ObjectRef) (ltx.Header, error) {
	r, _, err := open(ctx, s, ref)
	if err != nil {
		return ltx.Header{}, err
	}
	defer r.Close()
	h, _, err := ltx.PeekHeader(r)
	if err != nil {
		return ltx.Header{}, fmt.Errorf("%w: object %s: %w", ErrBroken, ref.Key, err)
	}
	return h, nil
}

// verifyAnchor requires that anchor is exactly what the header of the object
// before it makes it.
func verifyAnchor(ctx context.Context, s objstore.Store, h ltx.Header, anchor ObjectRef) error {
	want, err := encodeEmpty(rootHeader(h, h.MaxTXID))
	if err != nil {
		return err
	}
	var got bytes.Buffer
	if _, err := download(ctx, s, anchor, &got); err != nil {
		return err
	}
	if !bytes.Equal(got.Bytes(), want) {
		return fmt.Errorf("%w: object %s is not the anchor of TXID %d", ErrBroken, anchor.Key, h.MaxTXID)
	}
	return nil
}

// readRecord reads a record of a build. That it is absent or malformed is
// [ErrBroken].
func readRecord[T any](ctx context.Context, s objstore.Store, key string) (v T, digest string, err error) {
	o, err := s.Get(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) {
		return v, "", fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if err != nil {
		return v, "", err
	}
	v, err = record.Decode[T](o.Body)
	if err != nil {
		return v, "", fmt.Errorf("%w: %s: %w", ErrBroken, key, err)
	}
	return v, record.Digest(o.Body), nil
}

// ReadPrepared reads the install manifest of a prepared generation whose digest
// was recorded when it was verified. Other bytes are [ErrBroken].
func ReadPrepared(ctx context.Context, s objstore.Store, location, p, installSHA256 string) (Prepared, error) {
	if err := checkNames(location, p); err != nil {
		return Prepared{}, fmt.Errorf("read %s: %w", p, err)
	}
	key := installKey(location, p)
	m, digest, err := readRecord[install](ctx, s, key)
	if err != nil {
		return Prepared{}, fmt.Errorf("read %s: %w", p, err)
	}
	if digest != installSHA256 || m.V != 1 || m.Generation != p {
		return Prepared{}, fmt.Errorf("read %s: %w: %s has SHA-256 %s, wanted %s", p, ErrBroken, key, digest, installSHA256)
	}
	return m.prepared(key, digest), nil
}

// Restore makes the database file of a prepared generation at path, as
// [Restore] does, and refuses any but the one that the manifest names.
func (p Prepared) Restore(ctx context.Context, s objstore.Store, path string, progress func(done, total int64)) error {
	if p.SnapshotTXID == 0 || len(p.Objects) == 0 {
		return fmt.Errorf("restore %s: it was prepared empty", p.Generation)
	}
	set := RecoverySet{Generation: p.Generation, Objects: p.Objects[:len(p.Objects)-1], MaxTXID: p.SnapshotTXID}
	if _, err := restore(ctx, s, set, path, p.DatabaseSHA256, progress); err != nil {
		return fmt.Errorf("restore %s: %w", path, err)
	}
	return nil
}

// Matches reports whether the file at path is exactly the database of p, with
// nothing beside it that would change it, so that it can be opened as it is.
// Where no seal of this boot fits the file it reads it: never call it while a
// replicator or the app has it open.
func (p Prepared) Matches(path string) (bool, error) {
	err := checkDatabase(path, p.DatabaseSHA256)
	if errors.Is(err, ErrNotFresh) {
		return false, nil
	}
	return err == nil, err
}

// Place moves the file at from to path if [Prepared.Matches] holds for it; false
// if it does not. Nothing of a database may lie at path ([ErrNotFresh]). At path
// the file has a seal, so that [Open] need not read it either.
func (p Prepared) Place(from, path string) (bool, error) {
	same, err := p.Matches(from)
	if same && err == nil {
		err = move(from, path, p.DatabaseSHA256)
	}
	if err != nil {
		return false, fmt.Errorf("place the database of %s: %w", p.Generation, err)
	}
	return same, nil
}

// checkDatabase refuses a database file other than the one with this digest, and
// one that a -wal or -journal belongs to.
func checkDatabase(path, digest string) error {
	for _, suffix := range []string{"-wal", "-journal"} {
		switch info, err := os.Lstat(path + suffix); {
		case err == nil && info.Size() > 0:
			return fmt.Errorf("%w: %s holds %d bytes", ErrNotFresh, path+suffix, info.Size())
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	got := sealed(path)
	if got == "" {
		var err error
		if got, err = readDigest(path); err != nil {
			return err
		}
	}
	if got != digest {
		return fmt.Errorf("%w: %s has the digest %s, wanted %s", ErrNotFresh, path, got, digest)
	}
	return nil
}

// readDigest reads a whole database file. That there is none is [ErrNotFresh].
func readDigest(path string) (string, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %w", ErrNotFresh, err)
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	return digestOf(file)
}
