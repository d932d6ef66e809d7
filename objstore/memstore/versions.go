package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/carlosframework/regionha/objstore"
)

var (
	_ objstore.Versioned = (*Store)(nil)
	_ objstore.Copier    = (*Store)(nil)
)

// ListVersions implements [objstore.Versioned].
func (s *Store) ListVersions(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return s.list(ctx, Request{Op: OpListVersions, Key: prefix}, func(vs []version, upTo uint64) []objstore.Info {
		var infos []objstore.Info
		for _, v := range slices.Backward(vs) {
			if v.seq <= upTo {
				infos = append(infos, v.Info)
			}
		}
		return infos
	})
}

// GetVersion implements [objstore.Versioned].
func (s *Store) GetVersion(ctx context.Context, key, id string) (io.ReadCloser, objstore.Info, error) {
	if _, err := s.arrive(ctx, Request{Op: OpGetVersion, Key: key, Version: id}); err != nil {
		return nil, objstore.Info{}, fmt.Errorf("get %s version %s: %w", key, id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.version(key, id)
	if err != nil {
		return nil, objstore.Info{}, fmt.Errorf("get %s version %s: %w", key, id, err)
	}
	return io.NopCloser(bytes.NewReader(v.body)), v.Info, nil
}

// DeleteVersion implements [objstore.Versioned].
func (s *Store) DeleteVersion(ctx context.Context, key, id string) error {
	fault, err := s.arrive(ctx, Request{Op: OpDeleteVersion, Key: key, Version: id})
	if err != nil {
		return fmt.Errorf("delete %s version %s: %w: %w", key, id, objstore.ErrUnknown, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions[key] = slices.DeleteFunc(s.versions[key], func(v version) bool { return v.VersionID == id })
	if len(s.versions[key]) == 0 {
		delete(s.versions, key)
		if at, found := slices.BinarySearch(s.keys, key); found {
			s.keys = slices.Delete(s.keys, at, at+1)
		}
	}
	if fault == LoseAnswer {
		return fmt.Errorf("delete %s version %s: %w: %w", key, id, objstore.ErrUnknown, ErrInjected)
	}
	return nil
}

// CopyVersion implements [objstore.Versioned].
func (s *Store) CopyVersion(ctx context.Context, src, id, dst string) (objstore.Info, error) {
	if err := objstore.CheckKey(dst); err != nil {
		return objstore.Info{}, fmt.Errorf("copy %s version %s: %w", src, id, err)
	}
	fault, err := s.arrive(ctx, Request{Op: OpCopyVersion, Key: dst, Version: id, Cond: objstore.Always()})
	if err != nil {
		return objstore.Info{}, fmt.Errorf("copy %s version %s to %s: %w: %w", src, id, dst, objstore.ErrUnknown, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.version(src, id)
	if err != nil {
		return objstore.Info{}, fmt.Errorf("copy %s version %s to %s: %w", src, id, dst, err)
	}
	info := s.store(dst, v.body, objstore.Always())
	if fault == LoseAnswer {
		return objstore.Info{}, fmt.Errorf("copy %s version %s to %s: %w: %w", src, id, dst, objstore.ErrUnknown, ErrInjected)
	}
	return info, nil
}

// Copy implements [objstore.Copier].
func (s *Store) Copy(ctx context.Context, src objstore.Info, dst string) (objstore.Info, error) {
	if err := errors.Join(objstore.CheckKey(src.Key), objstore.CheckKey(dst)); err != nil {
		return objstore.Info{}, fmt.Errorf("copy: %w", err)
	}
	fault, err := s.arrive(ctx, Request{Op: OpCopy, Key: dst, Version: src.VersionID, Cond: objstore.Always()})
	if err != nil {
		return objstore.Info{}, fmt.Errorf("copy %s to %s: %w: %w", src.Key, dst, objstore.ErrUnknown, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.exactly(src)
	if err != nil {
		return objstore.Info{}, fmt.Errorf("copy %s to %s: %w", src.Key, dst, err)
	}
	info := s.store(dst, v.body, objstore.Always())
	if fault == LoseAnswer {
		return objstore.Info{}, fmt.Errorf("copy %s to %s: %w: %w", src.Key, dst, objstore.ErrUnknown, ErrInjected)
	}
	return info, nil
}

// exactly finds what src names. The caller holds the lock.
func (s *Store) exactly(src objstore.Info) (v version, err error) {
	vs := s.versions[src.Key]
	switch {
	case len(vs) == 0:
		return v, objstore.ErrNotFound
	case src.VersionID == "":
		v = vs[len(vs)-1]
	default:
		v, err = s.version(src.Key, src.VersionID)
	}
	if err == nil && v.ETag != src.ETag {
		err = fmt.Errorf("%w: it is %s, wanted %s", objstore.ErrConflict, v.ETag, src.ETag)
	}
	return v, err
}

// version finds one version. The caller holds the lock.
func (s *Store) version(key, id string) (version, error) {
	for _, v := range s.versions[key] {
		if v.VersionID == id {
			return v, nil
		}
	}
	return version{}, objstore.ErrNotFound
}
