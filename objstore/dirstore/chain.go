package dirstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/carlosframework/regionha/objstore"
)

// keep is how many of the newest later versions of a key stay, beside the
// first. The first stays for ever: its name is what a create-only write that
// comes late runs into.
const keep = 63

// maxLooks bounds how often a read starts again because what it saw was pruned.
const maxLooks = 100

// errOvertaken: so many writes came meanwhile that the number of this one may
// have been used before.
var errOvertaken = errors.New("more than 60 later writes passed this one by")

// numberPath returns the file of one version of the object at path.
func numberPath(path string, number uint64) string {
	if number == 1 {
		return path + firstMark
	}
	return filepath.Join(path+versionsMark, strconv.FormatUint(number, 10))
}

// numbers lists the versions of the object at path, newest first. Names that
// are no number are foreign and left out.
func numbers(path string) ([]uint64, error) {
	entries, err := os.ReadDir(path + versionsMark)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	list := make([]uint64, 0, len(entries)+1)
	for _, e := range entries {
		if n, ok := parseNumber(e.Name()); ok {
			list = append(list, n)
		}
	}
	switch _, err := os.Lstat(path + firstMark); {
	case err == nil:
		list = append(list, 1)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	slices.SortFunc(list, func(a, b uint64) int { return cmp.Compare(b, a) })
	return list, nil
}

// parseNumber reads the name of a later version.
func parseNumber(name string) (uint64, bool) {
	n, err := strconv.ParseUint(name, 10, 64)
	return n, err == nil && n >= 2 && strconv.FormatUint(n, 10) == name
}

// version is one opened version of an object.
type version struct {
	*os.File
	head
	number uint64
}

// newest opens the newest version of the object at path that is no tombstone.
// top is the highest number in use, tombstones counted; 0 where there is none.
// The error is objstore.ErrNotFound where no version is left.
func newest(path string) (v version, top uint64, err error) {
	for range maxLooks {
		list, err := numbers(path)
		if err != nil {
			return version{}, 0, err
		}
		v, err := newestOf(path, list)
		if errors.Is(err, fs.ErrNotExist) {
			continue // pruned or deleted since it was listed
		}
		return v, slices.Max(append(list, 0)), err
	}
	return version{}, 0, fmt.Errorf("%s: its versions vanish while they are read", path)
}

func newestOf(path string, list []uint64) (version, error) {
	for _, n := range list {
		f, h, err := openFile(numberPath(path, n))
		if err != nil {
			return version{}, err
		}
		if !h.tombstone() {
			return version{File: f, head: h, number: n}, nil
		}
		f.Close()
	}
	return version{}, objstore.ErrNotFound
}

// claim links temp as the next version of the object at path, where cond holds
// for the newest one. The link fails where another writer took the number, and
// then the newest version is another one and is looked at again.
func (s *Store) claim(ctx context.Context, path, temp string, cond objstore.Condition) (uint64, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		top, err := checkNewest(path, cond)
		if err != nil {
			return 0, err
		}
		number := top + 1
		err = s.link(path, temp, number)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if err := notOvertaken(path, number); err != nil {
			return 0, err
		}
		return number, syncDir(filepath.Dir(numberPath(path, number)))
	}
}

// link makes room for a version and gives temp its number.
func (s *Store) link(path, temp string, number uint64) error {
	if err := prune(path, number); err != nil {
		return err
	}
	target := numberPath(path, number)
	if err := s.ensureDir(filepath.Dir(target)); err != nil {
		return err
	}
	err := os.Link(temp, target)
	if errors.Is(err, fs.ErrNotExist) {
		s.forgetDirs() // somebody removed a directory
	}
	return err
}

// checkNewest compares the newest version with cond, and returns the highest
// number in use.
func checkNewest(path string, cond objstore.Condition) (top uint64, err error) {
	v, top, err := newest(path)
	absent := errors.Is(err, objstore.ErrNotFound)
	if err != nil && !absent {
		return 0, err
	}
	if !absent {
		v.Close()
	}
	named, match := cond.ETag()
	switch {
	case cond.IsAbsent() && !absent:
		return 0, fmt.Errorf("%w: it is there", objstore.ErrConflict)
	case match && absent:
		return 0, fmt.Errorf("%w: it is absent", objstore.ErrConflict)
	case match && named != v.etag():
		return 0, fmt.Errorf("%w: it is %s, wanted %s", objstore.ErrConflict, v.etag(), named)
	}
	return top, nil
}

// notOvertaken is how a writer that slept through many writes finds out. Its
// number is free again once it was used and pruned. By then keep-1 higher ones
// were taken, and the highest is never pruned.
func notOvertaken(path string, number uint64) error {
	list, err := numbers(path)
	if err == nil && len(list) > 0 && list[0] >= number+keep-1 {
		err = errOvertaken
	}
	return err
}

// prune removes the later versions that are too old once next is written.
func prune(path string, next uint64) error {
	if next <= keep+1 {
		return nil
	}
	list, err := numbers(path)
	if err != nil {
		return err
	}
	for _, n := range slices.Backward(list) {
		if n == 1 || n > next-keep {
			continue
		}
		if err := os.Remove(numberPath(path, n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
