package hostguard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/carlosframework/regionha/internal/record"
)

// tmpSuffix marks a file that is being written. A reader ignores it, and the
// next write of the same record replaces it.
const tmpSuffix = ".tmp"

// disk writes records whole. Before each of its steps it calls before, which
// tests set to end a write there as a crash would.
type disk struct {
	before func(step, path string) error
}

// write replaces path by body: a reader, and whoever comes after a crash, finds
// the old bytes or the new ones. The caller holds the lock that covers path.
func (d disk) write(path string, body []byte) error {
	tmp := path + tmpSuffix
	var f *os.File
	return d.run(tmp, []step{
		{"create", func() (err error) {
			f, err = os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
			return err
		}},
		{"write", func() error { return closeOnError(f, func() error { _, err := f.Write(body); return err }) }},
		{"sync", func() error { return closeOnError(f, f.Sync) }},
		{"close", func() error { return f.Close() }},
		{"rename", func() error { return os.Rename(tmp, path) }},
		{"sync directory", func() error { return syncDir(filepath.Dir(path)) }},
	})
}

// remove deletes path durably. What is not there is removed.
func (d disk) remove(path string) error {
	return d.run(path, []step{
		{"remove", func() error {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}},
		{"sync directory", func() error { return syncDir(filepath.Dir(path)) }},
	})
}

type step struct {
	name string
	do   func() error
}

func (d disk) run(path string, steps []step) error {
	for _, s := range steps {
		if d.before != nil {
			if err := d.before(s.name, path); err != nil {
				return err
			}
		}
		if err := s.do(); err != nil {
			return fmt.Errorf("%s %s: %w", s.name, path, err)
		}
	}
	return nil
}

func closeOnError(f *os.File, do func() error) error {
	err := do()
	if err != nil {
		f.Close()
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makeDir creates dir and its missing parents, each durable in its parent.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		if err := makeDir(filepath.Dir(dir)); err != nil {
			return err
		}
		return makeDir(dir)
	case err != nil:
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// load reads a record. found is false only where no file has the name.
func load[T any](path string) (v T, found bool, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, false, nil
	}
	if err != nil {
		return v, false, err
	}
	if v, err = record.Decode[T](raw); err != nil {
		return v, false, fmt.Errorf("%s: %w", path, err)
	}
	return v, true, nil
}

func (d disk) save(path string, v any) error {
	raw, err := record.Encode(v)
	if err != nil {
		return err
	}
	return d.write(path, raw)
}
