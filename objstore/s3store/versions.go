package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/carlosframework/regionha/objstore"
)

// DeleteVersion implements [objstore.Versioned].
func (s *Store) DeleteVersion(ctx context.Context, key, version string) error {
	if err := s.checkKey(key); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if version == "" {
		return fmt.Errorf("delete %s: no version is named, and a delete marker is not to be made", key)
	}
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{
		Bucket:    aws.String(s.bucket),
		Key:       aws.String(s.prefix + key),
		VersionId: aws.String(version),
	})
	if err == nil || s.gone(ctx, key, version, err) {
		return nil
	}
	return fmt.Errorf("delete %s version %s: %w: %w", key, version, objstore.ErrUnknown, plain(err))
}

// gone reports whether a deletion failed because the version is not there. S3
// does not mind; versitygw calls the request invalid, so it is asked.
func (s *Store) gone(ctx context.Context, key, version string, err error) bool {
	status, code := answer(err)
	if status != http.StatusBadRequest {
		return status == http.StatusNotFound && missing(code)
	}
	_, err = s.client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket:    aws.String(s.bucket),
		Key:       aws.String(s.prefix + key),
		VersionId: aws.String(version),
	})
	status, _ = answer(err) // an answer to HEAD has no body, so no code
	return status == http.StatusNotFound
}

// CopyVersion implements [objstore.Versioned].
func (s *Store) CopyVersion(ctx context.Context, src, version, dst string) (objstore.Info, error) {
	if err := errors.Join(s.checkKey(src), s.checkKey(dst)); err != nil {
		return objstore.Info{}, fmt.Errorf("copy: %w", err)
	}
	if version == "" {
		return objstore.Info{}, fmt.Errorf("copy %s: no version is named", src)
	}
	out, err := s.client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket:     aws.String(s.bucket),
		Key:        aws.String(s.prefix + dst),
		CopySource: s.copySource(src, version),
	})
	if err == nil && out.CopyObjectResult == nil {
		err = errors.New("the server's answer describes no copy")
	}
	if err != nil {
		if err = readError(err); !errors.Is(err, objstore.ErrNotFound) {
			err = fmt.Errorf("%w: %w", objstore.ErrUnknown, err)
		}
		return objstore.Info{}, fmt.Errorf("copy %s version %s to %s: %w", src, version, dst, err)
	}
	at, _ := middleware.GetServerTime(out.ResultMetadata)
	return objstore.Info{
		Key:       dst,
		ETag:      aws.ToString(out.CopyObjectResult.ETag),
		VersionID: aws.ToString(out.VersionId),
		ModTime:   at,
	}, nil
}

// escapePath escapes all of a key but its slashes and unreserved characters.
func escapePath(key string) string {
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
