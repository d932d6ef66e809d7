package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/objstore"
)

// The sizes of the races.
const (
	raceWriters    = 32
	raceRounds     = 200
	shortRounds    = 10
	counterWriters = 16
	counterSteps   = 8
)

const twoHolders = "two boxes could both hold one claim, and both run its writer"

var conditions = []check{
	{"create-only", Required, twoHolders, createOnly},
	{"if-match", Required, twoHolders, ifMatch},
	{"if-match on an absent key", Required, "a claim that was removed by mistake would be resurrected by whoever last read it", ifMatchAbsent},
	{"refused input", Required, "a programming error would become an unconditional write", refusedInput},
}

var races = []check{
	{"create-only race", Required, twoHolders, createRace},
	{"if-match race", Required, twoHolders, matchRace},
	{"compare-and-swap counter", Required, "an acknowledged step of a claim would be lost", counter},
}

func createOnly(ctx context.Context, b bench) error {
	key, body := b.key("k"), unique()
	if _, err := b.Put(ctx, key, body, objstore.IfAbsent()); err != nil {
		return err
	}
	for _, again := range [][]byte{unique(), body} {
		_, err := b.Put(ctx, key, again, objstore.IfAbsent())
		if err := want(err, objstore.ErrConflict, "a second create-only write"); err != nil {
			return err
		}
	}
	return b.holds(ctx, key, body)
}

func ifMatch(ctx context.Context, b bench) error {
	key := b.key("k")
	first, err := b.put(ctx, key, objstore.IfAbsent())
	if err != nil {
		return err
	}
	second, err := b.put(ctx, key, objstore.IfMatch(first.ETag))
	if err != nil {
		return err
	}
	if first.ETag == second.ETag {
		return fmt.Errorf("two bodies have one ETag %s", first.ETag)
	}
	body := unique()
	if _, err := b.Put(ctx, key, body, objstore.IfMatch(second.ETag)); err != nil {
		return err
	}
	for _, stale := range []string{first.ETag, second.ETag, `"00000000000000000000000000000000"`} {
		_, err := b.Put(ctx, key, unique(), objstore.IfMatch(stale))
		if err := want(err, objstore.ErrConflict, "an If-Match write of the stale ETag "+stale); err != nil {
			return err
		}
	}
	return b.holds(ctx, key, body)
}

func ifMatchAbsent(ctx context.Context, b bench) error {
	there, err := b.put(ctx, b.key("there"), objstore.IfAbsent())
	if err != nil {
		return err
	}
	_, err = b.Put(ctx, b.key("absent"), unique(), objstore.IfMatch(there.ETag))
	if err := want(err, objstore.ErrConflict, "an If-Match write of an absent key"); err != nil {
		return err
	}
	return b.absent(ctx, b.key("absent"))
}

func refusedInput(ctx context.Context, b bench) error {
	key := b.key("k")
	for _, cond := range []objstore.Condition{{}, objstore.IfMatch("")} {
		_, err := b.Put(ctx, key, unique(), cond)
		if err := want(err, objstore.ErrBadCondition, "a write with "+cond.String()); err != nil {
			return err
		}
	}
	for _, bad := range []string{"", "a\x00b", "a\xff", strings.Repeat("k", objstore.MaxKey+1)} {
		_, err := b.Put(ctx, bad, unique(), objstore.IfAbsent())
		if err := want(err, objstore.ErrBadKey, fmt.Sprintf("a write of the key %.20q", bad)); err != nil {
			return err
		}
		_, err = b.Get(ctx, bad)
		if err := want(err, objstore.ErrBadKey, fmt.Sprintf("a read of the key %.20q", bad)); err != nil {
			return err
		}
	}
	return b.absent(ctx, key)
}

func createRace(ctx context.Context, b bench) error {
	for round := range b.rounds {
		if err := race(ctx, b, b.numbered(round), objstore.IfAbsent()); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

func matchRace(ctx context.Context, b bench) error {
	key := b.key("k")
	info, err := b.put(ctx, key, objstore.IfAbsent())
	if err != nil {
		return err
	}
	for round := range b.rounds {
		if err := race(ctx, b, key, objstore.IfMatch(info.ETag)); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		o, err := b.Get(ctx, key)
		if err != nil {
			return err
		}
		info = o.Info
	}
	return nil
}

// race lets many writers write under one condition: one wins, the others
// conflict, and the winner's body is what is there.
func race(ctx context.Context, b bench, key string, cond objstore.Condition) error {
	var wins atomic.Int64
	var winner atomic.Value
	g, gctx := errgroup.WithContext(ctx)
	for range raceWriters {
		g.Go(func() error {
			body := unique()
			_, err := b.Put(gctx, key, body, cond)
			if errors.Is(err, objstore.ErrConflict) {
				return nil
			}
			if err == nil {
				wins.Add(1)
				winner.Store(body)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if n := wins.Load(); n != 1 {
		return fmt.Errorf("%d of %d writers %s won; exactly one may", n, raceWriters, cond)
	}
	return b.holds(ctx, key, winner.Load().([]byte))
}

// counter lets writers count up by compare-and-swap: no acknowledged step may
// be missing in the end.
func counter(ctx context.Context, b bench) error {
	key := b.key("k")
	if _, err := b.Put(ctx, key, []byte("0"), objstore.IfAbsent()); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for range counterWriters {
		g.Go(func() error {
			for range counterSteps {
				if err := increment(gctx, b, key); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return b.holds(ctx, key, []byte(strconv.Itoa(counterWriters*counterSteps)))
}

// increment counts up by one. Each conflict is another writer's step, so there
// are fewer conflicts than steps.
func increment(ctx context.Context, b bench, key string) error {
	for range counterWriters * counterSteps {
		o, err := b.Get(ctx, key)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(o.Body))
		if err != nil {
			return err
		}
		_, err = b.Put(ctx, key, []byte(strconv.Itoa(n+1)), objstore.IfMatch(o.ETag))
		if !errors.Is(err, objstore.ErrConflict) {
			return err
		}
	}
	return errors.New("writers conflict with no one: there are more conflicts than writes")
}
