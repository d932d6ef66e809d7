package hostdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/carlosframework/regionha/objstore"
)

// inMemory is the longest body, in bytes, that is sent from memory; a longer one
// streams from a file.
const inMemory = 1 << 20

// errOtherBytes: a key that should hold what we write holds something else.
var errOtherBytes = errors.New("the key holds other bytes")

// create writes an immutable object from the start of r: create-only, and the
// same bytes again are success. Other bytes under the key are errOtherBytes.
// Where the write's outcome is a conflict or unknown it reads the key and
// compares; any other error leaves the outcome open, and the same call again
// settles it. It costs one PUT, and one GET only then.
func create(ctx context.Context, s objstore.Store, key string, r io.ReadSeeker, size int64) (objstore.Info, error) {
	info, putErr := put(ctx, s, key, r, size)
	if putErr == nil {
		return info, nil
	}
	stored, info, err := openAny(ctx, s, key, "", 0)
	if err != nil {
		return objstore.Info{}, fmt.Errorf("%w; looking again: %w", putErr, err)
	}
	defer stored.Close()
	same, err := equal(stored, r)
	switch {
	case err != nil:
		return objstore.Info{}, fmt.Errorf("%w; comparing: %w", putErr, err)
	case !same:
		return objstore.Info{}, fmt.Errorf("create %s: %w", key, errOtherBytes)
	}
	return info, nil
}

func put(ctx context.Context, s objstore.Store, key string, r io.ReadSeeker, size int64) (objstore.Info, error) {
	streams, ok := s.(objstore.Streamer)
	switch {
	case ok && size > inMemory:
		return streams.PutReader(ctx, key, r, size, objstore.IfAbsent())
	case size > objstore.MaxGet:
		return objstore.Info{}, fmt.Errorf("put %s: %w: %d bytes, and the store does not stream", key, objstore.ErrTooLarge, size)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return objstore.Info{}, err
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return objstore.Info{}, fmt.Errorf("put %s: read body: %w", key, err)
	}
	return s.Put(ctx, key, body, objstore.IfAbsent())
}

// equal compares a stored body with ours, from its start.
func equal(stored io.Reader, ours io.ReadSeeker) (bool, error) {
	if _, err := ours.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, aErr := io.ReadFull(stored, a)
		m, bErr := io.ReadFull(ours, b)
		for _, err := range []error{aErr, bErr} {
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				return false, err
			}
		}
		if !bytes.Equal(a[:n], b[:m]) {
			return false, nil
		}
		if aErr != nil || bErr != nil {
			return true, nil // equal so far and of equal length: both end here
		}
	}
}

// content is a body of known size.
type content struct {
	io.ReadSeeker
	size int64
	file *os.File // a spool file to remove; nil in memory
}

// spool makes a body of r: r itself if it can be read again, otherwise a copy in
// memory, or in a file in dir if it is long. The caller discards the content.
func spool(r io.Reader, dir string) (content, error) {
	if again, ok := r.(io.ReadSeeker); ok {
		size, err := again.Seek(0, io.SeekEnd)
		return content{ReadSeeker: again, size: size}, err
	}
	head, err := io.ReadAll(io.LimitReader(r, inMemory+1))
	if err != nil {
		return content{}, err
	}
	if len(head) <= inMemory {
		return inline(head), nil
	}
	file, err := os.CreateTemp(dir, "upload-*")
	if err != nil {
		return content{}, err
	}
	c := content{ReadSeeker: file, file: file}
	if c.size, err = io.Copy(file, io.MultiReader(bytes.NewReader(head), r)); err != nil {
		c.discard()
		return content{}, err
	}
	return c, nil
}

func inline(body []byte) content {
	return content{ReadSeeker: bytes.NewReader(body), size: int64(len(body))}
}

func (c content) discard() {
	if c.file != nil {
		c.file.Close()
		os.Remove(c.file.Name())
	}
}
