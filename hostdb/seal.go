package hostdb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/carlosframework/regionha/internal/record"
)

// identity tells the content of one file within one boot of the machine: the
// kernel changes a time whenever it lets anybody write. After a reboot it says
// nothing, because a crash of the machine may keep the data of a write and lose
// its time.
type identity struct {
	Boot  string `json:"boot"`
	Dev   uint64 `json:"dev"`
	Ino   uint64 `json:"ino"`
	Size  int64  `json:"size"`     // bytes
	Mtime int64  `json:"mtime_ns"` // since 1970
	Ctime int64  `json:"ctime_ns"`
}

// seal is <database>.seal: the digest that a database file had when it had this
// identity. It saves reading the file again and is believed no further.
type seal struct {
	V              int      `json:"v"` // 1
	DatabaseSHA256 string   `json:"database_sha256"`
	File           identity `json:"file"`
}

func sealPath(path string) string { return path + ".seal" }

// putSeal seals a finished file whose digest is known. Where the system has no
// identities it removes any seal.
func putSeal(path, digest string) error {
	at, err := identityOf(path)
	if errors.Is(err, errors.ErrUnsupported) {
		return removeAny(sealPath(path))
	}
	if err != nil {
		return err
	}
	return writeRecord(sealPath(path), seal{V: 1, DatabaseSHA256: digest, File: at})
}

// sealed returns the digest of the file at path if its seal fits; "" if there is
// none that does.
func sealed(path string) string {
	at, err := identityOf(path)
	if err != nil {
		return ""
	}
	s, err := readLocal[seal](sealPath(path))
	if err != nil || s.V != 1 || s.File != at {
		return ""
	}
	return s.DatabaseSHA256
}

func readLocal[T any](path string) (v T, err error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return v, err
	}
	return record.Decode[T](body)
}

// writeRecord makes path hold a record, whole or not at all. It is of this boot
// only and is not synced.
func writeRecord(path string, v any) error {
	body, err := record.Encode(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", body, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// removeAny removes files, where they are there.
func removeAny(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// move renames a finished database file to path, where nothing of a database may
// lie, and seals it there.
func move(from, path, digest string) error {
	if err := checkVacant(path); err != nil {
		return err
	}
	if err := errors.Join(removeAny(sealPath(path), sealPath(from)), os.Rename(from, path)); err != nil {
		return err
	}
	return errors.Join(putSeal(path, digest), syncDir(filepath.Dir(path)))
}
