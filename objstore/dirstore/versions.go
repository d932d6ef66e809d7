package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/carlosframework/regionha/objstore"
)

// ListVersions implements [objstore.Versioned].
func (s *Store) ListVersions(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		for o, err := range s.objects(ctx, prefix) {
			var infos []objstore.Info
			if err == nil {
				infos, err = chain(o)
			}
			if err != nil {
				yield(objstore.Info{}, fmt.Errorf("list versions %s: %w", prefix, err))
				return
			}
			for _, info := range infos {
				if !yield(info, nil) {
					return
				}
			}
		}
	}
}

// chain describes the versions of one object, newest first.
func chain(o object) ([]objstore.Info, error) {
	list, err := numbers(o.path)
	if err != nil {
		return nil, err
	}
	infos := make([]objstore.Info, 0, len(list))
	for _, n := range list {
		f, h, err := openFile(numberPath(o.path, n))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // pruned or deleted since it was listed
		case err != nil:
			return nil, err
		}
		f.Close()
		if !h.tombstone() {
			infos = append(infos, h.info(o.key, n))
		}
	}
	return infos, nil
}

// GetVersion implements [objstore.Versioned].
func (s *Store) GetVersion(ctx context.Context, key, id string) (io.ReadCloser, objstore.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, objstore.Info{}, fmt.Errorf("get %s version %s: %w", key, id, err)
	}
	v, err := s.openVersion(key, id)
	if err != nil {
		return nil, objstore.Info{}, fmt.Errorf("get %s version %s: %w", key, id, err)
	}
	return newBody(v.File, v.size), v.info(key, v.number), nil
}

// DeleteVersion implements [objstore.Versioned]. The only version of a key is
// removed; one among several leaves a tombstone, so that its number stays
// taken.
func (s *Store) DeleteVersion(ctx context.Context, key, id string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete %s version %s: %w: %w", key, id, objstore.ErrUnknown, err)
	}
	v, err := s.openVersion(key, id)
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("delete %s version %s: %w: %w", key, id, objstore.ErrUnknown, err)
	}
	v.Close()
	path := objectPath(s.root, key)
	if err := s.deleteNumber(path, v.number); err != nil {
		return fmt.Errorf("delete %s version %s: %w: %w", key, id, objstore.ErrUnknown, err)
	}
	return nil
}

func (s *Store) deleteNumber(path string, number uint64) error {
	target := numberPath(path, number)
	switch _, err := os.Lstat(path + versionsMark); {
	case err == nil:
		return s.writeTombstone(target)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(filepath.Dir(target))
}

// CopyVersion implements [objstore.Versioned].
func (s *Store) CopyVersion(ctx context.Context, src, id, dst string) (objstore.Info, error) {
	if err := objstore.CheckKey(dst); err != nil {
		return objstore.Info{}, fmt.Errorf("copy %s version %s: %w", src, id, err)
	}
	v, err := s.openVersion(src, id)
	if err != nil {
		return objstore.Info{}, fmt.Errorf("copy %s version %s to %s: %w", src, id, dst, err)
	}
	defer v.Close()
	body := io.NewSectionReader(v.File, headSize, v.size)
	info, err := s.PutReader(ctx, dst, body, v.size, objstore.Always())
	if err != nil {
		return objstore.Info{}, fmt.Errorf("copy %s version %s: %w", src, id, err)
	}
	return info, nil
}

// openVersion opens the version with exactly this id, or says ErrNotFound.
func (s *Store) openVersion(key, id string) (version, error) {
	if err := objstore.CheckKey(key); err != nil {
		return version{}, err
	}
	digits, _, _ := strings.Cut(id, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || number == 0 {
		return version{}, objstore.ErrNotFound
	}
	f, h, err := openFile(numberPath(objectPath(s.root, key), number))
	if errors.Is(err, fs.ErrNotExist) {
		return version{}, objstore.ErrNotFound
	}
	if err != nil {
		return version{}, err
	}
	if h.tombstone() || h.info(key, number).VersionID != id {
		f.Close()
		return version{}, objstore.ErrNotFound
	}
	return version{File: f, head: h, number: number}, nil
}
