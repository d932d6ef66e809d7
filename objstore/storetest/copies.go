package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/objstore"
)

var copyChecks = []check{
	{"copying exactly one object", Required, wrongCopy, exactCopies},
	{"copying a large body", Required, wrongCopy, largeCopy},
}

func exactCopies(ctx context.Context, b bench) error {
	c, ok := b.Store.(objstore.Copier)
	if !ok {
		return errSkip
	}
	body := unique()
	src, err := b.Put(ctx, b.key("src +%"), body, objstore.IfAbsent())
	if err != nil {
		return err
	}
	for _, dst := range []string{b.key("a/dst"), b.key("a/dst"), b.key("dst +%")} { // over itself, too
		if err := b.copied(ctx, c, src, dst, body); err != nil {
			return err
		}
	}
	dst := b.key("other")
	other := src
	other.ETag = `"0123456789abcdef0123456789abcdef"`
	_, err = c.Copy(ctx, other, dst)
	if err := want(err, objstore.ErrConflict, "a copy of another ETag"); err != nil {
		return err
	}
	other = src
	other.Key = b.key("absent")
	_, err = c.Copy(ctx, other, dst)
	if err := want(err, objstore.ErrNotFound, "a copy of an absent key"); err != nil {
		return err
	}
	return errors.Join(b.absent(ctx, dst), b.oldCopies(ctx, c, src, body))
}

// oldCopies checks a source that was replaced: it is not copied any more, but as
// a version.
func (b bench) oldCopies(ctx context.Context, c objstore.Copier, src objstore.Info, body []byte) error {
	if _, err := b.put(ctx, src.Key, objstore.IfMatch(src.ETag)); err != nil {
		return err
	}
	unnamed := src
	unnamed.VersionID = ""
	_, err := c.Copy(ctx, unnamed, b.key("replaced"))
	if err := want(err, objstore.ErrConflict, "a copy of an ETag that was replaced"); err != nil || src.VersionID == "" {
		return err
	}
	return b.copied(ctx, c, src, b.key("version"), body)
}

// copied copies src to dst and checks that dst has the body.
func (b bench) copied(ctx context.Context, c objstore.Copier, src objstore.Info, dst string, body []byte) error {
	info, err := c.Copy(ctx, src, dst)
	if err != nil {
		return err
	}
	seen, err := b.Get(ctx, dst)
	if err != nil {
		return err
	}
	if info.Key != dst || info.Size != src.Size || info.ETag != seen.ETag || info.VersionID != seen.VersionID || info.ModTime.IsZero() {
		return fmt.Errorf("a copy is described as %+v, it is %+v", info, seen.Info)
	}
	return b.holds(ctx, dst, body)
}

func largeCopy(ctx context.Context, b bench) error {
	c, copies := b.Store.(objstore.Copier)
	s, ok := b.Store.(objstore.Streamer)
	if !copies || !ok {
		return errSkip
	}
	body := pattern(multipartBody, 5)
	src, err := s.PutReader(ctx, b.key("src"), bytes.NewReader(body), multipartBody, objstore.IfAbsent())
	if err != nil {
		return err
	}
	info, err := c.Copy(ctx, src, b.key("dst"))
	if err != nil {
		return err
	}
	seen, err := streams(ctx, s, info.Key, info.ETag, 0, body)
	if err == nil && (info.Key != b.key("dst") || info.Size != multipartBody || seen.Size != multipartBody) {
		err = fmt.Errorf("a copy of %d bytes is described as %+v, it is %+v", multipartBody, info, seen)
	}
	return err
}
