package hostdb

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"

	"github.com/superfly/ltx"
)

// image is a full LTX image in the making, in a spool file: a large database
// never stands in memory.
type image struct {
	header ltx.Header
	file   *os.File
	out    *bufio.Writer
	hash   hash.Hash
	enc    *ltx.Encoder
	size   int64
}

// newImage starts an image in a file in dir. The caller discards it.
func newImage(dir string, h ltx.Header) (*image, error) {
	file, err := os.CreateTemp(dir, "image-*")
	if err != nil {
		return nil, err
	}
	m := &image{header: h, file: file, hash: sha256.New()}
	m.out = bufio.NewWriterSize(io.MultiWriter(file, m.hash), 1<<20)
	if m.enc, err = ltx.NewEncoder(m.out); err == nil {
		m.enc.SetSpillDir(dir)
		err = m.enc.EncodeHeader(h)
	}
	if err != nil {
		m.discard()
		return nil, err
	}
	return m, nil
}

// page adds the next page. The lock page of SQLite is left out.
func (m *image) page(pgno uint32, data []byte) error {
	if pgno == m.header.LockPgno() {
		return nil
	}
	return m.enc.EncodePage(ltx.PageHeader{Pgno: pgno}, data)
}

func (m *image) finish() (err error) {
	if err := errors.Join(m.enc.Close(), m.out.Flush()); err != nil {
		return err
	}
	m.size, err = m.file.Seek(0, io.SeekEnd)
	return err
}

func (m *image) content() content { return content{ReadSeeker: m.file, size: m.size} }

func (m *image) sha256() string { return hex.EncodeToString(m.hash.Sum(nil)) }

func (m *image) discard() {
	if m.enc != nil {
		m.enc.Cleanup() // its error is of a file that is ours to lose
	}
	m.file.Close()
	os.Remove(m.file.Name())
}
