package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/carlosframework/regionha/objstore"
)

const (
	bodyTries = 4 // without a byte of progress between them
	bodyPause = 500 * time.Millisecond
)

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string) (objstore.Object, error) {
	r, info, err := s.GetReader(ctx, key, "", 0)
	if err != nil {
		return objstore.Object{}, err
	}
	defer r.Close()
	if info.Size > objstore.MaxGet {
		return objstore.Object{}, fmt.Errorf("get %s: %w: %d bytes", key, objstore.ErrTooLarge, info.Size)
	}
	body := make([]byte, info.Size)
	if _, err := io.ReadFull(r, body); err != nil {
		return objstore.Object{}, fmt.Errorf("get %s: %w", key, err)
	}
	return objstore.Object{Info: info, Body: body}, nil
}

// GetReader implements [objstore.Streamer].
func (s *Store) GetReader(ctx context.Context, key, ifMatch string, offset int64) (io.ReadCloser, objstore.Info, error) {
	if err := s.checkKey(key); err != nil {
		return nil, objstore.Info{}, fmt.Errorf("get: %w", err)
	}
	if offset < 0 {
		return nil, objstore.Info{}, fmt.Errorf("get %s: the offset %d is negative", key, offset)
	}
	return s.read(ctx, source{key: key, ifMatch: ifMatch, offset: offset})
}

// GetVersion implements [objstore.Versioned].
func (s *Store) GetVersion(ctx context.Context, key, version string) (io.ReadCloser, objstore.Info, error) {
	if err := s.checkKey(key); err != nil {
		return nil, objstore.Info{}, fmt.Errorf("get: %w", err)
	}
	return s.read(ctx, source{key: key, version: version})
}

// source is a place to read from.
type source struct {
	key, version, ifMatch string
	offset                int64
}

func (s *Store) read(ctx context.Context, from source) (io.ReadCloser, objstore.Info, error) {
	r, info, err := s.request(ctx, from)
	if err != nil {
		return nil, objstore.Info{}, fmt.Errorf("get %s: %w", from.key, err)
	}
	from.ifMatch = info.ETag
	return &body{ctx: ctx, store: s, from: from, size: info.Size, r: r}, info, nil
}

// request sends one GET, retried by the SDK until an answer begins.
func (s *Store) request(ctx context.Context, from source) (io.ReadCloser, objstore.Info, error) {
	in := &s3.GetObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(s.prefix + from.key)}
	if from.ifMatch != "" {
		in.IfMatch = aws.String(from.ifMatch)
	}
	if from.version != "" {
		in.VersionId = aws.String(from.version)
	}
	if from.offset > 0 {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", from.offset))
	}
	out, err := s.client.GetObject(ctx, in)
	if status, _ := answer(err); status == http.StatusRequestedRangeNotSatisfiable {
		return s.atEnd(ctx, from)
	}
	if err != nil {
		return nil, objstore.Info{}, readError(err)
	}
	size := aws.ToInt64(out.ContentLength) + from.offset
	switch {
	case from.offset > 0 && out.ContentRange == nil:
		err = errors.New("the server ignores the range of a read")
	case out.ContentLength == nil:
		err = errors.New("the server's answer names no length")
	case aws.ToString(out.ETag) == "":
		err = errors.New("the server's answer names no ETag")
	}
	if err != nil {
		out.Body.Close()
		return nil, objstore.Info{}, err
	}
	return out.Body, objstore.Info{
		Key:       from.key,
		ETag:      aws.ToString(out.ETag),
		VersionID: aws.ToString(out.VersionId),
		Size:      size,
		ModTime:   aws.ToTime(out.LastModified),
	}, nil
}

// atEnd answers a read that begins at or beyond the end of an object, which S3
// refuses: at the end there is nothing left, which is no error.
func (s *Store) atEnd(ctx context.Context, from source) (io.ReadCloser, objstore.Info, error) {
	in := &s3.HeadObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(s.prefix + from.key)}
	if from.ifMatch != "" {
		in.IfMatch = aws.String(from.ifMatch)
	}
	out, err := s.client.HeadObject(ctx, in)
	if err != nil {
		return nil, objstore.Info{}, readError(err)
	}
	if size := aws.ToInt64(out.ContentLength); size != from.offset {
		return nil, objstore.Info{}, fmt.Errorf("offset %d is outside its %d bytes", from.offset, size)
	}
	return http.NoBody, objstore.Info{
		Key:       from.key,
		ETag:      aws.ToString(out.ETag),
		VersionID: aws.ToString(out.VersionId),
		Size:      from.offset,
		ModTime:   aws.ToTime(out.LastModified),
	}, nil
}

// body reads an object to its announced end. Where the connection breaks it
// goes on from there, under If-Match on the same ETag.
type body struct {
	ctx    context.Context // of the call that opened it, as for an HTTP body
	store  *Store
	from   source
	size   int64
	r      io.ReadCloser
	failed int // attempts since the last byte
}

func (b *body) Read(p []byte) (int, error) {
	for {
		if b.from.offset == b.size {
			return 0, io.EOF
		}
		n, err := b.r.Read(p[:min(int64(len(p)), b.size-b.from.offset)])
		b.from.offset += int64(n)
		if n > 0 {
			b.failed = 0
			return n, nil
		}
		if err == nil {
			return 0, nil
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err := b.resume(err); err != nil {
			return 0, fmt.Errorf("get %s: after %d of %d bytes: %w", b.from.key, b.from.offset, b.size, err)
		}
	}
}

// resume opens the rest of the object after cause broke off the read.
func (b *body) resume(cause error) error {
	b.failed++
	if b.failed >= bodyTries || b.ctx.Err() != nil {
		return cause
	}
	if err := pause(b.ctx, b.failed, bodyPause); err != nil {
		return cause
	}
	r, info, err := b.store.request(b.ctx, b.from)
	if err != nil {
		return errors.Join(cause, err)
	}
	if info.Size != b.size || info.ETag != b.from.ifMatch {
		r.Close()
		return fmt.Errorf("it has another size or ETag now: %w", cause)
	}
	b.r.Close()
	b.r = r
	return nil
}

func (b *body) Close() error { return b.r.Close() }

// pause waits before attempt number failed+1, with jitter.
func pause(ctx context.Context, failed int, most time.Duration) error {
	delay, err := retry.NewExponentialJitterBackoff(most).BackoffDelay(failed, nil)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(delay):
		return nil
	}
}
