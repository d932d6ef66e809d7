// Package announce keeps a process's edges file published, and learns from it
// how far the process's clock is from the store's.
package announce

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/placement"
)

// ClockLimit is how far a clock may be from the store's.
const ClockLimit = 30 * time.Second

const (
	// gather is the least time between two files, so that changes that come
	// together share one. The first is published at once.
	gather = 50 * time.Millisecond

	minBackoff = 2 * time.Second
	maxBackoff = 5 * time.Minute
)

// Announcer publishes one edges file. One goroutine runs it.
type Announcer struct {
	Store   objstore.Store
	Edges   func() placement.Edges // what to say now
	Changed <-chan struct{}        // says that Edges says something else
	Every   time.Duration          // at the latest; a fifth more at random
	Log     *slog.Logger

	Moved func(hosts []string)    // told which hosts have a new home here, once that is published; nil: nobody
	Clock func(off time.Duration) // told how far this clock is from the store's after each write; nil: nobody

	last  placement.Published
	known bool
}

// Run publishes until ctx ends: at once, when something changed, and every so
// often. It costs a PUT and a GET each time, and a GET at first. After a failed
// write it waits 2 s, doubling to 5 min.
func (a *Announcer) Run(ctx context.Context) error {
	backoff := time.Duration(0)
	for {
		wait := a.Every + rand.N(a.Every/5+1)
		switch err := a.publish(ctx); {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			backoff = min(max(2*backoff, minBackoff), maxBackoff)
			a.Log.Warn("publish the edges file, trying again", "err", err, "in", backoff)
			if !pause.For(ctx, backoff) {
				return nil
			}
			continue
		}
		backoff = 0
		if !pause.For(ctx, gather) || !a.wait(ctx, wait) {
			return nil
		}
	}
}

func (a *Announcer) wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	case <-a.Changed:
		return true
	}
}

// publish writes the file over what this process last wrote, or over what it
// finds: a file of its own from before.
func (a *Announcer) publish(ctx context.Context) error {
	next := a.Edges()
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

// compare reads the time that the store gave to the write just made.
func (a *Announcer) compare(ctx context.Context, box string, before, after time.Time) error {
	if a.Clock == nil {
		return nil
	}
	stored, err := placement.Read(ctx, a.Store, box)
	if err != nil {
		return err
	}
	a.Clock(Off(before, after, stored.ModTime))
	return nil
}

// Off is how far a clock that saw a write begin at before and end at after is
// behind (positive) or ahead of (negative) the store, which accepted it at
// stored. Stores keep whole seconds, so less than one is none.
func Off(before, after, stored time.Time) time.Duration {
	switch {
	case stored.Before(before.Add(-time.Second)):
		return stored.Sub(before)
	case stored.After(after.Add(time.Second)):
		return stored.Sub(after)
	}
	return 0
}

func newHomes(before, now map[string]placement.Host) (moved []string) {
	for name, h := range now {
		if before[name].Stamp != h.Stamp {
			moved = append(moved, name)
		}
	}
	return moved
}
