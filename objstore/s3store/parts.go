package s3store

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/objstore"
)

const (
	partsFrom     = 16 << 20 // larger bodies are uploaded in parts
	smallestPart  = 8 << 20
	mostParts     = 10_000
	partsAtOnce   = 4 // each holds a part in memory
	uploadTries   = 3
	abortWait     = 10 * time.Second
	conflictPause = 200 * time.Millisecond
)

// putParts uploads a body in parts and completes it under cond. A completion
// that is told 409 did not apply, and its upload is gone: it starts again.
func (s *Store) putParts(ctx context.Context, key string, r io.ReadSeeker, size int64, cond objstore.Condition) (objstore.Info, error) {
	for try := 1; ; try++ {
		info, err := s.upload(ctx, key, r, size, cond)
		if _, code := answer(err); err == nil || try == uploadTries || !concurrent(code) {
			return info, err
		}
		if err := pause(ctx, try, conflictPause); err != nil {
			return objstore.Info{}, err
		}
	}
}

// upload is one attempt of putParts. Whatever goes wrong, the parts are
// removed; that also ends a completion whose outcome is unknown, or fails
// because it applied.
func (s *Store) upload(ctx context.Context, key string, r io.ReadSeeker, size int64, cond objstore.Condition) (info objstore.Info, err error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return objstore.Info{}, fmt.Errorf("rewind body: %w", err)
	}
	id, err := s.begin(ctx, key, types.ChecksumAlgorithmCrc32)
	if err != nil {
		return objstore.Info{}, unconditional(err)
	}
	defer func() {
		if err != nil {
			s.abort(ctx, key, id)
		}
	}()
	parts, err := s.uploadParts(ctx, key, id, r, size)
	if err != nil {
		return objstore.Info{}, unconditional(err)
	}
	return s.complete(ctx, key, id, parts, size, cond)
}

// begin starts an upload in parts, each of which carries this checksum.
func (s *Store) begin(ctx context.Context, key string, sum types.ChecksumAlgorithm) (id *string, err error) {
	created, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket:            aws.String(s.bucket),
		Key:               aws.String(s.prefix + key),
		ChecksumAlgorithm: sum,
	})
	if err != nil {
		return nil, err
	}
	return created.UploadId, nil
}

// complete makes an object of size bytes of the parts, under cond.
func (s *Store) complete(ctx context.Context, key string, id *string, parts []types.CompletedPart, size int64, cond objstore.Condition) (objstore.Info, error) {
	in := &s3.CompleteMultipartUploadInput{
		Bucket:          aws.String(s.bucket),
		Key:             aws.String(s.prefix + key),
		UploadId:        id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}
	in.IfMatch, in.IfNoneMatch = headers(cond)
	out, err := s.client.CompleteMultipartUpload(ctx, in, once)
	if err != nil {
		return objstore.Info{}, err
	}
	at, _ := middleware.GetServerTime(out.ResultMetadata)
	return objstore.Info{
		Key:       key,
		ETag:      aws.ToString(out.ETag),
		VersionID: aws.ToString(out.VersionId),
		Size:      size,
		ModTime:   at,
	}, nil
}

// partSize is the size of the parts of a body of size bytes; the last may be
// shorter.
func partSize(size int64) int64 { return max(smallestPart, (size+mostParts-1)/mostParts) }

// uploadParts sends the body's parts, a few at a time.
func (s *Store) uploadParts(ctx context.Context, key string, upload *string, r io.Reader, size int64) ([]types.CompletedPart, error) {
	part := partSize(size)
	parts := make([]types.CompletedPart, (size+part-1)/part)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	var readErr error
	for i := range parts {
		body := make([]byte, min(part, size-int64(i)*part))
		if _, readErr = io.ReadFull(r, body); readErr != nil {
			break
		}
		g.Go(func() (err error) {
			parts[i], err = s.uploadPart(gctx, key, upload, int32(i+1), body)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if readErr != nil {
		return nil, fmt.Errorf("read body: %w", readErr)
	}
	return parts, insistOnEnd(r, size)
}

func (s *Store) uploadPart(ctx context.Context, key string, upload *string, number int32, body []byte) (types.CompletedPart, error) {
	r := bytes.NewReader(body)
	sum, err := checksum(r, int64(len(body)))
	if err != nil {
		return types.CompletedPart{}, err
	}
	out, err := s.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket:        aws.String(s.bucket),
		Key:           aws.String(s.prefix + key),
		UploadId:      upload,
		PartNumber:    aws.Int32(number),
		Body:          r,
		ContentLength: aws.Int64(int64(len(body))),
		ChecksumCRC32: aws.String(sum),
	})
	if err != nil {
		return types.CompletedPart{}, fmt.Errorf("part %d: %w", number, err)
	}
	return types.CompletedPart{ETag: out.ETag, PartNumber: aws.Int32(number), ChecksumCRC32: aws.String(sum)}, nil
}

// abort removes the parts of an upload that is given up. Where that fails too,
// the bucket's lifecycle rule does it.
func (s *Store) abort(ctx context.Context, key string, upload *string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortWait)
	defer cancel()
	_, _ = s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket:   aws.String(s.bucket),
		Key:      aws.String(s.prefix + key),
		UploadId: upload,
	})
}

// unconditional is the outcome of a step that carries no condition: its 404 or
// 409 says nothing about the object.
func unconditional(err error) error { return writeError(objstore.Always(), err) }

// checksum returns the CRC32 of a body of size bytes in S3's form, and rewinds
// it.
func checksum(r io.ReadSeeker, size int64) (string, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("rewind body: %w", err)
	}
	sum := crc32.NewIEEE()
	if n, err := io.Copy(sum, io.LimitReader(r, size)); err != nil || n != size {
		return "", fmt.Errorf("the body has %d bytes, %d were announced: %w", n, size, err)
	}
	if err := insistOnEnd(r, size); err != nil {
		return "", err
	}
	_, err := r.Seek(0, io.SeekStart)
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum.Sum32())), err
}

// insistOnEnd refuses a body that goes on beyond its announced size.
func insistOnEnd(r io.Reader, size int64) error {
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("the body has more than the announced %d bytes", size)
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}
