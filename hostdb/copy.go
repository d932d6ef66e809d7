package hostdb

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/objstore"
)

// copyAll copies the objects of the set that are to be copied to their keys in
// the generation, several at a time.
func (j *job) copyAll(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	for i, ref := range j.set.Objects[:j.root.copied] {
		group.Go(func() error { return j.copy(ctx, ref, j.keys[i]) })
	}
	return group.Wait()
}

// copy makes key hold exactly what ref names: inside the store where it can, and
// else through a file. Only this generation has the key and the body is the
// pinned one whoever writes it, so it may be written again.
func (j *job) copy(ctx context.Context, ref ObjectRef, key string) error {
	copier, ok := j.Store.(objstore.Copier)
	if !ok || ref.ETag == "" {
		return j.carry(ctx, ref, key)
	}
	_, err := copier.Copy(ctx, objstore.Info{Key: ref.Key, ETag: ref.ETag, VersionID: ref.VersionID, Size: ref.Size}, key)
	if errors.Is(err, objstore.ErrNotFound) || errors.Is(err, objstore.ErrConflict) {
		return fmt.Errorf("%w: object %s: %w", ErrBroken, ref.Key, err)
	}
	return err
}

// carry downloads the object and uploads it under key, create-only.
func (j *job) carry(ctx context.Context, ref ObjectRef, key string) error {
	file, err := os.CreateTemp(j.dir, "carry-*")
	if err != nil {
		return err
	}
	body := content{ReadSeeker: file, size: ref.Size, file: file}
	defer body.discard()
	if _, err := download(ctx, j.Store, ref, file); err != nil {
		return err
	}
	return j.put(ctx, key, body)
}
