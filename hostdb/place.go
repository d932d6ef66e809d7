package hostdb

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// place is a database file in the making. It appears under its path only by
// commit, whole, durable and without any -wal, -shm or -journal beside it.
type place struct {
	path, tmp string
	file      *os.File
	out       *bufio.Writer
	hash      hash.Hash
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
	p := &place{path: path, tmp: tmp, file: file, hash: sha256.New()}
	p.out = bufio.NewWriterSize(io.MultiWriter(file, p.hash), 1<<20)
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

// finish makes what was written durable and returns its SHA-256.
func (p *place) finish() (digest string, err error) {
	if err := p.out.Flush(); err != nil {
		return "", err
	}
	if err := p.file.Sync(); err != nil {
		return "", err
	}
	return hex.EncodeToString(p.hash.Sum(nil)), p.file.Close()
}

// integrity runs SQLite's own check over the finished file, which it leaves as
// it is: immutable means no lock, no -wal and no -shm.
func (p *place) integrity(ctx context.Context) error {
	db, err := sql.Open("sqlite", "file:"+p.tmp+"?mode=ro&immutable=1")
	if err != nil {
		return err
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return fmt.Errorf("integrity check: %w", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: integrity check: %s", ErrBroken, verdict)
	}
	return nil
}

// commit moves the finished file to its path. A file that has appeared there
// since is an error.
func (p *place) commit() error {
	if err := checkVacant(p.path); err != nil {
		return err
	}
	if err := os.Rename(p.tmp, p.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(p.path))
}

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
