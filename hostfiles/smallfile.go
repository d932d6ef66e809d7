package hostfiles

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// createSmall makes a file of mode 0600 that holds body, whole or not at all,
// and never over another: the same bytes are success, others are
// [ErrOtherKey]. A file that cannot be read is an error, never absent.
func createSmall(path string, body []byte) error {
	err := withTemporary(path, body, func(temporary string) error { return os.Link(temporary, path) })
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	there, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(there, body) {
		return fmt.Errorf("%w: %s", ErrOtherKey, path)
	}
	return nil
}

// replaceSmall makes path a file of mode 0600 that holds body; a crash leaves
// what was there or body, never less.
func replaceSmall(path string, body []byte) error {
	return withTemporary(path, body, func(temporary string) error { return os.Rename(temporary, path) })
}

// withTemporary writes body durably beside path, has finish put it in place, and
// makes that durable.
func withTemporary(path string, body []byte, finish func(temporary string) error) error {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, ".new-*") // mode 0600 from the first byte
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(body)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := finish(file.Name()); err != nil {
		return err
	}
	return syncDir(dir)
}
