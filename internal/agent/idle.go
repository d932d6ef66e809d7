package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/runner"
)

// quietWithin bounds the wait for the answers of an app that is about to be
// stopped. What it is still busy with then, it may finish before it ends.
const quietWithin = 5 * time.Second

// quiet waits until the app of a host whose row is held, or which is shown idle,
// has answered every request that it was sent, as far as [ingress.Ingress.Quiet]
// waits for one.
func (a *Agent) quiet(ctx context.Context, name string) error {
	if a.gateway == nil { // nothing was ever sent
		return nil
	}
	return a.gateway.Quiet(ctx, name)
}

// want wakes the host if it is idle: somebody waits for it.
func (h *host) want() {
	h.wanted.Store(true)
	h.poke()
}

// rests reports whether nothing needs to run: the session ended in order on this
// box and the record lets an idle host sleep, until somebody wants it. It costs
// one GET of the record where that is to be asked.
func (h *host) rests(ctx context.Context, c *hostclaim.Claim) (bool, error) {
	h.idle = false
	if !endedHere(c, h.agent.self.Box) || h.wanted.Load() {
		return false, nil
	}
	rec, err := h.readRecord(ctx, c)
	if err != nil {
		return false, err
	}
	h.record = rec
	h.idle = rec.IdleTimeout > 0
	return h.idle, nil
}

// endedHere reports whether the current session is one of box, and over.
func endedHere(c *hostclaim.Claim, box string) bool {
	end := c.Holder.Ended
	return end != nil && end.Box == box && end.Session == c.Holder.Session && c.Holder.WriterBox == box
}

// unused is how long nobody has used what runs.
func (h *host) unused() time.Duration {
	last := h.run.routed
	if g := h.agent.gateway; g != nil {
		if used := g.LastUsed(h.name); used.After(last) {
			last = used
		}
	}
	return time.Since(last)
}

// rest ends the session of a host that nobody has used for its idle_timeout, in
// order. The host stays home here, and the next request wakes it: one that comes
// meanwhile is held, and one that slipped in before lets the session go on.
func (h *host) rest(ctx context.Context, o hostclaim.Observed) (hostrelocate.Turn, error) {
	timeout := h.record.IdleTimeout.Std()
	if timeout == 0 || o.Claim.Op.Kind != hostclaim.Serving {
		return hostrelocate.Turn{}, nil
	}
	h.failures = 0             // at rest, though it looks again
	if h.run.routed.IsZero() { // from here on: those that woke it come first
		h.run.routed = time.Now()
	}
	if left := timeout - h.unused(); left > 0 {
		return hostrelocate.Turn{Again: min(left, sweep)}, nil
	}
	h.wanted.Store(false)
	h.show(func(s *shown) { s.run, s.idle = nil, true })
	if err := h.answered(ctx); err != nil || h.unused() < timeout {
		return hostrelocate.Turn{Again: min(timeout, sweep)}, err
	}
	if err := h.run.app.Load().Stop(ctx); err != nil {
		return hostrelocate.Turn{}, err
	}
	if err := h.witness(ctx, h.run.producers); err != nil {
		return h.restless(ctx, err)
	}
	h.idle = true
	if err := h.endStopped(ctx, o, nil); err != nil {
		h.idle = false
		return moved(h.name, err)
	}
	return hostrelocate.Turn{Did: fmt.Sprintf("%s is idle: ended session %d", h.name, o.Claim.Holder.Session)}, nil
}

// restless lets a session go on that could not be ended as idle: its app, which
// has stopped, is started again, and the next try is an idle_timeout away.
func (h *host) restless(ctx context.Context, why error) (hostrelocate.Turn, error) {
	if err := h.run.start(); err != nil {
		return hostrelocate.Turn{}, errors.Join(err, h.abandon(ctx))
	}
	h.log.Warn("idle, and not put to sleep", "session", h.run.number, "err", why)
	h.run.routed = time.Now()
	return hostrelocate.Turn{Again: look}, nil
}

// answered waits for the app's answers, but not for long.
func (h *host) answered(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, quietWithin)
	defer cancel()
	return h.agent.quiet(ctx, h.name)
}

// follow tells of every change of the app's state until it has stopped or ctx
// ends, so that what waits for the app need not ask again and again.
func follow(ctx context.Context, app *runner.App, changed func()) {
	for {
		state, next := app.State()
		changed()
		if state.Phase == runner.Stopped {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
		}
	}
}

// appChanged makes whoever waits for the app look again.
func (h *host) appChanged() {
	h.poke()
	h.agent.homes.wake()
}
