package hostdb

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/superfly/ltx"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// VerifyPrepared reads a prepared generation afresh, every byte of it, and
// compares it with the set that it was to be built from: the two records, the
// exact list of LTX objects, each object's SHA-256, the headers, and the SHA-256
// of the database that the image makes. It reads nothing under the source.
//
// What is missing, left over or different is [ErrBroken]. That holds too for a
// build that is not complete yet. It costs one listing and four GETs.
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
	listed, err := listLTX(ctx, s, location, p)
	if err != nil {
		return Prepared{}, err
	}
	intent, buildSHA256, err := readRecord[build](ctx, s, buildKey(location, p))
	if err != nil {
		return Prepared{}, err
	}
	want, err := intentOf(location, p, set, intent.LTXTime)
	if err != nil {
		return Prepared{}, err
	}
	if intent != want {
		return Prepared{}, fmt.Errorf("%w: build.json says %+v, the set asks for %+v", ErrBroken, intent, want)
	}
	m, installSHA256, err := readRecord[install](ctx, s, installKey(location, p))
	if err != nil {
		return Prepared{}, err
	}
	if m.V != 1 || m.Generation != p || m.BuildSHA256 != buildSHA256 || m.TXID != set.MaxTXID {
		return Prepared{}, fmt.Errorf("%w: install.json is of build %s at TXID %d, wanted %s at %d", ErrBroken, m.BuildSHA256, m.TXID, buildSHA256, set.MaxTXID)
	}
	objects, err := matchObjects(listed, m.Objects, rootKeys(location, p, set))
	if err != nil {
		return Prepared{}, err
	}
	if !set.Empty {
		if err := verifyRoot(ctx, s, intent, m.DatabaseSHA256, objects); err != nil {
			return Prepared{}, err
		}
	}
	return m.prepared(installKey(location, p), installSHA256, objects), nil
}

// rootKeys are the LTX objects that a build from set makes.
func rootKeys(location, p string, set RecoverySet) (keys []string) {
	if set.Empty {
		return nil
	}
	for _, name := range rootNames(ltx.TXID(set.MaxTXID)) {
		keys = append(keys, ltxPrefix(location, p)+name.String())
	}
	return keys
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

// verifyRoot reads the two LTX objects whole.
func verifyRoot(ctx context.Context, s objstore.Store, intent build, databaseSHA256 string, objects []ObjectRef) error {
	var root ltx.Header
	for i, name := range rootNames(ltx.TXID(intent.TXID)) {
		r, _, err := open(ctx, s, objects[i])
		if err != nil {
			return err
		}
		digest, h, err := readLTX(r, objects[i])
		r.Close()
		if err != nil {
			return err
		}
		if i == 0 {
			root = rootHeader(h, 1)
			root.MaxTXID, root.Timestamp = name.max, intent.LTXTime.UnixMilli()
		}
		switch want := rootHeader(root, name.min); {
		case h != want:
			return fmt.Errorf("%w: object %s has header %+v, wanted %+v", ErrBroken, objects[i].Key, h, want)
		case name.min == 1 && digest != databaseSHA256:
			return fmt.Errorf("%w: object %s makes a database with SHA-256 %s, install.json says %s", ErrBroken, objects[i].Key, digest, databaseSHA256)
		}
	}
	return nil
}

// readLTX reads an LTX object to its end and returns its header and, for a full
// image, the SHA-256 of the database in it.
func readLTX(r io.Reader, ref ObjectRef) (digest string, h ltx.Header, err error) {
	m := newMeter(r)
	dec := ltx.NewDecoder(bufio.NewReaderSize(m, 256<<10))
	dec.SetRetainPageIndex(false)
	db := sha256.New()
	if name, _ := nameOf(ref.Key); name.min == 1 {
		err = dec.DecodeDatabaseTo(db)
	} else {
		err = dec.Verify()
	}
	switch {
	case m.err != nil:
		return "", h, fmt.Errorf("read %s: %w", ref.Key, m.err)
	case err != nil:
		return "", h, fmt.Errorf("%w: object %s: %w", ErrBroken, ref.Key, err)
	}
	return hex.EncodeToString(db.Sum(nil)), dec.Header(), m.check(ref)
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
	return m.prepared(key, digest, m.Objects), nil
}

// Restore makes the database file of a prepared generation at path, as
// [Restore] does, and refuses any but the one that the manifest names.
func (p Prepared) Restore(ctx context.Context, s objstore.Store, path string, progress func(done, total int64)) error {
	if p.SnapshotTXID == 0 || len(p.Objects) == 0 {
		return fmt.Errorf("restore %s: it was prepared empty", p.Generation)
	}
	set := RecoverySet{Generation: p.Generation, Objects: p.Objects[:1], MaxTXID: p.SnapshotTXID}
	if _, err := restore(ctx, s, set, path, p.DatabaseSHA256, progress); err != nil {
		return fmt.Errorf("restore %s: %w", path, err)
	}
	return nil
}

// Matches reports whether the file at path is exactly the database of p, with
// nothing beside it that would change it, so that it can be opened as it is. It
// reads the file: never call it while a replicator or the app has it open.
func (p Prepared) Matches(path string) (bool, error) {
	err := checkDatabase(path, p.DatabaseSHA256)
	if errors.Is(err, ErrNotFresh) {
		return false, nil
	}
	return err == nil, err
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
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNotFresh, err)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != digest {
		return fmt.Errorf("%w: %s has SHA-256 %s, wanted %s", ErrNotFresh, path, got, digest)
	}
	return nil
}
