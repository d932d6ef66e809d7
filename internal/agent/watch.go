package agent

import (
	"context"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/claimlist"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/internal/regionfile"
)

// pollEvery is how often the region's file is asked what changed.
const pollEvery = 2 * time.Second

// watch finds the hosts that claims name this box for: those that the region's
// file says changed, and all of them where it has a hole and on a slow sweep.
func (a *Agent) watch(ctx context.Context) error {
	w := regionfile.Watcher{Store: a.control, Region: a.set.Region}
	list := claimlist.Reader{Store: a.control}
	var swept time.Time
	for {
		changed, hole, err := w.Poll(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			a.log.Warn("poll what changed", "err", err)
		case hole || time.Since(swept) > sweep:
			if a.sweepClaims(ctx, &list) {
				swept = time.Now()
			}
		}
		for _, name := range changed {
			a.look(ctx, name)
		}
		if !pause.For(ctx, pollEvery) {
			return nil
		}
	}
}

// sweepClaims reads the claims that changed since the last sweep: one LIST, and
// one GET for each.
func (a *Agent) sweepClaims(ctx context.Context, list *claimlist.Reader) bool {
	changed, err := list.Changed(ctx)
	for _, o := range changed {
		a.concern(o)
	}
	if err != nil {
		a.log.Warn("sweep the claims", "err", err)
	}
	return err == nil
}

// look makes a host's claim be read now.
func (a *Agent) look(ctx context.Context, name string) {
	if h, ok := a.row(name); ok {
		h.poke()
		return
	}
	o, err := hostclaim.Read(ctx, a.control, name)
	if err != nil {
		a.log.Warn("look at a host", "host", name, "err", err)
		return
	}
	a.concern(o)
}

// concern gives a host that the claim names this box for to a supervisor.
func (a *Agent) concern(o hostclaim.Observed) {
	if h, ok := a.row(o.Host); ok {
		h.poke()
		return
	}
	if !names(o.Claim, a.self.Box) {
		return
	}
	if _, err := a.supervisor(o.Host); err != nil {
		a.log.Error("a claim names this box for a host that it cannot take", "host", o.Host, "err", err)
	}
}

// changed tells others, without waiting, that a claim moved.
func (a *Agent) changed(_ context.Context, c *hostclaim.Claim) { a.hints.Send(hintOf(c)) }

func (a *Agent) bump(ctx context.Context, hosts ...string) error {
	return regionfile.Bump(ctx, a.control, a.set.Region, hosts...)
}
