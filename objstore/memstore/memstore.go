package memstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/carlosframework/regionha/objstore"
)

// page is how many entries one list request returns, as on S3.
const page = 1000

// Store is an object store in memory. Make one with [New]. It is safe for
// concurrent use.
type Store struct {
	// Now is the store's clock, for ModTime and the log; time.Now if nil. Set
	// it before the first request.
	Now func() time.Time

	// Forget keeps only the newest version of each key and no log, for a long
	// simulation. Set it before the first request.
	Forget bool

	mu       sync.Mutex
	keys     []string // sorted; every key that has a version
	versions map[string][]version
	seq      uint64 // of the newest write
	log      []Write
	held     []*Held
	requests map[Op]int
	inject   func(Request) Fault
}

// version is one stored body; a key's versions stand oldest first.
type version struct {
	objstore.Info
	seq  uint64
	body []byte
}

var (
	_ objstore.Store    = (*Store)(nil)
	_ objstore.Streamer = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{versions: map[string][]version{}, requests: map[Op]int{}}
}

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string) (objstore.Object, error) {
	v, err := s.read(ctx, Request{Op: OpGet, Key: key})
	if err != nil {
		return objstore.Object{}, err
	}
	if v.Size > objstore.MaxGet {
		return objstore.Object{}, fmt.Errorf("get %s: %w: %d bytes", key, objstore.ErrTooLarge, v.Size)
	}
	return objstore.Object{Info: v.Info, Body: bytes.Clone(v.body)}, nil
}

// GetReader implements [objstore.Streamer].
func (s *Store) GetReader(ctx context.Context, key, ifMatch string, offset int64) (io.ReadCloser, objstore.Info, error) {
	v, err := s.read(ctx, Request{Op: OpGet, Key: key})
	switch {
	case err != nil:
		return nil, objstore.Info{}, err
	case ifMatch != "" && ifMatch != v.ETag:
		return nil, objstore.Info{}, fmt.Errorf("get %s: %w: it is %s, wanted %s", key, objstore.ErrConflict, v.ETag, ifMatch)
	case offset < 0 || offset > v.Size:
		return nil, objstore.Info{}, fmt.Errorf("get %s: offset %d is outside its %d bytes", key, offset, v.Size)
	}
	return io.NopCloser(bytes.NewReader(v.body[offset:])), v.Info, nil
}

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	if err := objstore.CheckKey(key); err != nil {
		return objstore.Info{}, fmt.Errorf("put: %w", err)
	}
	if err := cond.Check(); err != nil {
		return objstore.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	return s.write(ctx, Request{Op: OpPut, Key: key, Cond: cond, Body: bytes.Clone(body)})
}

// PutReader implements [objstore.Streamer].
func (s *Store) PutReader(ctx context.Context, key string, r io.ReadSeeker, size int64, cond objstore.Condition) (objstore.Info, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return objstore.Info{}, fmt.Errorf("put %s: %w: rewind body: %w", key, objstore.ErrUnknown, err)
	}
	var body bytes.Buffer
	if _, err := io.Copy(&body, io.LimitReader(r, size+1)); err != nil {
		return objstore.Info{}, fmt.Errorf("put %s: %w: read body: %w", key, objstore.ErrUnknown, err)
	}
	if int64(body.Len()) != size {
		return objstore.Info{}, fmt.Errorf("put %s: %w: the body is not of the announced %d bytes", key, objstore.ErrUnknown, size)
	}
	return s.Put(ctx, key, body.Bytes(), cond)
}

// List implements [objstore.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return s.list(ctx, Request{Op: OpList, Key: prefix}, func(vs []version, upTo uint64) []objstore.Info {
		for _, v := range slices.Backward(vs) {
			if v.seq <= upTo {
				return []objstore.Info{v.Info}
			}
		}
		return nil
	})
}

