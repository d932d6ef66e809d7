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
	"slices"

	"github.com/superfly/ltx"
	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/objstore"
)

// parallelRequests is how many objects of a set are read or copied at the same
// time.
const parallelRequests = 8

// fetched is a set, or what follows the first objects of it, whose objects are
// open for one pass over them. The first object of a set, the full image,
// streams from the store while it is read. The others are small and many: they
// lie in one spool file, so that no connection waits idle for its turn and no
// descriptor is held per object.
type fetched struct {
	objects []ObjectRef // with the SHA-256 of each; that of a streamed one is known at its end
	sources []*ltx.Decoder
	headers []ltx.Header
	bytes   int64 // of all objects

	image io.ReadCloser
	first *meter // of image; nil where it is not among the objects
	spool *os.File
}

// start is where a chain of objects goes on from; the zero value is its begin.
type start struct {
	after    int // how many objects come before
	txid     ltx.TXID
	pageSize uint32
}

// fetch opens the objects of set that follow at and checks that their headers
// are the chain that the set names. The caller closes it, which removes the
// spool file.
func fetch(ctx context.Context, s objstore.Store, set RecoverySet, at start, spool string) (_ *fetched, err error) {
	f := &fetched{objects: slices.Clone(set.Objects[at.after:])}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	spooled := f.objects
	if at.after == 0 {
		spooled = f.objects[1:]
	}
	if err := f.spoolAll(ctx, s, spooled, spool); err != nil {
		return nil, err
	}
	if at.after == 0 {
		if f.image, _, err = open(ctx, s, f.objects[0]); err != nil {
			return nil, err
		}
		f.first = newMeter(f.image)
		f.add(bufio.NewReaderSize(f.first, 256<<10))
		f.bytes += f.objects[0].Size
	}
	offset := int64(0)
	for _, ref := range spooled {
		f.add(bufio.NewReaderSize(io.NewSectionReader(f.spool, offset, ref.Size), 16<<10))
		offset += ref.Size
	}
	f.bytes += offset
	return f, f.readHeaders(at, ltx.TXID(set.MaxTXID))
}

func (f *fetched) add(r io.Reader) {
	dec := ltx.NewDecoder(r)
	dec.SetRetainPageIndex(false)
	f.sources = append(f.sources, dec)
}

// spoolAll reads objects into one file, each at its place, and notes their
// SHA-256s.
func (f *fetched) spoolAll(ctx context.Context, s objstore.Store, objects []ObjectRef, path string) (err error) {
	if len(objects) == 0 {
		return nil
	}
	if f.spool, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	offset := int64(0)
	for i := range objects {
		to := io.NewOffsetWriter(f.spool, offset)
		group.Go(func() (err error) {
			objects[i].SHA256, err = download(ctx, s, objects[i], to)
			return err
		})
		offset += objects[i].Size
	}
	return group.Wait()
}

// readHeaders checks that each object is the file that its key says, and that
// together they are one chain from at to the last transaction of the set.
func (f *fetched) readHeaders(at start, end ltx.TXID) error {
	for i, dec := range f.sources {
		ref := f.objects[i]
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
		case at.txid == 0 && !h.IsSnapshot():
			return fmt.Errorf("%w: object %s is the first of its set and no full image", ErrBroken, ref.Key)
		case at.txid > 0 && !ltx.IsContiguous(at.txid, h.MinTXID, h.MaxTXID):
			return fmt.Errorf("%w: object %s does not go on from TXID %d", ErrBroken, ref.Key, at.txid)
		case at.txid > 0 && h.PageSize != at.pageSize:
			return fmt.Errorf("%w: object %s has pages of %d bytes, the image of %d", ErrBroken, ref.Key, h.PageSize, at.pageSize)
		}
		at.txid, at.pageSize = h.MaxTXID, h.PageSize
		f.headers = append(f.headers, h)
	}
	if at.txid != end {
		return fmt.Errorf("%w: the objects end at TXID %d, the set at %d", ErrBroken, at.txid, end)
	}
	return nil
}

// last is the header of the newest object: the size and time of the result.
func (f *fetched) last() ltx.Header { return f.headers[len(f.headers)-1] }

// fault names the object that could not be decoded. A stream that broke says
// nothing about the object.
func (f *fetched) fault(i int, err error) error {
	key := f.objects[i].Key
	if i == 0 && f.first != nil && f.first.err != nil {
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

// download copies one object to w, checks it against ref and returns its
// SHA-256.
func download(ctx context.Context, s objstore.Store, ref ObjectRef, w io.Writer) (string, error) {
	r, _, err := open(ctx, s, ref)
	if err != nil {
		return "", err
	}
	defer r.Close()
	m := newMeter(io.LimitReader(r, ref.Size+1))
	if _, err := io.Copy(w, m); err != nil {
		return "", fmt.Errorf("read %s: %w", ref.Key, err)
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

// check compares what was read, to its end, with ref, and returns its SHA-256.
func (m *meter) check(ref ObjectRef) (string, error) {
	got := hex.EncodeToString(m.hash.Sum(nil))
	switch {
	case m.n != ref.Size:
		return "", fmt.Errorf("%w: object %s has %d bytes or more, the set says %d", ErrBroken, ref.Key, m.n, ref.Size)
	case ref.SHA256 != "" && ref.SHA256 != got:
		return "", fmt.Errorf("%w: object %s has SHA-256 %s, the set says %s", ErrBroken, ref.Key, got, ref.SHA256)
	}
	return got, nil
}
