package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/carlosframework/regionha/objstore"
)

var _ objstore.Copier = (*Store)(nil)

// Copy implements [objstore.Copier] by a hard link: no file of the store is
// ever written again, so two keys may share one. The copy has the ETag and the
// ModTime of src. Where the file system links no further, it is a new file.
func (s *Store) Copy(ctx context.Context, src objstore.Info, dst string) (objstore.Info, error) {
	if err := objstore.CheckKey(dst); err != nil {
		return objstore.Info{}, fmt.Errorf("copy: %w", err)
	}
	v, err := s.exactly(ctx, src)
	if err != nil {
		return objstore.Info{}, fmt.Errorf("copy %s to %s: %w", src.Key, dst, err)
	}
	defer v.Close()
	number, err := s.claim(ctx, objectPath(s.root, dst), v.Name(), objstore.Always())
	if err == nil {
		return v.info(dst, number), nil
	}
	info, putErr := s.PutReader(ctx, dst, io.NewSectionReader(v.File, headSize, v.size), v.size, objstore.Always())
	if putErr != nil {
		return objstore.Info{}, fmt.Errorf("copy %s to %s: %w; linking it: %w", src.Key, dst, putErr, err)
	}
	return info, nil
}

// exactly opens what src names.
func (s *Store) exactly(ctx context.Context, src objstore.Info) (v version, err error) {
	if err := errors.Join(objstore.CheckKey(src.Key), ctx.Err()); err != nil {
		return v, err
	}
	if src.VersionID == "" {
		v, _, err = newest(objectPath(s.root, src.Key))
	} else {
		v, err = s.openVersion(src.Key, src.VersionID)
	}
	if err == nil && v.etag() != src.ETag {
		v.Close()
		err = fmt.Errorf("%w: it is %s, wanted %s", objstore.ErrConflict, v.etag(), src.ETag)
	}
	return v, err
}
