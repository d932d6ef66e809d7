package stopevidence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// inode identifies a file while something holds it.
type inode struct{ dev, ino uint64 }

// file is what a stat says of one.
type file struct {
	inode
	born  int64 // ns since 1970; 0: the file system does not say
	links uint32
}

// statFile looks at a file without opening it. Where name is empty it is the one
// that is open as dir. Nobody is asked but this machine: a file server that does
// not answer holds up nothing.
func statFile(dir int, name string) (file, error) {
	flags := unix.AT_STATX_DONT_SYNC
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	const mask = unix.STATX_INO | unix.STATX_NLINK | unix.STATX_BTIME
	var stat unix.Statx_t
	if err := unix.Statx(dir, name, flags, mask, &stat); err != nil {
		return file{}, err
	}
	f := file{
		inode: inode{dev: unix.Mkdev(stat.Dev_major, stat.Dev_minor), ino: stat.Ino},
		links: stat.Nlink,
	}
	if stat.Mask&unix.STATX_BTIME != 0 {
		f.born = stat.Btime.Sec*1e9 + int64(stat.Btime.Nsec)
	}
	return f, nil
}

// statPath looks at the file at a path. Where nothing is there, ok is false.
func statPath(path string) (f file, ok bool, err error) {
	switch f, err = statFile(unix.AT_FDCWD, path); {
	case err == nil:
		return f, true, nil
	case errors.Is(err, fs.ErrNotExist):
		return file{}, false, nil
	}
	return file{}, false, &fs.PathError{Op: "stat", Path: path, Err: err}
}

func processDescriptors(paths []string) ([]Descriptor, error) {
	names := map[inode]string{}
	for _, path := range paths {
		f, ok, err := statPath(path)
		if err != nil {
			return nil, err
		}
		if ok {
			names[f.inode] = path
		}
	}
	self, err := readStat(unix.AT_FDCWD, "/proc/self/stat")
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
		f, err := statFile(fd, "")
		if errors.Is(err, unix.EBADF) {
			continue // closed since
		}
		if err != nil {
			return nil, fmt.Errorf("descriptor %d: %w", fd, err)
		}
		if path, ok := names[f.inode]; ok {
			held = append(held, Descriptor{PID: os.Getpid(), Start: self.start, FD: fd, Dev: f.dev, Ino: f.ino, Born: f.born, Path: path})
		}
	}
	return held, nil
}
