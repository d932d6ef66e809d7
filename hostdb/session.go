package hostdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/carlosframework/regionha/internal/record"
)

// session is session.json in a replicator's meta directory: whose state the
// directory holds. State of another generation would be uploaded as this one's.
type session struct {
	V          int    `json:"v"` // 1
	Location   string `json:"location"`
	Generation string `json:"generation"`
	Session    uint64 `json:"session"`
	Base       uint64 `json:"base"`
}

const sessionFile = "session.json"

// readMeta reports whether dir is this session's meta directory already, so that
// a replicator of it may have run here. A directory of anything else is
// [ErrNotFresh].
func readMeta(dir string, want session) (again bool, err error) {
	body, err := os.ReadFile(filepath.Join(dir, sessionFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, checkUnused(dir)
	}
	if err != nil {
		return false, err
	}
	have, err := record.Decode[session](body)
	if err != nil {
		return false, fmt.Errorf("%w: %s of %s: %w", ErrNotFresh, sessionFile, dir, err)
	}
	if have != want {
		return false, fmt.Errorf("%w: the meta directory %s is of generation %s, session %d, base %d; this is %s, %d, %d",
			ErrNotFresh, dir, have.Generation, have.Session, have.Base, want.Generation, want.Session, want.Base)
	}
	return true, nil
}

// checkUnused refuses a directory with anything in it that markMeta did not
// leave half done.
func checkUnused(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() != sessionFile+".tmp" {
			return fmt.Errorf("%w: the meta directory %s holds %s and no %s", ErrNotFresh, dir, e.Name(), sessionFile)
		}
	}
	return err
}

// markMeta makes dir this session's meta directory, durably.
func markMeta(dir string, want session) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	body, err := record.Encode(want)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, sessionFile), func(f *os.File) error {
		_, err := f.Write(body)
		return err
	})
}

// replaceFile makes path hold what write writes, whole and durable or not at
// all.
func replaceFile(path string, write func(*os.File) error) error {
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
