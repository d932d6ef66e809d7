package s3store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/carlosframework/regionha/objstore"
)

// errNoListing: an answer that does not say whether it is the last page, such as
// an empty one, says nothing.
var errNoListing = errors.New("the server's answer is no listing")

// errNoProgress: the next page begins where this one did. Following it would
// never end.
var errNoProgress = errors.New("the server's pages do not advance")

// List implements [objstore.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		in := &s3.ListObjectsV2Input{
			Bucket:       aws.String(s.bucket),
			Prefix:       aws.String(s.prefix + prefix),
			EncodingType: types.EncodingTypeUrl, // XML cannot hold every key
		}
		for {
			out, err := s.client.ListObjectsV2(ctx, in)
			if err == nil && out.IsTruncated == nil {
				err = errNoListing
			}
			if err != nil {
				yield(objstore.Info{}, fmt.Errorf("list %s: %w", prefix, readError(err)))
				return
			}
			for _, o := range out.Contents {
				info, err := s.listed(o.Key, out.EncodingType)
				info.ETag, info.Size, info.ModTime = aws.ToString(o.ETag), aws.ToInt64(o.Size), aws.ToTime(o.LastModified)
				if !yield(info, err) || err != nil {
					return
				}
			}
			if !aws.ToBool(out.IsTruncated) {
				return
			}
			next := aws.ToString(out.NextContinuationToken)
			if next == "" || next == aws.ToString(in.ContinuationToken) {
				yield(objstore.Info{}, fmt.Errorf("list %s: %w", prefix, errNoProgress))
				return
			}
			in.ContinuationToken = aws.String(next)
		}
	}
}

// listed decodes a key of a listing and takes the store's prefix off.
func (s *Store) listed(key *string, encoding types.EncodingType) (objstore.Info, error) {
	name := aws.ToString(key)
	if encoding == types.EncodingTypeUrl {
		decoded, err := url.QueryUnescape(name)
		if err != nil {
			return objstore.Info{}, fmt.Errorf("a listing holds the key %q: %w", name, err)
		}
		name = decoded
	}
	own, ok := strings.CutPrefix(name, s.prefix)
	if !ok {
		return objstore.Info{}, fmt.Errorf("a listing holds %q, which is outside the prefix %s", name, s.prefix)
	}
	return objstore.Info{Key: own}, nil
}

// ListVersions implements [objstore.Versioned]. Delete markers are left out,
// and what a server lists twice is yielded once.
func (s *Store) ListVersions(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		in := &s3.ListObjectVersionsInput{
			Bucket:       aws.String(s.bucket),
			Prefix:       aws.String(s.prefix + prefix),
			EncodingType: types.EncodingTypeUrl,
		}
		var seen versionSet
		for {
			out, err := s.client.ListObjectVersions(ctx, in)
			if err == nil && out.IsTruncated == nil {
				err = errNoListing
			}
			if err != nil {
				yield(objstore.Info{}, fmt.Errorf("list versions %s: %w", prefix, readError(err)))
				return
			}
			for _, o := range out.Versions {
				info, err := s.listed(o.Key, out.EncodingType)
				info.VersionID = aws.ToString(o.VersionId)
				info.ETag, info.Size, info.ModTime = aws.ToString(o.ETag), aws.ToInt64(o.Size), aws.ToTime(o.LastModified)
				if err == nil && !seen.add(info.Key, info.VersionID) {
					continue
				}
				if !yield(info, err) || err != nil {
					return
				}
			}
			if !aws.ToBool(out.IsTruncated) {
				return
			}
			if err := advance(in, out); err != nil {
				yield(objstore.Info{}, fmt.Errorf("list versions %s: %w", prefix, err))
				return
			}
		}
	}
}

// advance makes in ask for the page after out.
func advance(in *s3.ListObjectVersionsInput, out *s3.ListObjectVersionsOutput) error {
	key, version := aws.ToString(out.NextKeyMarker), aws.ToString(out.NextVersionIdMarker)
	if out.EncodingType == types.EncodingTypeUrl {
		decoded, err := url.QueryUnescape(key)
		if err != nil {
			return fmt.Errorf("the next page begins at %q: %w", key, err)
		}
		key = decoded
	}
	if key == "" || key == aws.ToString(in.KeyMarker) && version == aws.ToString(in.VersionIdMarker) {
		return errNoProgress
	}
	in.KeyMarker, in.VersionIdMarker = aws.String(key), nil
	if version != "" {
		in.VersionIdMarker = aws.String(version)
	}
	return nil
}

// versionSet remembers the versions of one key at a time.
type versionSet struct {
	key string
	ids map[string]struct{}
}

// add reports whether the version was not there yet.
func (v *versionSet) add(key, id string) bool {
	if v.ids == nil || key != v.key {
		v.key, v.ids = key, map[string]struct{}{}
	}
	_, there := v.ids[id]
	v.ids[id] = struct{}{}
	return !there
}
