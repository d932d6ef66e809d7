package hostfiles

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/carlosframework/regionha/objstore"
)

// Store is what this package needs of a store: manifests are read and written
// whole, contents are streamed.
type Store interface {
	objstore.Store
	objstore.Streamer
}

// writer is bound to one generation: every key that it writes is built from its
// target.
type writer struct {
	store  Store
	target Target
	check  func(context.Context) error // nil: nobody to ask
}

// authorize asks whether the session may still write.
func (w writer) authorize(ctx context.Context) error {
	if w.check == nil {
		return nil
	}
	if err := w.check(ctx); err != nil {
		return fmt.Errorf("authority of session %d: %w", w.target.Session, err)
	}
	return nil
}

// createObject stores size bytes of r, whose digest is sum. One PUT; where the
// key is taken or the outcome is unknown, one GET more to see whether it holds
// these bytes.
func (w writer) createObject(ctx context.Context, seq uint64, sum string, r io.ReadSeeker, size int64) (string, error) {
	if err := w.authorize(ctx); err != nil {
		return "", err
	}
	key := w.target.objectKey(seq, sum)
	_, err := w.store.PutReader(ctx, key, r, size, objstore.IfAbsent())
	if errors.Is(err, objstore.ErrConflict) || errors.Is(err, objstore.ErrUnknown) {
		if back := readObject(ctx, w.store, key, sum, size, io.Discard); back != nil {
			return "", fmt.Errorf("object %s: %w; reading it back: %v", key, err, back)
		}
		err = nil
	}
	return key, err
}

// readObject writes the object to out, and fails with [ErrDigest] unless it was
// exactly size bytes with this digest. What out got before an error is of no use.
func readObject(ctx context.Context, s objstore.Streamer, key, sum string, size int64, out io.Writer) error {
	body, err := openCited(ctx, s, key, size)
	if err != nil {
		return err
	}
	defer body.Close()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, hash), io.LimitReader(body, size+1))
	if err != nil {
		return fmt.Errorf("object %s: %w", key, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); n != size || got != sum {
		return fmt.Errorf("object %s: %w: %d bytes with sha256 %s", key, ErrDigest, n, got)
	}
	return nil
}

// openCited opens an object that a manifest cites with its size. That it is not
// there is no absence that anyone may conclude from: it is [ErrDigest].
func openCited(ctx context.Context, s objstore.Streamer, key string, size int64) (io.ReadCloser, error) {
	body, info, err := s.GetReader(ctx, key, "", 0)
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return nil, fmt.Errorf("object %s: %w: it is not there", key, ErrDigest)
	case err != nil:
		return nil, fmt.Errorf("object %s: %w", key, err)
	case info.Size != size:
		return nil, errors.Join(body.Close(), fmt.Errorf("object %s: %w: %d bytes, cited as %d", key, ErrDigest, info.Size, size))
	}
	return body, nil
}

// readSmall reads a whole object that fits in memory.
func readSmall(ctx context.Context, s objstore.Streamer, e Entry) ([]byte, error) {
	var out bytes.Buffer
	err := readObject(ctx, s, e.Object, e.SHA256, e.Size, &out)
	return out.Bytes(), err
}

// readManifest reads the manifest under key as it is now, or, where sum is not
// empty, exactly the bytes with that digest. One GET.
func readManifest(ctx context.Context, s objstore.Store, key, sum string) (Manifest, objstore.Object, error) {
	location, generation, err := parseManifestKey(key)
	if err != nil {
		return Manifest{}, objstore.Object{}, err
	}
	object, err := s.Get(ctx, key)
	if err != nil {
		return Manifest{}, objstore.Object{}, err
	}
	if got := digest(object.Body); sum != "" && got != sum {
		return Manifest{}, objstore.Object{}, fmt.Errorf("manifest %s: %w: sha256 %s, cited as %s", key, ErrDigest, got, sum)
	}
	m, err := decodeManifest(object.Body)
	if err != nil {
		return Manifest{}, objstore.Object{}, fmt.Errorf("%s: %w", key, err)
	}
	if m.Location != location || m.Generation != generation {
		return Manifest{}, objstore.Object{}, fmt.Errorf("%s: %w: it says %s, generation %s",
			key, ErrMalformed, m.Location, m.Generation)
	}
	return m, object, nil
}

// putManifest writes a manifest and settles the outcome: one PUT, and a GET or
// two where that is not a plain success. [ErrFenced] says that the manifest is no
// longer the one that cond names. [objstore.ErrConflict] alone is a store that
// refused the write though it still is: it may be sent again.
func putManifest(ctx context.Context, s objstore.Store, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	info, err := objstore.PutSettled(ctx, s, key, body, cond)
	switch {
	case errors.Is(err, objstore.ErrSuperseded):
		return info, fmt.Errorf("%w: %w", ErrFenced, err)
	case !errors.Is(err, objstore.ErrConflict):
		return info, err
	}
	there, getErr := s.Get(ctx, key)
	absent := errors.Is(getErr, objstore.ErrNotFound)
	if getErr != nil && !absent {
		return info, fmt.Errorf("%w; looking again: %v", err, getErr)
	}
	etag, match := cond.ETag()
	if match && !absent && there.ETag == etag || !match && absent {
		return info, err
	}
	return info, fmt.Errorf("%w: %w", ErrFenced, err)
}

// readBase reads the base of m: one GET, or none where it has no base.
func readBase(ctx context.Context, s objstore.Streamer, m Manifest) (map[string]Entry, error) {
	if m.Base == nil {
		return map[string]Entry{}, nil
	}
	body, err := openCited(ctx, s, m.Base.Key, m.Base.Size)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return decodeBase(body, m.Location, *m.Base)
}
