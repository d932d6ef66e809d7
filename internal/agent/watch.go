package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/claimlist"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/internal/regionfile"
)

const (
	// pollEvery is how often the region's file is asked what changed.
	pollEvery = 2 * time.Second

	// sweepAgain is the pause after a sweep that failed.
	sweepAgain = 5 * time.Second
)

// retryEvery is how often a host is looked at again that could not be.
const retryEvery = 30 * time.Second

// watch finds the hosts that claims name this box for: those that the region's
// file says changed, and all of them where it has a hole and on a slow sweep.
func (a *Agent) watch(ctx context.Context) error {
	w := regionfile.Watcher{Store: a.control, Region: a.set.Region}
	list := claimlist.Reader{Store: a.control}
	missed := map[string]bool{} // hosts that could not be looked at, or taken
	var swept, retried time.Time
	for {
		changed, hole, err := w.Poll(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			a.log.Warn("poll what changed", "err", err)
		case hole || time.Since(swept) > sweep:
			swept = time.Now()
			if !a.sweepClaims(ctx, &list, missed) {
				swept = swept.Add(sweepAgain - sweep) // what a hole hides is not seen before a sweep succeeds
			}
		}
		a.lookAt(ctx, changed, missed)
		if time.Since(retried) > retryEvery {
			a.lookAt(ctx, slices.Collect(maps.Keys(missed)), missed)
			retried = time.Now()
		}
		if !pause.For(ctx, pollEvery) {
			return nil
		}
	}
}

// sweepClaims reads the claims that changed since the last sweep: one LIST, and
// one GET for each.
func (a *Agent) sweepClaims(ctx context.Context, list *claimlist.Reader, missed map[string]bool) bool {
	changed, err := list.Changed(ctx)
	for _, o := range changed {
		if !a.concern(o) {
			missed[o.Host] = true
		}
	}
	if err != nil {
		a.log.Warn("sweep the claims", "err", err)
	}
	return err == nil
}

func (a *Agent) lookAt(ctx context.Context, names []string, missed map[string]bool) {
	for _, name := range names {
		if a.look(ctx, name) {
			delete(missed, name)
		} else {
			missed[name] = true
		}
	}
}

// look makes a host's claim be read now; false where it could not be read, or
// not be taken.
func (a *Agent) look(ctx context.Context, name string) bool {
	if a.poke(name) {
		return true
	}
	o, err := hostclaim.Read(ctx, a.control, name)
	if err != nil {
		a.log.Warn("look at a host", "host", name, "err", err)
		return false
	}
	return a.concern(o)
}

// concern gives a host that the claim names this box for to a supervisor; false
// where it cannot have one.
func (a *Agent) concern(o hostclaim.Observed) bool {
	if a.poke(o.Host) {
		return true
	}
	if !names(o.Claim, a.self.Box) {
		return true
	}
	if _, err := a.supervisor(o.Host); err != nil {
		a.log.Error("a claim names this box for a host that it cannot take", "host", o.Host, "err", err)
		return false
	}
	return true
}

// changed tells others, without waiting, that a claim moved.
func (a *Agent) changed(_ context.Context, c *hostclaim.Claim) { a.hints.Send(hintOf(c)) }

func (a *Agent) bump(ctx context.Context, hosts ...string) error {
	return regionfile.Bump(ctx, a.control, a.set.Region, hosts...)
}
