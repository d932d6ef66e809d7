package hostfiles

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

const keySize = 32 // random bytes

// ErrOtherKey: the instance key on this machine is not the one that is
// published. Neither is overwritten: data may be sealed with both.
var ErrOtherKey = errors.New("another instance key lies there")

// EnsureInstanceKey gives the generation in t its instance key and puts it into
// platformDir/instance.key (mode 0600), which it returns: 32 random bytes as
// base64url without padding. A key that the manifest has is restored, never made
// again; a new one is in the manifest before it is anywhere else. It runs after
// the generation began and before [New] and the app's first start.
//
// Two GETs where there is a key; one GET and two PUTs where it is made. Errors:
// [ErrOtherKey], [ErrFenced], [ErrDigest], [objstore.ErrUnknown] (call it again:
// a key that was published is found), and the store's. No error means absent.
func EnsureInstanceKey(ctx context.Context, s Store, t Target, platformDir string) ([]byte, error) {
	key, err := ensureKey(ctx, s, t, filepath.Join(platformDir, filepath.Base(InstanceKey)))
	if err != nil {
		return nil, fmt.Errorf("hostfiles: instance key of %s: %w", t.manifestKey(), err)
	}
	return key, nil
}

func ensureKey(ctx context.Context, s Store, t Target, path string) ([]byte, error) {
	if err := t.checkWriter(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	key, err := publishedKey(ctx, writer{store: s, target: t}, path)
	if errors.Is(err, objstore.ErrConflict) || errors.Is(err, objstore.ErrSuperseded) {
		// An earlier call whose outcome was unknown may have landed: look again.
		key, err = publishedKey(ctx, writer{store: s, target: t}, path)
	}
	if err != nil {
		return nil, err
	}
	return key, createSmall(path, key)
}

// publishedKey returns the key of the manifest, which gets one if it has none.
func publishedKey(ctx context.Context, w writer, path string) ([]byte, error) {
	st, err := loadHead(ctx, w.store, w.target)
	if err != nil {
		return nil, err
	}
	e, ok := st.get(InstanceKey)
	if !ok {
		return publishKey(ctx, w, st, path)
	}
	key, err := readSmall(ctx, w.store, e)
	if err != nil {
		return nil, err
	}
	return key, checkKey(key)
}

// publishKey makes a key, or takes the one that an operator put there before the
// first start, and publishes it.
func publishKey(ctx context.Context, w writer, st *state, path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = newKey(), nil
	}
	if err == nil {
		err = checkKey(key)
	}
	if err != nil {
		return nil, err
	}
	e := Entry{Path: InstanceKey, Kind: KindFile, Seq: st.manifest.Seq + 1, Size: int64(len(key)), SHA256: digest(key)}
	if e.Object, err = w.createObject(ctx, e.Seq, e.SHA256, bytes.NewReader(key), e.Size); err != nil {
		return nil, err
	}
	body, err := record.Encode(st.next(w.target, e.Seq, st.manifest.Base, st.with([]Entry{e}, nil)))
	if err != nil {
		return nil, err
	}
	_, err = putManifest(ctx, w.store, w.target.manifestKey(), body, st.condition())
	return key, err
}

func newKey() []byte {
	var raw [keySize]byte
	rand.Read(raw[:]) // never fails: it ends the process instead
	return base64.RawURLEncoding.AppendEncode(nil, raw[:])
}

func checkKey(key []byte) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(key))
	if err != nil || len(raw) != keySize {
		return fmt.Errorf("want the base64url of %d bytes, without padding; it has %d characters", keySize, len(key))
	}
	return nil
}
