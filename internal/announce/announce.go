package announce

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/placement"
)

const (
	// ClockLimit is how far a clock may be from the store's.
	ClockLimit = 30 * time.Second

	// passWithin bounds the reads of a pass, and its write.
	passWithin = 20 * time.Second

	// farewellWithin bounds the last write of a process that ends.
	farewellWithin = 5 * time.Second

	// compareEvery is how often a write is followed by a look at the time that
	// the store gave it.
	compareEvery = time.Minute
)

// Announcer publishes one edges file. One goroutine runs it.
type Announcer struct {
	Store   objstore.Store
	Edges   func() placement.Edges // what to say now; the announcer may change its Hosts
	Changed <-chan struct{}        // says that Edges says something else
	Every   time.Duration          // at the latest; a fifth more at random
	Log     *slog.Logger

	// Claims decides which hosts are published, by the claims that Read reads;
	// nil: all are, as Edges says.
	Claims *placement.Claims
	Read   func(ctx context.Context, host string) (placement.Claim, error)

	Moved func(hosts []string)    // told which hosts have a new home here, once that is published; nil: nobody
	Clock func(off time.Duration) // told how far this clock is from the store's; nil: nobody

	pace     placement.Pace
	last     placement.Published
	known    bool // last is what the store holds, as far as this process knows
	compared time.Time
}

// Run publishes until ctx ends: at once, when something changed, and every so
// often; and once more then, where the file does not say what Edges says.
//
// It costs a GET at first, and a PUT each time, followed by a GET once a minute
// at most where somebody is told of the clock; and a GET for each read of a
// claim. When those are made, and how long it waits after a failed write, is
// decided by [placement.Claims] and [placement.Pace].
func (a *Announcer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := a.pass(ctx); err != nil && ctx.Err() == nil {
			a.pace.Failed(time.Now())
			a.Log.Warn("publish the edges file, trying again", "err", err, "in", a.pace.Backoff())
		}
		a.wait(ctx)
	}
	a.farewell(ctx)
	return nil
}

// wait waits for the next pass, or the end of ctx.
func (a *Announcer) wait(ctx context.Context) {
	at := a.pace.Rest()
	if a.Claims != nil {
		if due, ok := a.Claims.Due(); ok {
			at = earlier(at, a.pace.Read(due))
		}
	}
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-a.Changed:
			at = earlier(at, a.pace.Change())
			timer.Reset(time.Until(at))
		}
	}
}

// pass makes one pass: the reads that are due, and the file, where it would say
// something new or is old.
func (a *Announcer) pass(ctx context.Context) error {
	a.read(ctx)
	next := a.says()
	if a.known && next.Says(a.last.Edges) && !a.pace.Regular(time.Now()) {
		a.pace.Passed(time.Now())
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, passWithin)
	defer cancel()
	if err := a.publish(ctx, next); err != nil {
		return err
	}
	a.pace.Wrote(time.Now(), a.Every+rand.N(a.Every/5+1))
	return nil
}

// says is the file as it is to be.
func (a *Announcer) says() placement.Edges {
	next := a.Edges()
	if a.Claims != nil {
		a.Claims.Decide(next.Hosts)
	}
	return next
}

// publish writes the file over what this process last wrote, or over what it
// finds: a file of its own from before.
func (a *Announcer) publish(ctx context.Context, next placement.Edges) error {
	if !a.known {
		was, err := placement.Read(ctx, a.Store, next.Box)
		if err != nil && !errors.Is(err, objstore.ErrNotFound) {
			return err
		}
		a.last, a.known = was, true
	}
	before := time.Now()
	published, err := placement.Publish(ctx, a.Store, a.last, next)
	if err != nil {
		a.known = false
		return err
	}
	after := time.Now()
	moved := newHomes(a.last.Edges.Hosts, next.Hosts)
	a.last = published
	if a.Moved != nil && len(moved) > 0 {
		a.Moved(moved)
	}
	return a.compare(ctx, next.Box, before, after)
}

// farewell publishes what Edges says at the end, if that is new. Nobody waits
// long for it: without it the file grows stale.
func (a *Announcer) farewell(ctx context.Context) {
	next := a.says()
	if a.known && next.Says(a.last.Edges) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewellWithin)
	defer cancel()
	if err := a.publish(ctx, next); err != nil {
		a.Log.Warn("publish the last edges file", "err", err)
	}
}

func newHomes(before, now map[string]placement.Host) (moved []string) {
	for name, h := range now {
		if before[name].Stamp != h.Stamp {
			moved = append(moved, name)
		}
	}
	return moved
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