// list yields what shown picks of each key's versions up to a sequence number.
func (s *Store) list(ctx context.Context, r Request, shown func([]version, uint64) []objstore.Info) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		for after := ""; ; {
			fault, err := s.arrive(ctx, r)
			if err != nil {
				yield(objstore.Info{}, fmt.Errorf("list %s: %w", r.Key, err))
				return
			}
			var infos []objstore.Info
			infos, after = s.page(r.Key, after, fault == Stale, shown)
			if fault == Torn {
				infos = infos[:len(infos)/2]
			}
			for _, info := range infos {
				if !yield(info, nil) {
					return
				}
			}
			if fault == Torn {
				yield(objstore.Info{}, fmt.Errorf("list %s: %w half-way", r.Key, ErrInjected))
				return
			}
			if after == "" {
				return
			}
		}
	}
}

// page returns the entries of up to 1,000 keys under prefix beyond the key
// after, and the last key where there are more.
func (s *Store) page(prefix, after string, stale bool, shown func([]version, uint64) []objstore.Info) (infos []objstore.Info, last string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	upTo := s.seq
	if stale {
		upTo = s.beforeNewest(prefix)
	}
	from, found := slices.BinarySearch(s.keys, max(prefix, after))
	if found && after != "" {
		from++
	}
	for n, key := range s.keys[from:] {
		if !strings.HasPrefix(key, prefix) {
			return infos, ""
		}
		if n == page {
			return infos, s.keys[from+n-1]
		}
		infos = append(infos, shown(s.versions[key], upTo)...)
	}
	return infos, ""
}

// read answers a request for the newest version.
func (s *Store) read(ctx context.Context, r Request) (version, error) {
	if err := objstore.CheckKey(r.Key); err != nil {
		return version{}, fmt.Errorf("get: %w", err)
	}
	if _, err := s.arrive(ctx, r); err != nil {
		return version{}, fmt.Errorf("get %s: %w", r.Key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	vs := s.versions[r.Key]
	if len(vs) == 0 {
		return version{}, fmt.Errorf("get %s: %w", r.Key, objstore.ErrNotFound)
	}
	return vs[len(vs)-1], nil
}

// apply evaluates r's condition and stores its body, in one step.
func (s *Store) apply(r Request) (objstore.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	vs := s.versions[r.Key]
	etag, match := r.Cond.ETag()
	switch {
	case r.Cond.IsAbsent() && len(vs) > 0:
		return objstore.Info{}, fmt.Errorf("put %s: %w: it is there", r.Key, objstore.ErrConflict)
	case match && len(vs) == 0:
		return objstore.Info{}, fmt.Errorf("put %s: %w: it is absent", r.Key, objstore.ErrConflict)
	case match && vs[len(vs)-1].ETag != etag:
		return objstore.Info{}, fmt.Errorf("put %s: %w: it is %s, wanted %s", r.Key, objstore.ErrConflict, vs[len(vs)-1].ETag, etag)
	}
	return s.store(r.Key, r.Body, r.Cond), nil
}

// store appends a version and logs it. The caller holds the lock.
func (s *Store) store(key string, body []byte, cond objstore.Condition) objstore.Info {
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])
	s.seq++
	info := objstore.Info{
		Key:       key,
		ETag:      `"` + digest[:32] + `"`,
		VersionID: fmt.Sprintf("v%012d", s.seq),
		Size:      int64(len(body)),
		ModTime:   s.now(),
	}
	if at, found := slices.BinarySearch(s.keys, key); !found {
		s.keys = slices.Insert(s.keys, at, key)
	}
	v := version{Info: info, seq: s.seq, body: body}
	if s.Forget {
		s.versions[key] = []version{v}
		return info
	}
	s.versions[key] = append(s.versions[key], v)
	s.log = append(s.log, Write{Info: info, Seq: s.seq, Cond: cond, SHA256: digest, Body: body})
	return info
}

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now().UTC().Round(0)
	}
	return time.Now().UTC().Round(0)
}
