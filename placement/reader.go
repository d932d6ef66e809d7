package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/objstore"
)

const (
	// maxFiles bounds the boxes of a deployment.
	maxFiles = 10_000

	// parallelGets bounds a reader's requests in flight.
	parallelGets = 8
)

// Reader follows every edges file. It is for one goroutine.
type Reader struct {
	Store objstore.Store

	seen map[string]seen // by reference
}

// seen is the newest version of one file that was looked at.
type seen struct {
	etag string
	good bool      // file holds a version that could be read, maybe an older one
	file Published // the newest of those
	err  error     // why the newest version could not
}

// Snapshot is every edges file, as of one completed listing.
type Snapshot struct {
	Files   []Published // by reference
	Changed int         // how many of them were got since the snapshot before

	// Problems has one error for each file that cannot be understood. Such a
	// box stays in Files with the last version that could, which grows stale.
	Problems []error
}

// File returns the file of ref.
func (s Snapshot) File(ref string) (Published, bool) {
	i, ok := slices.BinarySearchFunc(s.Files, ref, func(p Published, ref string) int {
		return strings.Compare(p.Edges.Box, ref)
	})
	if !ok {
		return Published{}, false
	}
	return s.Files[i], true
}

// Read lists the files and gets those that changed since its last call: one
// LIST, and one GET for each. A failed request fails the whole reading, and the
// next call goes on from what was got. A file that cannot be understood fails
// only itself.
func (r *Reader) Read(ctx context.Context) (Snapshot, error) {
	changed, err := r.list(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("placement: list edges: %w", err)
	}
	if err := r.fetch(ctx, changed); err != nil {
		return Snapshot{}, fmt.Errorf("placement: read edges: %w", err)
	}
	snap := r.snapshot()
	snap.Changed = len(changed)
	return snap, nil
}

// list forgets what is gone and returns the references that changed.
func (r *Reader) list(ctx context.Context) ([]string, error) {
	var changed []string
	listed := map[string]seen{}
	for info, err := range r.Store.List(ctx, Prefix) {
		if err != nil {
			return nil, err
		}
		if len(listed) == maxFiles {
			return nil, fmt.Errorf("more than %d files", maxFiles)
		}
		ref := strings.TrimSuffix(strings.TrimPrefix(info.Key, Prefix), ".json")
		old := r.seen[ref]
		switch {
		case info.Key != Key(ref) || boxid.CheckRef(ref) != nil:
			listed[info.Key] = seen{err: fmt.Errorf("%w: %s is not %s<ref>.json", ErrInvalid, info.Key, Prefix)}
			continue
		case old.etag != info.ETag:
			changed = append(changed, ref)
		}
		listed[ref] = old
	}
	r.seen = listed
	return changed, nil
}

func (r *Reader) fetch(ctx context.Context, refs []string) error {
	got := make([]*objstore.Object, len(refs))
	var g errgroup.Group
	g.SetLimit(parallelGets)
	for i, ref := range refs {
		g.Go(func() error {
			obj, err := r.Store.Get(ctx, Key(ref))
			if err != nil {
				return err
			}
			got[i] = &obj
			return nil
		})
	}
	err := g.Wait()
	for i, ref := range refs {
		if got[i] != nil {
			r.seen[ref] = r.seen[ref].follow(*got[i], ref)
		}
	}
	return err
}

func (s seen) follow(obj objstore.Object, ref string) seen {
	s.etag = obj.ETag
	file, err := parse(obj, ref)
	if s.err = err; err == nil {
		s.good, s.file = true, file
	}
	return s
}

func (r *Reader) snapshot() Snapshot {
	var out Snapshot
	for _, ref := range slices.Sorted(maps.Keys(r.seen)) {
		s := r.seen[ref]
		if s.err != nil {
			out.Problems = append(out.Problems, fmt.Errorf("edges of %s: %w", ref, s.err))
		}
		if s.good {
			out.Files = append(out.Files, s.file)
		}
	}
	return out
}
