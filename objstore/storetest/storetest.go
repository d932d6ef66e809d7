package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// Need says what a failed check means.
type Need string

// A store that fails a Required check is not to be used. A Note is harmless,
// because regionha avoids what it checks.
const (
	Required Need = "required"
	Note     Need = "note"
)

// Result is the outcome of one check.
type Result struct {
	Name    string
	Need    Need
	Why     string // what would go wrong on a store that fails, in plain words
	Took    time.Duration
	Skipped bool  // the store does not offer what is checked
	Err     error // nil where the check holds
}

// ErrUnfit: the store failed a required check.
var ErrUnfit = errors.New("not fit to hold claims")

// errSkip: the store lacks an optional interface.
var errSkip = errors.New("the store does not offer this")

// prefix is where all checks write.
const prefix = "control/store-check/"

// check is one rule of the contract.
type check struct {
	name string
	need Need
	why  string
	run  func(context.Context, bench) error
}

// all lists the checks in the order in which they run.
func all() []check {
	return slices.Concat(conditions, races, reading, listings, keys, bodies, versionChecks, copyChecks, settling, notes)
}

// bench is what a check works on: a store, and a prefix of its own.
type bench struct {
	objstore.Store
	dir    string
	rounds int // of a race
}

// key returns a key of this check.
func (b bench) key(name string) string { return b.dir + name }

// numbered returns one of several keys of this check.
func (b bench) numbered(n int) string { return fmt.Sprintf("%s%04d", b.dir, n) }

// put writes a small unique body, and fails the check where that fails.
func (b bench) put(ctx context.Context, key string, cond objstore.Condition) (objstore.Info, error) {
	info, err := b.Put(ctx, key, unique(), cond)
	if err != nil {
		return info, fmt.Errorf("a write %s: %w", cond, err)
	}
	return info, nil
}

// unique returns a body that no other call returns.
func unique() []byte { return []byte(record.Nonce()) }

// Check runs every check against s and reports each result as it is known. The
// error is [ErrUnfit] where a required check failed.
func Check(ctx context.Context, s objstore.Store, report func(Result)) error {
	root, rounds := prefix+record.Nonce()+"/", raceRounds
	unfit := 0
	for i, c := range all() {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := c.result(ctx, bench{Store: s, dir: fmt.Sprintf("%s%02d/", root, i), rounds: rounds})
		if r.Err != nil && r.Need == Required {
			unfit++
		}
		report(r)
	}
	if err := removeAll(ctx, s, root); err != nil {
		report(Result{Name: "clean-up", Need: Note, Why: "what the checks wrote stays under " + root, Err: err})
	}
	if unfit > 0 {
		return fmt.Errorf("%w: %d required checks failed", ErrUnfit, unfit)
	}
	return nil
}

// result runs one check.
func (c check) result(ctx context.Context, b bench) Result {
	start := time.Now()
	err := c.run(ctx, b)
	r := Result{Name: c.name, Need: c.need, Why: c.why, Took: time.Since(start), Err: err}
	if errors.Is(err, errSkip) {
		r.Skipped, r.Err = true, nil
	}
	return r
}

// Run holds the store that open returns to the contract, one subtest per check.
// The store is one for this test: what is written stays.
// A note that does not hold is a skipped subtest that says so. With -short the
// races are short.
func Run(t *testing.T, open func(t *testing.T) objstore.Store) {
	s := open(t)
	root, rounds := prefix+record.Nonce()+"/", raceRounds
	if testing.Short() {
		rounds = shortRounds
	}
	for i, c := range all() {
		t.Run(c.name, func(t *testing.T) {
			r := c.result(t.Context(), bench{Store: s, dir: fmt.Sprintf("%s%02d/", root, i), rounds: rounds})
			switch {
			case r.Skipped:
				t.Skip(errSkip)
			case r.Err != nil && r.Need == Note:
				t.Skipf("note: %v (%s)", r.Err, r.Why)
			case r.Err != nil:
				t.Fatalf("%v\non such a store: %s", r.Err, r.Why)
			}
		})
	}
}

// removeAll deletes every version under dir, where s can: several keys at once,
// the versions of one key oldest first.
func removeAll(ctx context.Context, s objstore.Store, dir string) error {
	v, ok := s.(objstore.Versioned)
	if !ok {
		return nil
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	var chain []objstore.Info // of one key
	remove := func() {
		infos := chain
		chain = nil
		g.Go(func() error {
			for _, info := range slices.Backward(infos) {
				if err := v.DeleteVersion(gctx, info.Key, info.VersionID); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for info, err := range v.ListVersions(ctx, dir) {
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		if len(chain) > 0 && chain[0].Key != info.Key {
			remove()
		}
		chain = append(chain, info)
	}
	remove()
	return g.Wait()
}

// want turns the answer of a write that must be refused into a verdict.
func want(err, sentinel error, what string) error {
	switch {
	case errors.Is(err, sentinel):
		return nil
	case err == nil:
		return fmt.Errorf("%s was accepted; it must be refused with %q", what, sentinel)
	}
	return fmt.Errorf("%s: %w; it must be refused with %q", what, err, sentinel)
}

// holds checks that key has exactly this body.
func (b bench) holds(ctx context.Context, key string, body []byte) error {
	o, err := b.Get(ctx, key)
	if err != nil {
		return err
	}
	if string(o.Body) != string(body) {
		return fmt.Errorf("%s holds %.40q, not the %.40q that was written", key, o.Body, body)
	}
	return nil
}

// absent checks that nothing has the key.
func (b bench) absent(ctx context.Context, key string) error {
	_, err := b.Get(ctx, key)
	return want(err, objstore.ErrNotFound, "a read of the absent "+key)
}
