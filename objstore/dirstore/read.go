package dirstore

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/carlosframework/regionha/objstore"
)

// open opens the newest version of key at the start of its body.
func (s *Store) open(ctx context.Context, key string) (*os.File, objstore.Info, error) {
	if err := objstore.CheckKey(key); err != nil {
		return nil, objstore.Info{}, fmt.Errorf("get: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, objstore.Info{}, fmt.Errorf("get %s: %w", key, err)
	}
	v, _, err := newest(objectPath(s.root, key))
	if err != nil {
		return nil, objstore.Info{}, fmt.Errorf("get %s: %w", key, err)
	}
	return v.File, v.info(key, v.number), nil
}

// body reads the rest of an object and insists on its length.
type body struct {
	f    *os.File
	left int64
}

func newBody(f *os.File, left int64) *body { return &body{f: f, left: left} }

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.f.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err == io.EOF && b.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *body) Close() error { return b.f.Close() }
