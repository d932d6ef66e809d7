package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/objstore"
)

const (
	largeBody = 64 << 20
	// multipartBody is large enough that s3store uploads it in parts.
	multipartBody = 20 << 20
)

var bodies = []check{
	{"empty body", Required, "an empty file could not be published", emptyBody},
	{"large body", Required, "a database could not be stored or restored", largeBodies},
	{"reads from an offset", Required, "an interrupted restore could mix two versions of an object", offsets},
	{"conditions on large bodies", Required, "a zombie could overwrite a prepared generation", largeConditions},
	{"create-only race of large bodies", Required, "a zombie could overwrite a prepared generation", largeRace},
}

func emptyBody(ctx context.Context, b bench) error {
	key := b.key("k")
	if _, err := b.Put(ctx, key, nil, objstore.IfAbsent()); err != nil {
		return err
	}
	if err := b.holds(ctx, key, nil); err != nil {
		return err
	}
	s, ok := b.Store.(objstore.Streamer)
	if !ok {
		return nil
	}
	r, info, err := s.GetReader(ctx, key, "", 0)
	if err != nil {
		return err
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); n != 0 || err != nil || info.Size != 0 {
		return fmt.Errorf("an empty body streams as %d bytes: %v", n, err)
	}
	return nil
}

func largeBodies(ctx context.Context, b bench) error {
	s, ok := b.Store.(objstore.Streamer)
	if !ok {
		return errSkip
	}
	largest := pattern(objstore.MaxGet, 4)
	if _, err := b.Put(ctx, b.key("largest"), largest, objstore.IfAbsent()); err != nil {
		return err
	}
	if err := b.holds(ctx, b.key("largest"), largest); err != nil {
		return fmt.Errorf("the largest body that a Get returns: %w", err)
	}
	key, body := b.key("k"), pattern(largeBody, 1)
	put, err := s.PutReader(ctx, key, bytes.NewReader(body), largeBody, objstore.IfAbsent())
	if err != nil {
		return err
	}
	if put.Size != largeBody {
		return fmt.Errorf("the write of %d bytes says it wrote %d", largeBody, put.Size)
	}
	if _, err := b.Get(ctx, key); !errors.Is(err, objstore.ErrTooLarge) {
		return fmt.Errorf("a Get of %d bytes says %v, not %q", largeBody, err, objstore.ErrTooLarge)
	}
	info, err := streams(ctx, s, key, put.ETag, 0, body)
	if err != nil {
		return err
	}
	if info.ETag != put.ETag || info.VersionID != put.VersionID || info.Size != largeBody {
		return fmt.Errorf("the read says %+v, the write said %+v", info, put)
	}
	return nil
}

func offsets(ctx context.Context, b bench) error {
	s, ok := b.Store.(objstore.Streamer)
	if !ok {
		return errSkip
	}
	key, body := b.key("k"), pattern(100_000, 2)
	first, err := b.Put(ctx, key, body, objstore.IfAbsent())
	if err != nil {
		return err
	}
	for _, offset := range []int64{0, 1, 4096, 99_999, 100_000} {
		info, err := streams(ctx, s, key, first.ETag, offset, body[offset:])
		if err != nil {
			return fmt.Errorf("from %d: %w", offset, err)
		}
		if info.Size != int64(len(body)) {
			return fmt.Errorf("from %d the size is said to be %d; it is that of the whole object", offset, info.Size)
		}
	}
	if r, _, err := s.GetReader(ctx, key, "", 100_001); err == nil {
		r.Close()
		return errors.New("a read from beyond the end was accepted")
	}
	if _, err := b.put(ctx, key, objstore.IfMatch(first.ETag)); err != nil {
		return err
	}
	r, _, err := s.GetReader(ctx, key, first.ETag, 10)
	if err == nil {
		r.Close()
	}
	return want(err, objstore.ErrConflict, "a read of an ETag that was replaced")
}

func largeConditions(ctx context.Context, b bench) error {
	s, ok := b.Store.(objstore.Streamer)
	if !ok {
		return errSkip
	}
	key, body := b.key("k"), pattern(multipartBody, 3)
	write := func(cond objstore.Condition) (objstore.Info, error) {
		return s.PutReader(ctx, key, bytes.NewReader(body), multipartBody, cond)
	}
	_, err := write(objstore.IfMatch(`"00000000000000000000000000000000"`))
	if err := want(err, objstore.ErrConflict, "a large If-Match write of an absent key"); err != nil {
		return err
	}
	small, err := b.put(ctx, key, objstore.IfAbsent())
	if err != nil {
		return err
	}
	_, err = write(objstore.IfAbsent())
	if err := want(err, objstore.ErrConflict, "a large create-only write over an object"); err != nil {
		return err
	}
	large, err := write(objstore.IfMatch(small.ETag))
	if err != nil {
		return fmt.Errorf("a large If-Match write: %w", err)
	}
	_, err = write(objstore.IfMatch(small.ETag))
	if err := want(err, objstore.ErrConflict, "a large If-Match write of a stale ETag"); err != nil {
		return err
	}
	_, err = streams(ctx, s, key, large.ETag, 0, body)
	return err
}

// largeRace lets writers of large bodies race: one wins.
func largeRace(ctx context.Context, b bench) error {
	s, ok := b.Store.(objstore.Streamer)
	if !ok {
		return errSkip
	}
	var wins atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	for w := range 4 {
		g.Go(func() error {
			body := pattern(multipartBody, byte(w))
			_, err := s.PutReader(gctx, b.key("k"), bytes.NewReader(body), multipartBody, objstore.IfAbsent())
			if errors.Is(err, objstore.ErrConflict) {
				return nil
			}
			wins.Add(1)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if n := wins.Load(); n != 1 {
		return fmt.Errorf("%d writers won; exactly one may", n)
	}
	return nil
}

// streams checks that key reads as body from offset.
func streams(ctx context.Context, s objstore.Streamer, key, etag string, offset int64, body []byte) (objstore.Info, error) {
	r, info, err := s.GetReader(ctx, key, etag, offset)
	if err != nil {
		return info, err
	}
	defer r.Close()
	got := sha256.New()
	n, err := io.Copy(got, r)
	if err != nil {
		return info, err
	}
	if wanted := sha256.Sum256(body); !bytes.Equal(got.Sum(nil), wanted[:]) {
		return info, fmt.Errorf("%d bytes came back that are not the %d that were written", n, len(body))
	}
	return info, nil
}

// pattern returns size bytes that do not repeat in step with a part or page.
func pattern(size int, seed byte) []byte {
	b := make([]byte, size)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}
