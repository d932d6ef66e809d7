package dirstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// maxDurable bounds the memory of directories that are known to be on disk.
const maxDurable = 1 << 16

// ensureDir makes dir and what is missing above it, and syncs each new entry
// into its parent. A directory that another process made may not be synced
// yet, so the first use by this process syncs too.
func (s *Store) ensureDir(dir string) error {
	s.mu.Lock()
	_, known := s.durable[dir]
	s.mu.Unlock()
	if known || dir == s.root {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := s.ensureDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := syncDir(parent); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.durable) >= maxDurable {
		clear(s.durable)
	}
	s.durable[dir] = struct{}{}
	return nil
}

// forgetDirs drops what is known of directories, after one was found missing.
func (s *Store) forgetDirs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.durable)
}
