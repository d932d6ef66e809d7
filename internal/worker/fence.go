package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// hurries bounds how often a hint may make every box be described.
var hurries = rate.Every(500 * time.Millisecond)

// gone is the verified evidence about boxes, by reference. Evidence never goes,
// so neither does an entry; a fence takes the place of a declaration.
type gone struct {
	mu     sync.Mutex
	by     map[string]termfence.Evidence
	looked map[string]bool // enrollments whose evidence was looked for in the store
}

func (g *gone) get(box string) (termfence.Evidence, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e, ok := g.by[box]
	return e, ok
}

func (g *gone) has(box string) bool { _, ok := g.get(box); return ok }

// fenced reports whether there is nothing left to find out about a box.
func (g *gone) fenced(box string) bool { e, ok := g.get(box); return ok && !e.Declared() }

func (g *gone) put(e termfence.Evidence) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[string]termfence.Evidence{}
	}
	g.by[e.Box()] = e
}

func (g *gone) firstLook(enrollment string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.looked[enrollment] {
		return false
	}
	if g.looked == nil {
		g.looked = map[string]bool{}
	}
	g.looked[enrollment] = true
	return true
}

func (g *gone) lookAgain(enrollment string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.looked, enrollment)
}

// fenceLoop describes every box of the region on each sweep, and at once when a
// hint says that one does not answer.
func (w *Worker) fenceLoop(ctx context.Context) error {
	limit := rate.NewLimiter(hurries, 1)
	if !w.awaitClock(ctx) {
		return nil
	}
	for {
		if err := w.sweep(ctx); err != nil && ctx.Err() == nil {
			w.log.Warn("sweep the boxes", "err", err)
		}
		w.requeue()
		t := time.NewTimer(w.set.Sweep)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		case <-w.hurry:
			t.Stop()
			if limit.Wait(ctx) != nil {
				return nil
			}
		}
	}
}

// sweep fences what is terminated, finds what was declared lost, and has the
// draining boxes emptied. It costs one GET of the roster, one describe for each
// box of the region that is not fenced, one GET for each quarantined one that is
// not known to be gone, and one for each that drains since the last sweep.
func (w *Worker) sweep(ctx context.Context) error {
	if err := w.clockOff(); err != nil {
		return err // a fence holds the time that it was observed at, for ever
	}
	snap, err := w.roster.Read(ctx)
	if err != nil {
		return err
	}
	self, ok := snap.Box(w.self.Ref)
	if !ok || self.State != roster.Active || self.Enrollment != w.self.Enrollment {
		return fmt.Errorf("%w: this worker's entry is not active: it fences nothing", roster.ErrNotSelf)
	}
	w.empty(ctx, snap)
	var group errgroup.Group
	group.SetLimit(w.set.Parallel)
	for ref := range snap.Boxes {
		box, _ := snap.Box(ref)
		if ref == w.self.Ref || box.Region != w.set.Region || w.gone.fenced(ref) {
			continue
		}
		group.Go(func() error {
			if err := w.fence(ctx, box, self); err != nil && ctx.Err() == nil {
				w.log.Warn("is it gone?", "about", box.Ref, "err", err)
			}
			return nil
		})
	}
	return group.Wait()
}

// fence finds out whether a box is gone. An error says nothing either way.
func (w *Worker) fence(ctx context.Context, box, self roster.Box) error {
	first := w.gone.firstLook(box.Enrollment)
	if first {
		e, fenced, err := w.fences.Fenced(ctx, box.Enrollment)
		if err != nil {
			w.gone.lookAgain(box.Enrollment)
			return err
		}
		if fenced {
			w.found(ctx, e)
			return nil
		}
	}
	var unread error
	if box.State == roster.Quarantined || first && box.State == roster.Retired {
		unread = w.declared(ctx, box)
	}
	if box.State == roster.Retired || !box.Cloud.Complete() {
		return unread
	}
	return errors.Join(unread, w.describe(ctx, box, self))
}

// declared looks for an operator's word that a box is lost, unless it was
// found. The box may be fenced nonetheless, which says more.
func (w *Worker) declared(ctx context.Context, box roster.Box) error {
	if w.gone.has(box.Ref) {
		return nil
	}
	e, declared, err := w.fences.Declared(ctx, box.Enrollment)
	if err != nil {
		w.gone.lookAgain(box.Enrollment)
		return err
	}
	if declared {
		w.log.Warn("a box is declared lost", "about", box.Ref, "at", e.ObservedAt())
		w.found(ctx, e)
	}
	return nil
}

// describe asks the cloud about a box, and fences it where it is terminated.
func (w *Worker) describe(ctx context.Context, box, self roster.Box) error {
	seen, err := w.describer.Describe(ctx, box.Cloud)
	if err != nil {
		return err
	}
	record, err := termfence.Verify(box, self, seen, time.Now())
	if errors.Is(err, termfence.ErrNoProof) {
		return nil
	}
	if err != nil {
		return err
	}
	e, err := termfence.Publish(ctx, w.control, w.fences, record)
	if err != nil {
		return err
	}
	w.log.Warn("a box is gone: fenced", "about", box.Ref, "instance", box.Cloud.InstanceID)
	w.found(ctx, e)
	return nil
}

// found queues what ran on a box that is gone.
func (w *Worker) found(ctx context.Context, e termfence.Evidence) {
	w.gone.put(e)
	w.queueHostsOf(ctx, e.Box())
	w.requeue()
}

// queueHostsOf queues the hosts of a box's last edges file. Those that this
// worker saw there are queued again on each sweep of the boxes, and the sweep of
// all claims finds the rest.
func (w *Worker) queueHostsOf(ctx context.Context, box string) {
	file, err := placement.Read(ctx, w.control, box)
	if err != nil && !errors.Is(err, objstore.ErrNotFound) {
		w.log.Warn("read the last edges file of a box that is to be left", "about", box, "err", err)
	}
	for host := range file.Edges.Hosts {
		w.queue.add(host)
	}
}
