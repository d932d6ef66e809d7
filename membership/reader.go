package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

// ErrUnverified: a stored confirmation does not hold, or not any more. It is
// neither evidence nor the absence of it; a fuller one may take its place.
var ErrUnverified = errors.New("confirmation not verified")

const (
	// maxListed bounds one listing, in keys.
	maxListed = 100_000

	// maxRead is how many confirmations about one box are read, the newest.
	maxRead = 4
)

// Reader turns stored confirmations into [Evidence].
type Reader struct {
	Store  objstore.Store
	Roster *roster.Directory
}

// List returns the keys of the confirmations about every box, the newest first
// and at most 4 of each box, for [Reader.Read]. It costs one LIST. A key of
// another form is passed over: no worker wrote it.
func (r Reader) List(ctx context.Context) (map[string][]string, error) {
	keys, err := r.list(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("membership: list confirmations: %w", err)
	}
	return keys, nil
}

func (r Reader) list(ctx context.Context, under string) (map[string][]string, error) {
	all, n := make(map[string][]string), 0
	for info, err := range r.Store.List(ctx, under) {
		if err != nil {
			return nil, err
		}
		if n++; n > maxListed {
			return nil, fmt.Errorf("more than %d keys under %s", maxListed, under)
		}
		box, _, ok := strings.Cut(strings.TrimPrefix(info.Key, prefix), "/")
		if !ok || boxid.CheckRef(box) != nil {
			continue
		}
		keys := append(all[box], info.Key)
		all[box] = keys[max(0, len(keys)-maxRead):]
	}
	for _, keys := range all {
		slices.Reverse(keys)
	}
	return all, nil
}

// Find returns the newest confirmation about a box that holds, and whether
// there is one. It costs one LIST and [Reader.Read]. False with a nil error is
// the store's own answer that it holds none.
func (r Reader) Find(ctx context.Context, box string) (Evidence, bool, error) {
	keys, err := r.list(ctx, prefix+box+"/")
	if err != nil {
		return Evidence{}, false, fmt.Errorf("membership: confirmations of %q: %w", box, err)
	}
	if len(keys[box]) == 0 {
		return Evidence{}, false, nil
	}
	ev, err := r.Read(ctx, box, keys[box])
	return ev, err == nil, err
}

// Read returns the first of the confirmations at keys that holds for a box. It
// costs a GET of each until then, and of the roster. Where none holds the error
// is [ErrUnverified] and says why the first does not; any other error, of the
// store or of [roster.Directory.Read], says nothing.
func (r Reader) Read(ctx context.Context, box string, keys []string) (Evidence, error) {
	ev, err := r.read(ctx, box, keys)
	if err != nil {
		return Evidence{}, fmt.Errorf("membership: confirmation of %q: %w", box, err)
	}
	return ev, nil
}

func (r Reader) read(ctx context.Context, box string, keys []string) (Evidence, error) {
	first := fmt.Errorf("%w: there is none", ErrUnverified)
	for i, key := range keys {
		ev, err := r.get(ctx, box, key)
		if err == nil || !errors.Is(err, ErrUnverified) {
			return ev, err
		}
		if i == 0 {
			first = err
		}
	}
	return Evidence{}, first
}

func (r Reader) get(ctx context.Context, box, key string) (Evidence, error) {
	obj, err := r.Store.Get(ctx, key)
	if err != nil {
		return Evidence{}, err
	}
	return r.verify(ctx, box, key, obj.Body)
}

// verify holds a record to the roster, which it reads after the record, so that
// the roster is never the older of the two.
func (r Reader) verify(ctx context.Context, box, key string, body []byte) (Evidence, error) {
	rec, err := record.Decode[Record](body)
	switch {
	case err != nil:
		return Evidence{}, fmt.Errorf("%w: %w", ErrUnverified, err)
	case rec.Box != box || key != Key(rec.Box, rec.ObservedAt):
		return Evidence{}, fmt.Errorf("%w: %s holds one of box %q at %s", ErrUnverified, key, rec.Box, rec.ObservedAt)
	}
	snap, err := r.Roster.Read(ctx)
	if err != nil {
		return Evidence{}, err
	}
	if err := check(snap.Roster, rec); err != nil {
		return Evidence{}, fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	return Evidence{key: key, sha256: record.Digest(body), rec: rec}, nil
}
