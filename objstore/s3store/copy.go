package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/objstore"
)

var _ objstore.Copier = (*Store)(nil)

// copiedAtOnce is how many parts of one object are copied at the same time; the
// server moves the bytes.
const copiedAtOnce = 16

// Copy implements [objstore.Copier]. An object that was uploaded in parts is
// copied in the same parts: at any size, faster than as a whole, and with the
// ETag that S3 makes of the parts.
func (s *Store) Copy(ctx context.Context, src objstore.Info, dst string) (objstore.Info, error) {
	if err := errors.Join(s.checkKey(src.Key), s.checkKey(dst)); err != nil {
		return objstore.Info{}, fmt.Errorf("copy: %w", err)
	}
	if src.ETag == "" {
		return objstore.Info{}, fmt.Errorf("copy %s: %w: no ETag is named", src.Key, objstore.ErrConflict)
	}
	copying := s.copyWhole
	if strings.Contains(src.ETag, "-") { // S3's mark of an upload in parts
		copying = s.copyParts
	}
	info, err := copying(ctx, src, dst)
	if err == nil && info.ETag == "" {
		err = errors.New("the server's answer describes no copy")
	}
	if err != nil {
		return objstore.Info{}, fmt.Errorf("copy %s to %s: %w", src.Key, dst, copyError(err))
	}
	return info, nil
}

// copyError is the outcome of a copy that failed: what a read of its source
// would say, and else unknown.
func copyError(err error) error {
	if err = readError(err); errors.Is(err, objstore.ErrNotFound) || errors.Is(err, objstore.ErrConflict) {
		return err
	}
	return fmt.Errorf("%w: %w", objstore.ErrUnknown, err)
}

// copySource names an object, and its version where one is named.
func (s *Store) copySource(key, version string) *string {
	source := s.bucket + "/" + escapePath(s.prefix+key)
	if version != "" {
		source += "?versionId=" + url.QueryEscape(version)
	}
	return aws.String(source)
}

func (s *Store) copyWhole(ctx context.Context, src objstore.Info, dst string) (objstore.Info, error) {
	out, err := s.client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket:            aws.String(s.bucket),
		Key:               aws.String(s.prefix + dst),
		CopySource:        s.copySource(src.Key, src.VersionID),
		CopySourceIfMatch: aws.String(src.ETag),
	})
	if err != nil || out.CopyObjectResult == nil {
		return objstore.Info{}, err
	}
	at, _ := middleware.GetServerTime(out.ResultMetadata)
	return objstore.Info{
		Key:       dst,
		ETag:      aws.ToString(out.CopyObjectResult.ETag),
		VersionID: aws.ToString(out.VersionId),
		Size:      src.Size,
		ModTime:   at,
	}, nil
}

// copyParts copies in the parts in which putParts uploads.
func (s *Store) copyParts(ctx context.Context, src objstore.Info, dst string) (info objstore.Info, err error) {
	upload, err := s.begin(ctx, dst, "") // the server's own: it has the bytes already
	if err != nil {
		return objstore.Info{}, err
	}
	defer func() {
		if err != nil {
			s.abort(ctx, dst, upload)
		}
	}()
	size := partSize(src.Size)
	parts := make([]types.CompletedPart, (src.Size+size-1)/size)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(copiedAtOnce)
	for i := range parts {
		group.Go(func() (err error) {
			parts[i], err = s.copyPart(gctx, src, dst, upload, i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return objstore.Info{}, err
	}
	return s.complete(ctx, dst, upload, parts, src.Size, objstore.Always())
}

func (s *Store) copyPart(ctx context.Context, src objstore.Info, dst string, upload *string, i int) (types.CompletedPart, error) {
	size := partSize(src.Size)
	from := int64(i) * size
	out, err := s.client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
		Bucket:            aws.String(s.bucket),
		Key:               aws.String(s.prefix + dst),
		UploadId:          upload,
		PartNumber:        aws.Int32(int32(i + 1)),
		CopySource:        s.copySource(src.Key, src.VersionID),
		CopySourceIfMatch: aws.String(src.ETag),
		CopySourceRange:   aws.String(fmt.Sprintf("bytes=%d-%d", from, min(from+size, src.Size)-1)),
	})
	if err == nil && out.CopyPartResult == nil {
		err = errors.New("the server's answer describes no copy")
	}
	if err != nil {
		return types.CompletedPart{}, fmt.Errorf("part %d: %w", i+1, err)
	}
	return types.CompletedPart{ETag: out.CopyPartResult.ETag, PartNumber: aws.Int32(int32(i + 1))}, nil
}
