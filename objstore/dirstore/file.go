package dirstore

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/carlosframework/regionha/objstore"
)

// Each file begins with a head of one line, padded to headSize bytes:
//
//	regionha-object 1 <sha256> <nonce> <time> <size>
//
// The digest of the body is the ETag, and the nonce makes the version id unique
// where a number comes back after a deletion. A head with no digest ("-") is a
// tombstone: it keeps the number of a deleted version taken.
const (
	headSize  = 160
	headMagic = "regionha-object 1 "
	timeForm  = "2006-01-02T15:04:05.000000000Z"
)

// errForeign: a file with the name of an object but not its content.
var errForeign = errors.New("not a file of this store, or a damaged one")

type head struct {
	sha256 string // hex; "" for a tombstone
	nonce  string
	at     time.Time
	size   int64
}

func (h head) encode() []byte {
	digest := h.sha256
	if digest == "" {
		digest = "-"
	}
	line := fmt.Sprintf("%s%s %s %s %d", headMagic, digest, h.nonce, h.at.UTC().Format(timeForm), h.size)
	b := bytes.Repeat([]byte{' '}, headSize)
	copy(b, line)
	b[headSize-1] = '\n'
	return b
}

// parseHead reads exactly what encode writes.
func parseHead(b []byte) (head, error) {
	f := strings.Fields(string(b))
	if len(f) != 6 {
		return head{}, errForeign
	}
	at, err := time.Parse(timeForm, f[4])
	if err != nil {
		return head{}, errForeign
	}
	size, err := strconv.ParseInt(f[5], 10, 64)
	if err != nil || size < 0 {
		return head{}, errForeign
	}
	h := head{sha256: f[2], nonce: f[3], at: at, size: size}
	if h.sha256 == "-" {
		h.sha256 = ""
	}
	if len(f[3]) != 16 || h.sha256 != "" && len(h.sha256) != 2*sha256.Size || !bytes.Equal(h.encode(), b) {
		return head{}, errForeign
	}
	return h, nil
}

func (h head) tombstone() bool { return h.sha256 == "" }

func (h head) etag() string { return `"` + h.sha256 + `"` }

// info describes the version of key with this head and number.
func (h head) info(key string, number uint64) objstore.Info {
	return objstore.Info{
		Key:       key,
		ETag:      h.etag(),
		VersionID: fmt.Sprintf("%d-%s", number, h.nonce),
		Size:      h.size,
		ModTime:   h.at,
	}
}

// openFile opens a stored file, checks its length and leaves the offset at the
// body. The error is fs.ErrNotExist where there is no such file. What is no
// regular file is foreign: following a link would leave the store, and opening
// a pipe would wait for ever.
func openFile(path string) (*os.File, head, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, head{}, err
	}
	if !st.Mode().IsRegular() {
		return nil, head{}, fmt.Errorf("%s: %w: it is no regular file", path, errForeign)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, head{}, err
	}
	h, err := readHead(f)
	if err != nil {
		f.Close()
		return nil, head{}, fmt.Errorf("%s: %w", path, err)
	}
	return f, h, nil
}

func readHead(f *os.File) (head, error) {
	var b [headSize]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return head{}, errForeign
		}
		return head{}, err
	}
	h, err := parseHead(b[:])
	if err != nil {
		return head{}, err
	}
	st, err := f.Stat()
	if err != nil {
		return head{}, err
	}
	if st.Size() != headSize+h.size {
		return head{}, fmt.Errorf("%w: it has %d bytes, not %d", errForeign, st.Size(), headSize+h.size)
	}
	return h, nil
}

// writeTemp writes a whole, synced file with size bytes of body under .tmp. The
// caller links it into place and removes it.
func (s *Store) writeTemp(body io.Reader, size int64) (string, head, error) {
	h := head{nonce: newNonce(), at: now(), size: size}
	f, err := s.createTemp(h.nonce)
	if err != nil {
		return "", head{}, err
	}
	h.sha256, err = copyBody(f, body, size)
	if err == nil {
		_, err = f.WriteAt(h.encode(), 0)
	}
	return f.Name(), h, finish(f, err)
}

func (s *Store) createTemp(nonce string) (*os.File, error) {
	return os.OpenFile(filepath.Join(s.root, tempDir, nonce), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
}

// finish syncs and closes a file that was written without err, and removes any
// other.
func finish(f *os.File, err error) error {
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// copyBody writes body behind the place of the head, insists on its size, and
// returns its digest.
func copyBody(f *os.File, body io.Reader, size int64) (string, error) {
	if _, err := f.Seek(headSize, io.SeekStart); err != nil {
		return "", err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(body, size+1))
	if err != nil {
		return "", err
	}
	if n != size {
		return "", fmt.Errorf("the body is not of the announced %d bytes", size)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// writeTombstone replaces the version at path, keeping its number taken.
func (s *Store) writeTombstone(path string) error {
	h := head{nonce: newNonce(), at: now()}
	f, err := s.createTemp(h.nonce)
	if err != nil {
		return err
	}
	_, err = f.Write(h.encode())
	if err := finish(f, err); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// now is the time as a head holds it.
func now() time.Time { return time.Now().UTC().Round(0) }

func newNonce() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}
