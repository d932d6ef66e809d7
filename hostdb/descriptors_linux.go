package hostdb

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// Descriptors returns the descriptors by which this replicator holds the
// database, its -wal and its -shm right now. No other code of the process may
// hold any, so they are all that the process has. They change while Run runs.
func (r *Replicator) Descriptors() ([]Descriptor, error) {
	held, err := heldBy(r.cfg.Path, r.cfg.Path+"-wal", r.cfg.Path+"-shm")
	if err != nil {
		return nil, fmt.Errorf("descriptors of %s: %w", r.cfg.Path, err)
	}
	return held, nil
}

// inode identifies a file while something holds it.
type inode struct{ dev, ino uint64 }

// heldBy finds this process's descriptors of the files at paths. The files are
// only looked at: opening and closing one would drop its locks.
func heldBy(paths ...string) ([]Descriptor, error) {
	names := map[inode]string{}
	for _, path := range paths {
		var stat syscall.Stat_t
		switch err := syscall.Stat(path, &stat); {
		case err == nil:
			names[inode{uint64(stat.Dev), stat.Ino}] = path
		case !errors.Is(err, fs.ErrNotExist):
			return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
		}
	}
	start, err := startTime()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	var held []Descriptor
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		var stat syscall.Stat_t
		if err := syscall.Fstat(fd, &stat); errors.Is(err, syscall.EBADF) {
			continue // closed since
		} else if err != nil {
			return nil, fmt.Errorf("descriptor %d: %w", fd, err)
		}
		file := inode{uint64(stat.Dev), stat.Ino}
		if path, ok := names[file]; ok {
			held = append(held, Descriptor{PID: os.Getpid(), Start: start, FD: fd, Dev: file.dev, Ino: file.ino, Path: path})
		}
	}
	return held, nil
}

// startTime reads field 22 of /proc/self/stat. The fields follow the command
// name, which is in parentheses and may hold anything.
func startTime() (uint64, error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/self/stat has %d fields after the name", len(fields))
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}
