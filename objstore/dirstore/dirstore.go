package dirstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/carlosframework/regionha/objstore"
)

// tempDir holds unfinished writes. Its name is no escaped component.
const tempDir = ".tmp"

// staleTemp is the age from which an unfinished write is removed at Open. Its
// writer is dead, or fails when it goes on.
const staleTemp = 24 * time.Hour

// Store is an object store in a directory. Make one with [Open]. It is safe for
// concurrent use, by this and other processes.
type Store struct {
	root string

	mu      sync.Mutex
	durable map[string]struct{} // directories known to be on disk
}

var (
	_ objstore.Store     = (*Store)(nil)
	_ objstore.Streamer  = (*Store)(nil)
	_ objstore.Versioned = (*Store)(nil)
)

// Open makes the directory if need be and opens the store in it. It fails where
// the file system has no hard links, and removes what writers that died more
// than a day ago left unfinished.
func Open(dir string) (*Store, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open directory store %s: %w", dir, err)
	}
	s := &Store{root: root, durable: map[string]struct{}{}}
	if err := os.MkdirAll(filepath.Join(root, tempDir), 0o750); err != nil {
		return nil, fmt.Errorf("open directory store: %w", err)
	}
	if err := s.tryLink(); err != nil {
		return nil, fmt.Errorf("open directory store %s: the file system must have hard links: %w", dir, err)
	}
	if err := s.removeStaleTemp(time.Now()); err != nil {
		return nil, fmt.Errorf("open directory store %s: %w", dir, err)
	}
	return s, nil
}

// Get implements [objstore.Store]. A body that does not have the digest it was
// stored with is an error.
func (s *Store) Get(ctx context.Context, key string) (objstore.Object, error) {
	f, info, err := s.open(ctx, key)
	if err != nil {
		return objstore.Object{}, err
	}
	defer f.Close()
	if info.Size > objstore.MaxGet {
		return objstore.Object{}, fmt.Errorf("get %s: %w: %d bytes", key, objstore.ErrTooLarge, info.Size)
	}
	body := make([]byte, info.Size)
	if _, err := io.ReadFull(f, body); err != nil {
		return objstore.Object{}, fmt.Errorf("get %s: %w", key, err)
	}
	if sum := sha256.Sum256(body); info.ETag != `"`+hex.EncodeToString(sum[:])+`"` {
		return objstore.Object{}, fmt.Errorf("get %s: %s is damaged: its bytes are not what was stored", key, f.Name())
	}
	return objstore.Object{Info: info, Body: body}, nil
}

// GetReader implements [objstore.Streamer].
func (s *Store) GetReader(ctx context.Context, key, ifMatch string, offset int64) (io.ReadCloser, objstore.Info, error) {
	f, info, err := s.open(ctx, key)
	if err != nil {
		return nil, objstore.Info{}, err
	}
	switch {
	case ifMatch != "" && ifMatch != info.ETag:
		err = fmt.Errorf("%w: it is %s, wanted %s", objstore.ErrConflict, info.ETag, ifMatch)
	case offset < 0 || offset > info.Size:
		err = fmt.Errorf("offset %d is outside its %d bytes", offset, info.Size)
	default:
		_, err = f.Seek(headSize+offset, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, objstore.Info{}, fmt.Errorf("get %s: %w", key, err)
	}
	return newBody(f, info.Size-offset), info, nil
}

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	return s.PutReader(ctx, key, bytes.NewReader(body), int64(len(body)), cond)
}

// PutReader implements [objstore.Streamer].
func (s *Store) PutReader(ctx context.Context, key string, r io.ReadSeeker, size int64, cond objstore.Condition) (objstore.Info, error) {
	if err := objstore.CheckKey(key); err != nil {
		return objstore.Info{}, fmt.Errorf("put: %w", err)
	}
	if err := cond.Check(); err != nil {
		return objstore.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	info, err := s.put(ctx, key, r, size, cond)
	switch {
	case errors.Is(err, objstore.ErrConflict):
		return objstore.Info{}, fmt.Errorf("put %s: %w", key, err)
	case err != nil:
		return objstore.Info{}, fmt.Errorf("put %s: %w: %w", key, objstore.ErrUnknown, err)
	}
	return info, nil
}

func (s *Store) put(ctx context.Context, key string, r io.ReadSeeker, size int64, cond objstore.Condition) (objstore.Info, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return objstore.Info{}, err
	}
	path := objectPath(s.root, key)
	if _, err := checkNewest(path, cond); err != nil {
		return objstore.Info{}, err // a lost race costs no write
	}
	temp, h, err := s.writeTemp(r, size)
	if err != nil {
		return objstore.Info{}, err
	}
	defer os.Remove(temp)
	number, err := s.claim(ctx, path, temp, cond)
	if err != nil {
		return objstore.Info{}, err
	}
	return h.info(key, number), nil
}

// tryLink makes a hard link, which every write needs.
func (s *Store) tryLink() error {
	temp, _, err := s.writeTemp(bytes.NewReader(nil), 0)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	defer os.Remove(temp + "-link")
	return os.Link(temp, temp+"-link")
}

func (s *Store) removeStaleTemp(now time.Time) error {
	entries, err := os.ReadDir(filepath.Join(s.root, tempDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && now.Sub(st.ModTime()) < staleTemp {
			continue
		}
		if err := errors.Join(err, os.Remove(filepath.Join(s.root, tempDir, e.Name()))); err != nil {
			return err
		}
	}
	return nil
}
