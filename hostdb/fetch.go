package hostdb

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/superfly/ltx"
	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/objstore"
)

// parallelFetches is how many objects of a set are read at the same time.
const parallelFetches = 8

// fetched is a set whose objects are open for one pass over them. The first,
// the full image, streams from the store while it is read. The others are small
// and many: they lie in one spool file, so that no connection waits idle for its
// turn and no descriptor is held per object.
type fetched struct {
	set     RecoverySet
	sources []*ltx.Decoder
	headers []ltx.Header

	image io.ReadCloser
	first *meter
	spool *os.File
}

// fetch opens the objects of set and checks that their headers are the chain
// that the set names. dir holds the spool file. The caller closes it.
func fetch(ctx context.Context, s objstore.Store, set RecoverySet, dir string) (_ *fetched, err error) {
	f := &fetched{set: set}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if err := f.spoolTail(ctx, s, dir); err != nil {
		return nil, err
	}
	if f.image, _, err = open(ctx, s, set.Objects[0]); err != nil {
		return nil, err
	}
	f.first = newMeter(f.image)
	f.add(bufio.NewReaderSize(f.first, 256<<10))
	offset := int64(0)
	for _, ref := range set.Objects[1:] {
		f.add(bufio.NewReaderSize(io.NewSectionReader(f.spool, offset, ref.Size), 16<<10))
		offset += ref.Size
	}
	return f, f.readHeaders()
}

func (f *fetched) add(r io.Reader) {
	dec := ltx.NewDecoder(r)
	dec.SetRetainPageIndex(false)
	f.sources = append(f.sources, dec)
}

// spoolTail reads every object but the first into one file, each at its place.
func (f *fetched) spoolTail(ctx context.Context, s objstore.Store, dir string) (err error) {
	tail := f.set.Objects[1:]
	if len(tail) == 0 {
		return nil
	}
	if f.spool, err = os.CreateTemp(dir, "spool-*"); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelFetches)
	offset := int64(0)
	for _, ref := range tail {
		to := io.NewOffsetWriter(f.spool, offset)
		group.Go(func() error { return download(ctx, s, ref, to) })
		offset += ref.Size
	}
	return group.Wait()
}

// readHeaders checks that each object is the file that its key says, and that
// together they are one chain from the first transaction to the set's last.
func (f *fetched) readHeaders() error {
	var at ltx.TXID
	for i, dec := range f.sources {
		ref := f.set.Objects[i]
		if err := dec.DecodeHeader(); err != nil {
			return f.fault(i, err)
		}
		h := dec.Header()
		name, err := nameOf(ref.Key)
		switch {
		case err != nil:
			return fmt.Errorf("%w: object %s: %w", ErrBroken, ref.Key, err)
		case h.MinTXID != name.min || h.MaxTXID != name.max:
			return fmt.Errorf("%w: object %s holds TXIDs %s to %s", ErrBroken, ref.Key, h.MinTXID, h.MaxTXID)
		case i == 0 && !h.IsSnapshot():
			return fmt.Errorf("%w: object %s is the first of its set and no full image", ErrBroken, ref.Key)
		case i > 0 && !ltx.IsContiguous(at, h.MinTXID, h.MaxTXID):
			return fmt.Errorf("%w: object %s does not go on from TXID %d", ErrBroken, ref.Key, at)
		case i > 0 && h.PageSize != f.headers[0].PageSize:
			return fmt.Errorf("%w: object %s has pages of %d bytes, the image of %d", ErrBroken, ref.Key, h.PageSize, f.headers[0].PageSize)
		}
		at = h.MaxTXID
		f.headers = append(f.headers, h)
	}
	if at != ltx.TXID(f.set.MaxTXID) {
		return fmt.Errorf("%w: the objects end at TXID %d, the set at %d", ErrBroken, at, f.set.MaxTXID)
	}
	return nil
}

// last is the header of the newest object: the size and time of the result.
func (f *fetched) last() ltx.Header { return f.headers[len(f.headers)-1] }

// fault names the object that could not be decoded. A stream that broke says
// nothing about the object.
func (f *fetched) fault(i int, err error) error {
	key := f.set.Objects[i].Key
	if i == 0 && f.first.err != nil {
		return fmt.Errorf("read %s: %w", key, f.first.err)
	}
	return fmt.Errorf("%w: object %s: %w", ErrBroken, key, err)
}

func (f *fetched) close() {
	if f.image != nil {
		f.image.Close()
	}
	if f.spool != nil {
		f.spool.Close()
		os.Remove(f.spool.Name())
	}
}

// open reads exactly the version that ref names. That it is gone, or another,
// is [ErrBroken].
func open(ctx context.Context, s objstore.Store, ref ObjectRef) (io.ReadCloser, objstore.Info, error) {
	r, info, err := openAny(ctx, s, ref.Key, ref.ETag, 0)
	if errors.Is(err, objstore.ErrNotFound) || errors.Is(err, objstore.ErrConflict) {
		return nil, objstore.Info{}, fmt.Errorf("%w: object %s: %w", ErrBroken, ref.Key, err)
	}
	return r, info, err
}

// openAny reads key from offset, and with an etag only that version: another is
// [objstore.ErrConflict]. From a store that cannot stream it reads objects of up
// to [objstore.MaxGet] bytes.
func openAny(ctx context.Context, s objstore.Store, key, etag string, offset int64) (io.ReadCloser, objstore.Info, error) {
	if streams, ok := s.(objstore.Streamer); ok {
		return streams.GetReader(ctx, key, etag, offset)
	}
	o, err := s.Get(ctx, key)
	switch {
	case err != nil:
		return nil, objstore.Info{}, err
	case etag != "" && o.ETag != etag:
		return nil, objstore.Info{}, fmt.Errorf("get %s: %w: it is %s, wanted %s", key, objstore.ErrConflict, o.ETag, etag)
	case offset < 0 || offset > o.Size:
		return nil, objstore.Info{}, fmt.Errorf("get %s: offset %d is outside its %d bytes", key, offset, o.Size)
	}
	return io.NopCloser(bytes.NewReader(o.Body[offset:])), o.Info, nil
}

// download copies one object to w and checks it against ref.
func download(ctx context.Context, s objstore.Store, ref ObjectRef, w io.Writer) error {
	r, _, err := open(ctx, s, ref)
	if err != nil {
		return err
	}
	defer r.Close()
	m := newMeter(io.LimitReader(r, ref.Size+1))
	if _, err := io.Copy(w, m); err != nil {
		return fmt.Errorf("read %s: %w", ref.Key, err)
	}
	return m.check(ref)
}

// meter counts and hashes what is read through it.
type meter struct {
	r    io.Reader
	hash hash.Hash
	n    int64
	err  error // what ended the stream before its end
}

func newMeter(r io.Reader) *meter { return &meter{r: r, hash: sha256.New()} }

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.hash.Write(p[:n])
	m.n += int64(n)
	if err != nil && err != io.EOF {
		m.err = err
	}
	return n, err
}

func (m *meter) sha256() string { return hex.EncodeToString(m.hash.Sum(nil)) }

// check compares what was read, to its end, with ref.
func (m *meter) check(ref ObjectRef) error {
	switch {
	case m.n != ref.Size:
		return fmt.Errorf("%w: object %s has %d bytes or more, the set says %d", ErrBroken, ref.Key, m.n, ref.Size)
	case ref.SHA256 != "" && ref.SHA256 != m.sha256():
		return fmt.Errorf("%w: object %s has SHA-256 %s, the set says %s", ErrBroken, ref.Key, m.sha256(), ref.SHA256)
	}
	return nil
}
