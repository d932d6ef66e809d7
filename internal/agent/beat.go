package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/pause"
)

const (
	beatEvery = 250 * time.Millisecond

	// suspendedAfter is a gap between two beats that means that the process, or
	// the machine, stood still: it may have been replaced meanwhile.
	suspendedAfter = 5 * time.Second
)

// errSuspended refuses writes of a process that stood still, until it has read
// its claims again.
var errSuspended = errors.New("this box stood still and has not read its claims again yet")

// heartbeat knows when the process last had both run and known its claims. It
// compares wall clocks: a machine that is suspended stops the monotonic one.
type heartbeat struct{ last atomic.Int64 }

func (b *heartbeat) start(now time.Time) { b.last.Store(now.UnixNano()) }

// check is errSuspended where the last beat is too long ago.
func (b *heartbeat) check(now time.Time) error {
	if now.Sub(time.Unix(0, b.last.Load())) > suspendedAfter {
		return errSuspended
	}
	return nil
}

// heartbeats beats until ctx ends. After a gap it reads the claim of everything
// that runs first, so that no write is taken in between.
func (a *Agent) heartbeats(ctx context.Context) error {
	for pause.For(ctx, beatEvery) {
		if a.beat.check(time.Now()) != nil {
			a.log.Warn("this box stood still: reading its claims again")
			if !a.recheck(ctx) {
				continue
			}
		}
		a.beat.start(time.Now())
	}
	return nil
}

// recheck reads the claim of every session that runs here and shuts out those
// that are not admitted any more. It reports whether every claim could be read.
func (a *Agent) recheck(ctx context.Context) bool {
	all := true
	for _, h := range a.rows() {
		s := h.shown.Load()
		if s == nil || s.run == nil {
			continue
		}
		o, err := hostclaim.Read(ctx, a.control, h.name)
		if err != nil {
			h.log.Warn("read the claim again", "err", err)
			all = false
			continue
		}
		if !runs(o.Claim, a.self.Box, s.run.number) {
			s.run.lost.Store(true)
		}
		h.poke()
	}
	return all
}
