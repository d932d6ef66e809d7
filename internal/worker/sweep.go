package worker

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/internal/survey"
	"github.com/carlosframework/regionha/roster"
)

// looksAtOnce bounds the boxes that are looked at together.
const looksAtOnce = 16

// sweepLoop looks at every box of the region on each sweep. Two workers that
// started together do not stay together.
func (w *Worker) sweepLoop(ctx context.Context) error {
	if !w.clock.await(ctx) {
		return nil
	}
	for {
		switch err := w.sweep(ctx); {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			w.log.Warn("sweep the boxes", "err", err)
			w.alerts.Raise(alert.Store, w.set.Region, "the boxes of the region cannot be swept", "err", err)
		default:
			w.alerts.Clear(alert.Store, w.set.Region)
		}
		w.requeue()
		w.discharge(ctx)
		w.rebalance(ctx)
		if !pause.For(ctx, w.set.Sweep-rand.N(w.set.Sweep/10)) {
			return nil
		}
	}
}

// sweep fences what is terminated, finds what was fenced or declared lost, has
// the draining boxes emptied, and says which boxes await evidence. It costs two
// GETs of the roster, two LISTs, a GET of each edges file and each fence that is
// new, one describe for each box of the region that is not fenced, and one GET
// for each quarantined one that is not known to be gone.
func (w *Worker) sweep(ctx context.Context) error {
	if err := w.clock.check(); err != nil {
		return err // a fence holds the time that it was observed at, for ever
	}
	snap, self, err := w.enrolled(ctx)
	if err != nil {
		return err
	}
	select {
	case w.rosters <- snap:
	default: // the last one is still being worked on
	}
	look, unlooked := w.survey.Look(ctx) // without one, machines are asked all the same
	w.empty(snap)
	w.tellCloud(w.describeAll(ctx, w.swept(snap), self, look))
	for ref := range snap.Boxes {
		box, _ := snap.Box(ref)
		w.tellAwaiting(box)
	}
	return unlooked
}

// swept lists the boxes that a sweep is about, those whose files are stale
// first, and then those that were not described for longest.
func (w *Worker) swept(snap roster.Snapshot) []roster.Box {
	var boxes []roster.Box
	silent := map[string]int{}
	for ref := range snap.Boxes {
		if box, _ := snap.Box(ref); w.mine(box) && !w.gone.fenced(ref) {
			boxes = append(boxes, box)
			if w.stale(box, time.Now()) != nil {
				silent[ref] = 1
			}
		}
	}
	slices.SortFunc(boxes, func(a, b roster.Box) int {
		return cmp.Or(cmp.Compare(silent[b.Ref], silent[a.Ref]), w.sights.at(a.Ref).Compare(w.sights.at(b.Ref)))
	})
	return boxes
}

// mine reports whether a box is another one of this worker's region.
func (w *Worker) mine(box roster.Box) bool {
	return box.Region == w.set.Region && box.Ref != w.self.Ref
}

// describeAll looks at boxes, in the store and in the cloud, and returns what
// the cloud did not answer, by reference.
func (w *Worker) describeAll(ctx context.Context, boxes []roster.Box, self roster.Box, look *survey.Look) map[string]error {
	var mu sync.Mutex
	failed := map[string]error{}
	var group errgroup.Group
	group.SetLimit(looksAtOnce)
	for _, box := range boxes {
		group.Go(func() error {
			var fence survey.Fence
			if look != nil {
				fence = look.Fences[box.Ref]
			}
			if err := w.stored(ctx, box, fence); err != nil && ctx.Err() == nil {
				w.log.Warn("is it gone?", "about", box.Ref, "err", err)
			}
			if box.State == roster.Retired || !box.Cloud.Complete() || w.gone.fenced(box.Ref) {
				return nil
			}
			if err := w.lookAt(ctx, box, self); err != nil && ctx.Err() == nil {
				mu.Lock()
				failed[box.Ref] = err
				mu.Unlock()
			}
			if !w.sights.of(box.Ref).unreached.IsZero() {
				w.tryReach(ctx, box.Ref)
			}
			return nil
		})
	}
	_ = group.Wait() // each says its own error
	return failed
}

// confirmLoop confirms the boxes that the region's group launched, once for each
// sweep at most: it keeps no sweep waiting.
func (w *Worker) confirmLoop(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case snap := <-w.rosters:
			w.confirmMembers(ctx, snap)
		}
	}
}

// tellCloud alerts once for all boxes that the cloud said nothing about.
func (w *Worker) tellCloud(failed map[string]error) {
	for ref, err := range failed {
		w.log.Debug("look at a box", "about", ref, "err", err)
		w.alerts.Raise(alert.Cloud, w.set.Region, "the cloud does not answer about boxes: one that ends is not found while it does not",
			"boxes", len(failed), "first", ref, "err", err)
		return
	}
	w.alerts.Clear(alert.Cloud, w.set.Region)
}

// hints bounds how often hints about boxes make the roster be read.
var hints = rate.Every(500 * time.Millisecond)

// lookLoop looks at the boxes that hints are about, at once: in the roster, for
// one that is to be emptied, and in the cloud. It costs one GET of the roster for
// all hints of a moment, and what [Worker.lookAt] does for each box.
func (w *Worker) lookLoop(ctx context.Context) error {
	if !w.clock.await(ctx) {
		return nil
	}
	var looking errgroup.Group
	looking.SetLimit(looksAtOnce)
	defer func() { _ = looking.Wait() }()
	limit := rate.NewLimiter(hints, 1)
	for limit.Wait(ctx) == nil {
		refs := w.doubts.take(ctx)
		snap, self, err := w.enrolled(ctx)
		if err == nil {
			err = w.clock.check()
		}
		if err != nil {
			if ctx.Err() == nil {
				w.log.Warn("look at boxes that a hint is about", "boxes", len(refs), "err", err)
			}
			continue
		}
		w.empty(snap)
		for _, ref := range refs {
			box, ok := snap.Box(ref)
			if !ok || !w.mine(box) || box.State == roster.Retired || !box.Cloud.Complete() || w.gone.fenced(ref) {
				continue
			}
			looking.Go(func() error { w.doubt(ctx, box, self); return nil })
		}
	}
	return nil
}

// doubt looks at one box that a hint is about. Whether it can be reached is tried
// again in a while, once, where it cannot: an agent that starts anew is soon
// back. After that the sweeps try.
func (w *Worker) doubt(ctx context.Context, box, self roster.Box) {
	if err := w.lookAt(ctx, box, self); err != nil {
		w.log.Debug("look at a box", "about", box.Ref, "err", err)
	}
	if !w.gone.has(box.Ref) && w.tryReach(ctx, box.Ref) {
		time.AfterFunc(unreachedFor, func() { w.doubts.add(box.Ref) })
	}
	w.tellAwaiting(box)
}
