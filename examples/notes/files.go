package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A file is an upload that is whole.
type file struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// files is the directory of the uploads.
type files string

// unfinished is the prefix of an upload's name until it is whole.
const unfinished = ".upload-"

// openFiles makes the directory, and removes what an earlier process left
// unfinished.
func openFiles(dir string) (files, error) {
	if dir == "" {
		return "", errors.New("it is not set")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	left, err := filepath.Glob(filepath.Join(dir, unfinished+"*"))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return files(dir), err
}

var errBadName = errors.New("a file's name is one path element of at most 200 bytes that does not start with a dot")

// put stores a file under name: whole, or not at all.
func (f files) put(name string, r io.Reader) (err error) {
	if name == "" || name[0] == '.' || len(name) > 200 || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("%q: %w", name, errBadName)
	}
	tmp, err := os.CreateTemp(string(f), unfinished)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = io.Copy(tmp, r)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), filepath.Join(string(f), name))
}

// list reads every file's digest, sorted by name.
func (f files) list() ([]file, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, err
	}
	list := []file{}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name()[0] == '.' {
			continue
		}
		one, err := f.digest(e.Name())
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

func (f files) digest(name string) (file, error) {
	r, err := os.Open(filepath.Join(string(f), name))
	if err != nil {
		return file{}, err
	}
	defer r.Close() // only read
	sum := sha256.New()
	size, err := io.Copy(sum, r)
	return file{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}
