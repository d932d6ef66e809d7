package hostfiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

func digest(b []byte) string { return record.Digest(b) }

// state is one version of a generation's manifest, taken apart. It is never
// changed once made: the next version is another state.
type state struct {
	manifest Manifest // Gen 0: there is none yet
	body     []byte   // its exact bytes
	etag     string
	base     map[string]Entry
	changes  map[string]Entry
}

// loadHead reads the target's manifest for its session, without the base.
// Absent is the empty state. One GET.
func loadHead(ctx context.Context, s objstore.Store, t Target) (*state, error) {
	m, object, err := readManifest(ctx, s, t.manifestKey(), "")
	if errors.Is(err, objstore.ErrNotFound) {
		return &state{base: map[string]Entry{}, changes: map[string]Entry{}}, nil
	}
	if err != nil {
		return nil, err
	}
	if m.Session != t.Session || m.Stamp != t.Stamp {
		return nil, fmt.Errorf("%w: generation %s is written by session %d under stamp %d, not %d under %d",
			ErrFenced, t.Generation, m.Session, m.Stamp, t.Session, t.Stamp)
	}
	return &state{manifest: m, body: object.Body, etag: object.ETag, changes: byName(m.Changes)}, nil
}

// load reads the target's manifest for its session, and its base. One or two
// GETs.
func load(ctx context.Context, s Store, t Target) (*state, error) {
	st, err := loadHead(ctx, s, t)
	if err != nil {
		return nil, err
	}
	if st.base, err = readBase(ctx, s, st.manifest); err != nil {
		return nil, err
	}
	return st, checkTree(st.live())
}

func byName(entries []Entry) map[string]Entry {
	out := make(map[string]Entry, len(entries))
	for _, e := range entries {
		out[e.name()] = e
	}
	return out
}

func sorted(entries map[string]Entry) []Entry {
	out := make([]Entry, 0, len(entries))
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		out = append(out, entries[name])
	}
	return out
}

// ref cites the manifest.
func (st *state) ref() ManifestRef {
	return ManifestRef{Key: ManifestKey(st.manifest.Location, st.manifest.Generation),
		SHA256: digest(st.body), Seq: st.manifest.Seq}
}

// get returns the live entry of a path.
func (st *state) get(name string) (Entry, bool) {
	e, ok := st.changes[name]
	if !ok {
		e, ok = st.base[name]
	}
	return e, ok && e.Kind != KindTombstone
}

// live yields every path that is there, in no order.
func (st *state) live() iter.Seq2[string, Entry] {
	return func(yield func(string, Entry) bool) {
		for name, e := range st.changes {
			if e.Kind != KindTombstone && !yield(name, e) {
				return
			}
		}
		for name, e := range st.base {
			if _, changed := st.changes[name]; !changed && !yield(name, e) {
				return
			}
		}
	}
}

// with returns the changes that lead from the base to this state with update
// over it and without the paths in gone. A path that the base does not have
// needs no tombstone.
func (st *state) with(update []Entry, gone []Entry) map[string]Entry {
	changes := maps.Clone(st.changes)
	for _, e := range update {
		changes[e.name()] = e
	}
	for _, tombstone := range gone {
		if _, based := st.base[tombstone.name()]; based {
			changes[tombstone.name()] = tombstone
		} else {
			delete(changes, tombstone.name())
		}
	}
	return changes
}

// next builds the manifest that follows st in the target's generation.
func (st *state) next(t Target, seq uint64, base *BaseRef, changes map[string]Entry) Manifest {
	return Manifest{
		V: manifestVersion, Gen: st.manifest.Gen + 1, Write: record.Nonce(),
		Location: t.Location, Generation: t.Generation, Session: t.Session, Stamp: t.Stamp, Seq: seq,
		From: st.manifest.From, Opened: st.manifest.Opened, Base: base, Changes: sorted(changes),
	}
}

// condition is what a write that follows st must find.
func (st *state) condition() objstore.Condition {
	if st.manifest.Gen == 0 {
		return objstore.IfAbsent()
	}
	return objstore.IfMatch(st.etag)
}

// checkTree holds the live entries together to the rules of one tree: every
// entry lies in a directory that is an entry too, so none is reached through a
// symlink or a file, and a restore makes each exactly once.
func checkTree(live iter.Seq2[string, Entry]) error {
	kinds := make(map[string]Kind)
	for name, e := range live {
		kinds[name] = e.Kind
	}
	for name, kind := range kinds {
		switch {
		case name == FilesRoot && kind != KindDir:
			return fmt.Errorf("%w: %q is a %s, want a directory", ErrMalformed, name, kind)
		case name == FilesRoot, isPlatform(name):
		case kinds[parent(name)] != KindDir:
			what := cmp.Or(kinds[parent(name)], "not there")
			return fmt.Errorf("%w: %q lies in %q, which is %s, want a directory", ErrMalformed, name, parent(name), what)
		}
	}
	return nil
}
