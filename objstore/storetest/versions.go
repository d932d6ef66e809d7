package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/carlosframework/regionha/objstore"
)

const wrongCopy = "parking could retire, or a build could copy, another version than the one it checked"

var versionChecks = []check{
	{"version list, get and copy", Required, wrongCopy, exactVersions},
	{"deleting exactly one version", Required, "parking could remove an object that is in use", deleteVersion},
	{"if-match on a deleted key", Required, "a retired object would be resurrected", ifMatchDeleted},
}

// history writes n versions of key, and returns them newest first.
func history(ctx context.Context, b bench, key string, n int) (infos []objstore.Info, bodies map[string][]byte, err error) {
	bodies = map[string][]byte{}
	for range n {
		body := unique()
		info, err := b.Put(ctx, key, body, objstore.Always())
		if err != nil {
			return nil, nil, err
		}
		if info.VersionID == "" || bodies[info.VersionID] != nil {
			return nil, nil, fmt.Errorf("a write was given the version id %q", info.VersionID)
		}
		bodies[info.VersionID] = body
		infos = append(infos, info)
	}
	slices.Reverse(infos)
	return infos, bodies, nil
}

func exactVersions(ctx context.Context, b bench) error {
	v, ok := b.Store.(objstore.Versioned)
	if !ok {
		return errSkip
	}
	key := b.key("k")
	wrote, bodies, err := history(ctx, b, key, 5)
	if err != nil {
		return err
	}
	if _, _, err := history(ctx, b, b.key("k2"), 2); err != nil {
		return err
	}
	if err := b.versionsAre(ctx, v, key, wrote); err != nil {
		return err
	}
	for i, info := range wrote {
		if err := versionHolds(ctx, v, key, info, bodies[info.VersionID]); err != nil {
			return err
		}
		dst := b.key(fmt.Sprintf("copy/%d", i))
		copied, err := v.CopyVersion(ctx, key, info.VersionID, dst)
		if err != nil {
			return err
		}
		if copied.Key != dst || copied.VersionID == "" {
			return fmt.Errorf("a copy is described as %+v", copied)
		}
		if err := b.holds(ctx, dst, bodies[info.VersionID]); err != nil {
			return err
		}
	}
	_, _, err = v.GetVersion(ctx, b.key("k2"), wrote[0].VersionID)
	if err == nil {
		return errors.New("a version of another key was read")
	}
	return nil
}

func deleteVersion(ctx context.Context, b bench) error {
	v, ok := b.Store.(objstore.Versioned)
	if !ok {
		return errSkip
	}
	key := b.key("k")
	wrote, bodies, err := history(ctx, b, key, 4)
	if err != nil {
		return err
	}
	for _, i := range []int{1, 0} { // an old version, then the newest
		gone := wrote[i]
		for range 2 {
			if err := v.DeleteVersion(ctx, key, gone.VersionID); err != nil {
				return fmt.Errorf("delete a version, or delete it again: %w", err)
			}
		}
		if _, _, err := v.GetVersion(ctx, key, gone.VersionID); !errors.Is(err, objstore.ErrNotFound) {
			return fmt.Errorf("a read of a deleted version says %v", err)
		}
		wrote = slices.Delete(wrote, i, i+1)
		if err := b.versionsAre(ctx, v, key, wrote); err != nil {
			return err
		}
		if err := b.holds(ctx, key, bodies[wrote[0].VersionID]); err != nil {
			return fmt.Errorf("the newest version that is left: %w", err)
		}
	}
	return nil
}

func ifMatchDeleted(ctx context.Context, b bench) error {
	v, ok := b.Store.(objstore.Versioned)
	if !ok {
		return errSkip
	}
	key := b.key("k")
	wrote, _, err := history(ctx, b, key, 2)
	if err != nil {
		return err
	}
	for _, info := range wrote {
		if err := v.DeleteVersion(ctx, key, info.VersionID); err != nil {
			return err
		}
	}
	for _, info := range wrote {
		_, err := b.Put(ctx, key, unique(), objstore.IfMatch(info.ETag))
		if err := want(err, objstore.ErrConflict, "an If-Match write of a deleted key"); err != nil {
			return err
		}
	}
	for info, err := range b.List(ctx, key) {
		return fmt.Errorf("a deleted key is listed: %s: %v", info.Key, err)
	}
	return b.absent(ctx, key)
}

// versionsAre checks that the versions of key are exactly these, in this order.
func (b bench) versionsAre(ctx context.Context, v objstore.Versioned, key string, wanted []objstore.Info) error {
	infos, err := collect(v.ListVersions(ctx, key))
	if err != nil {
		return err
	}
	var got, want []string
	for _, info := range infos {
		if info.Key == key {
			got = append(got, info.VersionID)
		}
	}
	for _, info := range wanted {
		want = append(want, info.VersionID)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the versions are listed as %q, newest first they are %q", got, want)
	}
	return nil
}

func versionHolds(ctx context.Context, v objstore.Versioned, key string, info objstore.Info, body []byte) error {
	r, read, err := v.GetVersion(ctx, key, info.VersionID)
	if err != nil {
		return err
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if string(got) != string(body) || read.ETag != info.ETag || read.VersionID != info.VersionID {
		return fmt.Errorf("version %s reads as %.40q %+v, it was written as %.40q %+v", info.VersionID, got, read, body, info)
	}
	return nil
}
