package dirstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/carlosframework/regionha/objstore"
)

// List implements [objstore.Store]. It reads one directory at a time, and the
// head of each object as it comes to it.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		for o, err := range s.objects(ctx, prefix) {
			if err != nil {
				yield(objstore.Info{}, fmt.Errorf("list %s: %w", prefix, err))
				return
			}
			v, _, err := newest(o.path)
			switch {
			case errors.Is(err, objstore.ErrNotFound):
				continue // all its versions were deleted
			case err != nil:
				yield(objstore.Info{}, fmt.Errorf("list %s: %w", prefix, err))
				return
			}
			v.Close()
			if !yield(v.info(o.key, v.number), nil) {
				return
			}
		}
	}
}

// Foreign yields the files under the store's directory that are not its own, or
// are damaged, as paths relative to it. The store never touches them.
func (s *Store) Foreign(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			rel, err := filepath.Rel(s.root, path)
			switch {
			case err != nil:
				return err
			case rel == ".":
				return nil
			case rel == tempDir:
				return fs.SkipDir
			case s.owns(path, d):
				return nil
			case !yield(rel, nil):
				return fs.SkipAll
			case d.IsDir():
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			yield("", fmt.Errorf("look for foreign files: %w", err))
		}
	}
}

// owns reports whether the store wrote the file or directory at path.
func (s *Store) owns(path string, d fs.DirEntry) bool {
	kind, _ := parseName(d.Name())
	if _, isNumber := parseNumber(d.Name()); isNumber && strings.HasSuffix(filepath.Dir(path), versionsMark) {
		kind = first
	}
	switch kind {
	case inner, versions, part:
		return d.IsDir()
	case first:
		f, _, err := openFile(path)
		if err == nil {
			f.Close()
		}
		return !errors.Is(err, errForeign)
	}
	return false
}

// object is one key that has, or had, versions.
type object struct {
	key, path string
}

// objects yields the objects whose keys begin with prefix, in byte order.
func (s *Store) objects(ctx context.Context, prefix string) iter.Seq2[object, error] {
	return func(yield func(object, error) bool) {
		dir, base := s.root, ""
		if at := strings.LastIndexByte(prefix, '/'); at >= 0 {
			dir, base = objectPath(s.root, prefix[:at]), prefix[:at+1]
		}
		w := walk{ctx: ctx, prefix: prefix, yield: yield}
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err := w.dir(dir, base); err != nil && !errors.Is(err, errStop) {
			yield(object{}, err)
		}
	}
}

// errStop: the caller of an iterator has seen enough.
var errStop = errors.New("stop")

type walk struct {
	ctx    context.Context
	prefix string
	yield  func(object, error) bool
}

// entry is a name on disk. Its order is that of all keys that it stands for.
type entry struct {
	order string // the bytes of the component, and a slash for the keys below it
	kind  kind
	path  string
}

// dir walks a directory whose keys all begin with base.
func (w walk) dir(path, base string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	entries, err := readEntries(path)
	if err != nil {
		return err
	}
	for i, e := range entries {
		key := base + e.order
		if i > 0 && e.kind != inner && entries[i-1].order == e.order {
			continue // the first and the later versions of one object
		}
		within := strings.HasPrefix(key, w.prefix)
		switch {
		case e.kind == inner || e.kind == part:
			if within || strings.HasPrefix(w.prefix, key) {
				err = w.dir(e.path, key)
			}
		case within && !w.yield(object{key: key, path: e.path}, nil):
			err = errStop
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readEntries reads the store's own names in a directory, in the order of the
// keys that they stand for.
func readEntries(dir string) ([]entry, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(names))
	for _, d := range names {
		kind, raw := parseName(d.Name())
		e := entry{order: raw, kind: kind, path: filepath.Join(dir, d.Name())}
		switch kind {
		case foreign:
			continue
		case inner, part:
			if !d.IsDir() {
				continue
			}
		case first:
			e.path = strings.TrimSuffix(e.path, firstMark)
		case versions:
			e.path = strings.TrimSuffix(e.path, versionsMark)
		}
		if kind == inner {
			e.order += "/"
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.order, b.order) })
	return entries, nil
}
