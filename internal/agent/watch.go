package agent

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/claimlist"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/internal/regionfile"
)

const (
	// pollEvery is how often the region's file is asked what changed.
	pollEvery = 2 * time.Second

	// parallelLooks bounds the claims that are looked at at once.
	parallelLooks = 16

	// sweepAgain is the pause after a sweep that failed.
	sweepAgain = 5 * time.Second
)

// retryEvery is how often a host is looked at again that could not be.
const retryEvery = 30 * time.Second

// watch finds the hosts that claims name this box for: those that the region's
// file says changed, and all of them where it has a hole and on a slow sweep.
func (a *Agent) watch(ctx context.Context) error {
	w := regionfile.Watcher{Store: a.control, Region: a.set.Region, For: a.self.Box}
	list := claimlist.Reader{Store: a.control}
	missed := map[string]bool{} // hosts that could not be looked at, or taken
	var swept, retried time.Time
	joined := a.place.joined.Load()
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
			} else {
				list.Skip = a.foreign // the first reads every claim
			}
		}
		a.lookAt(ctx, changed, missed)
		if now := a.place.joined.Load(); now != joined {
			joined, retried = now, time.Time{} // what it could not take, it may take now
		}
		if time.Since(retried) > retryEvery {
			a.lookAt(ctx, slices.Collect(maps.Keys(missed)), missed)
			retried = time.Now()
		}
		if !pause.For(ctx, pollEvery) {
			return nil
		}
	}
}

// foreign reports whether a host is none of this box's business: another box
// publishes it, lately, and nothing of it is here. A claim that names this box
// all the same is found: who gives it such a host tells it so until it takes part,
// and a box whose claim names another withholds the host within minutes.
func (a *Agent) foreign(host string) bool {
	return !a.has(host) && a.homes.elsewhere(host, time.Now())
}

// sweepClaims reads the claims that changed since the last sweep, but for those
// that list skips: one LIST, and one GET for each. What it shows as it was is
// known again as of now, and what could not be read is missed. False where the
// listing is not complete.
func (a *Agent) sweepClaims(ctx context.Context, list *claimlist.Reader, missed map[string]bool) bool {
	began := time.Now()
	err := list.Each(ctx, func(o hostclaim.Observed, _ time.Time) {
		if _, ok := a.supervised(o.Host); ok {
			a.claims.Saw(o.Host, behind(o), began)
		}
		if !a.concern(o) {
			missed[o.Host] = true
		}
	})
	if err != nil {
		a.log.Warn("sweep the claims", "err", err)
		unread, complete := errors.AsType[*claimlist.UnreadError](err)
		if !complete {
			return false
		}
		for _, host := range unread.Hosts {
			missed[host] = true
		}
	}
	listed := list.Listed()
	a.place.listed.Store(&listed)
	a.claims.Listed(listed, began)
	a.explain(ctx)
	return true
}

// lookAt looks at hosts, several at a time, and says in missed which it could not
// look at.
func (a *Agent) lookAt(ctx context.Context, names []string, missed map[string]bool) {
	looked := make([]bool, len(names))
	var looks errgroup.Group
	looks.SetLimit(parallelLooks)
	for i, name := range names {
		looks.Go(func() error { looked[i] = a.look(ctx, name); return nil })
	}
	_ = looks.Wait() // each says whether it did
	for i, name := range names {
		if looked[i] {
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

// has reports whether a supervisor looks after the host, or something of it lies
// here.
func (a *Agent) has(host string) bool {
	if _, ok := a.supervised(host); ok {
		return true
	}
	_, err := os.Lstat(filepath.Join(a.set.DataDir, "hosts", host))
	return err == nil
}

// knows reports whether a supervisor has seen the host's claim as of gen, so that
// there is no reason to look again.
func (a *Agent) knows(host string, gen uint64) bool {
	h, ok := a.supervised(host)
	if !ok {
		return false
	}
	s := h.shown.Load()
	return s != nil && s.claim != nil && s.claim.Gen >= gen
}

// concern gives a host that the claim names this box for to a supervisor; false
// where it cannot have one.
func (a *Agent) concern(o hostclaim.Observed) bool {
	if o.Claim != nil && a.knows(o.Host, o.Claim.Gen) || a.poke(o.Host) {
		return true
	}
	switch {
	case !names(o.Claim, a.self.Box):
		return true
	case !a.mayTake(o.Host):
		a.log.Info("a claim names this box, which may not take it yet", "host", o.Host)
		return false
	}
	if _, err := a.supervisor(o.Host); err != nil {
		a.log.Error("a claim names this box for a host that it cannot take", "host", o.Host, "err", err)
		return false
	}
	return true
}

// changed tells others, without waiting, that a claim moved.
func (a *Agent) changed(_ context.Context, c *hostclaim.Claim) { a.hints.Send(hintOf(c)) }
