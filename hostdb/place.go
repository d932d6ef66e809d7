package hostdb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// place is a database file in the making. It appears under its path only by
// commit, whole, durable and without any -wal, -shm or -journal beside it.
type place struct {
	path, tmp string
	file      *os.File
	out       *bufio.Writer
	digester  digester
	digest    string // once finished
}

// newPlace refuses a path where anything of a database lies already. A
// temporary file that a crash left there is replaced.
func newPlace(path string) (*place, error) {
	if err := checkVacant(path); err != nil {
		return nil, err
	}
	tmp := path + ".restoring"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	file, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	p := &place{path: path, tmp: tmp, file: file}
	p.out = bufio.NewWriterSize(io.MultiWriter(file, &p.digester), 1<<20)
	return p, nil
}

// checkVacant refuses a path where a database or a part of one lies.
func checkVacant(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		switch _, err := os.Lstat(path + suffix); {
		case err == nil:
			return fmt.Errorf("%w: %s exists", ErrNotFresh, path+suffix)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

// finish makes what was written durable and returns its digest.
func (p *place) finish() (digest string, err error) {
	if err := errors.Join(p.out.Flush(), p.file.Sync(), p.file.Close()); err != nil {
		return "", err
	}
	p.digest = p.digester.finish().digest()
	return p.digest, nil
}

// commit moves the finished file to its path. A file that has appeared there
// since is an error.
func (p *place) commit() error { return move(p.tmp, p.path, p.digest) }

// discard removes what was not committed. After commit it does nothing.
func (p *place) discard() {
	p.file.Close()
	os.Remove(p.tmp)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
