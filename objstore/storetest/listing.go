package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/objstore"
)

// listed is how many keys the paging check writes: more than one page holds.
const listed = 1050

// clockSlack is how far a store's clock may be off before it is worth a note.
const clockSlack = 30 * time.Second

const unseen = "a worker would miss a host, a fence or a part of a database"

var reading = []check{
	{"read after write", Required, "a box would act on a claim that is no more", readAfterWrite},
	{"not found", Required, "a failed read and an absent object could not be told apart", notFound},
	{"cancelled context", Required, "a call that was given up would claim to know the outcome", cancelled},
}

var listings = []check{
	{"list after write", Required, unseen, listAfterWrite},
	{"listing order and paging", Required, unseen, paging},
	{"listing while keys are overwritten", Required, unseen, listUnderWrites},
}

func readAfterWrite(ctx context.Context, b bench) error {
	key, cond := b.key("k"), objstore.IfAbsent()
	for range 20 {
		body := unique()
		put, err := b.Put(ctx, key, body, cond)
		if err != nil {
			return err
		}
		got, err := b.Get(ctx, key)
		switch {
		case err != nil:
			return err
		case string(got.Body) != string(body):
			return fmt.Errorf("a read after a write shows %.40q, not %.40q", got.Body, body)
		case got.ETag != put.ETag || got.VersionID != put.VersionID:
			return fmt.Errorf("the read says ETag %s version %q, the write said %s, %q", got.ETag, got.VersionID, put.ETag, put.VersionID)
		case got.Key != key || got.Size != int64(len(body)) || got.ModTime.IsZero():
			return fmt.Errorf("the read describes it as %+v", got.Info)
		}
		cond = objstore.IfMatch(put.ETag)
	}
	return nil
}

func notFound(ctx context.Context, b bench) error {
	if _, err := b.put(ctx, b.key("k/longer"), objstore.IfAbsent()); err != nil {
		return err
	}
	for _, key := range []string{b.key("k"), b.key("k/longe"), b.key("none/at/all")} {
		if err := b.absent(ctx, key); err != nil {
			return err
		}
	}
	for info, err := range b.List(ctx, b.key("none/")) {
		return fmt.Errorf("a listing of nothing yields %s: %v", info.Key, err)
	}
	return nil
}

func cancelled(ctx context.Context, b bench) error {
	key := b.key("k")
	if _, err := b.put(ctx, key, objstore.IfAbsent()); err != nil {
		return err
	}
	dead, cancel := context.WithCancel(ctx)
	cancel()
	_, err := b.Put(dead, b.key("new"), unique(), objstore.IfAbsent())
	if err := want(err, objstore.ErrUnknown, "a write with a cancelled context"); err != nil {
		return err
	}
	if _, err := b.Get(dead, key); err == nil || errors.Is(err, objstore.ErrNotFound) {
		return fmt.Errorf("a read with a cancelled context says %v", err)
	}
	for info, err := range b.List(dead, b.dir) {
		if err == nil {
			return fmt.Errorf("a listing with a cancelled context yields %s", info.Key)
		}
		return nil
	}
	return errors.New("a listing with a cancelled context ends as if there were nothing")
}

func listAfterWrite(ctx context.Context, b bench) error {
	var keys []string
	for i := range 20 {
		put, err := b.put(ctx, b.numbered(i), objstore.IfAbsent())
		if err != nil {
			return err
		}
		keys = append(keys, put.Key)
		infos, err := b.list(ctx, b.dir)
		if err != nil {
			return err
		}
		if got := keysOf(infos); !slices.Equal(got, keys) {
			return fmt.Errorf("after %d writes a listing shows %d keys", len(keys), len(got))
		}
		last := infos[len(infos)-1]
		if last.ETag != put.ETag || last.Size != put.Size || last.ModTime.IsZero() {
			return fmt.Errorf("the listing describes %s as %+v, the write said %+v", put.Key, last, put)
		}
	}
	return nil
}

// paging checks more keys than a page holds, with the bytes around the slash
// among them, since an order of path components is not the order of keys.
func paging(ctx context.Context, b bench) error {
	keys := []string{b.key("p-x"), b.key("p.x"), b.key("p/x"), b.key("p0x"), b.key("pAx"), b.key("p_x"), b.key("pax")}
	for i := range listed {
		keys = append(keys, b.key(fmt.Sprintf("q/%04d", i)))
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, key := range keys {
		g.Go(func() error {
			_, err := b.put(gctx, key, objstore.IfAbsent())
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	slices.Sort(keys)
	for _, prefix := range []string{b.dir, b.key("q"), b.key("q/"), b.key("q/00"), b.key("p"), b.key("p/"), b.key("q/1049")} {
		infos, err := b.list(ctx, prefix)
		if err != nil {
			return err
		}
		var wanted []string
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				wanted = append(wanted, key)
			}
		}
		if got := keysOf(infos); !slices.Equal(got, wanted) {
			return fmt.Errorf("a listing of %s shows %d keys, %d expected, or another order", prefix, len(got), len(wanted))
		}
	}
	return nil
}

// listUnderWrites checks that a key which is there all the time is listed, and
// once, while it is overwritten.
func listUnderWrites(ctx context.Context, b bench) error {
	_, err := b.churn(ctx) // a phantom key is a note of its own
	return err
}

// churn lists while keys are overwritten, and returns the keys listed that
// nobody wrote.
func (b bench) churn(ctx context.Context) (phantoms []string, err error) {
	const writers = 4
	var keys []string
	for w := range writers {
		info, err := b.put(ctx, b.numbered(w), objstore.IfAbsent())
		if err != nil {
			return nil, err
		}
		keys = append(keys, info.Key)
	}
	wctx, stop := context.WithCancel(ctx)
	defer stop()
	g, _ := errgroup.WithContext(ctx)
	for _, key := range keys {
		g.Go(func() error {
			for { // once at least, however soon the listings are done
				if _, err := b.Put(ctx, key, unique(), objstore.Always()); err != nil || wctx.Err() != nil {
					return err
				}
			}
		})
	}
	for range 50 {
		infos, err := b.list(ctx, b.dir)
		if err != nil {
			return nil, errors.Join(err, stopAndWait(stop, g))
		}
		got := keysOf(infos)
		for _, key := range keys {
			if n := count(got, key); n != 1 {
				return nil, errors.Join(fmt.Errorf("%s was there all the time and is listed %d times", key, n), stopAndWait(stop, g))
			}
		}
		for _, key := range got {
			if !slices.Contains(keys, key) {
				phantoms = append(phantoms, key)
			}
		}
	}
	return phantoms, stopAndWait(stop, g)
}

func stopAndWait(stop func(), g *errgroup.Group) error {
	stop()
	return g.Wait()
}

// list collects a listing.
func (b bench) list(ctx context.Context, prefix string) ([]objstore.Info, error) {
	return collect(b.List(ctx, prefix))
}
