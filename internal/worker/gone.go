package worker

import (
	"context"
	"fmt"
	"sync"

	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/survey"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// gone is the verified evidence about boxes, by reference. Evidence never goes,
// so neither does an entry; a fence takes the place of a declaration.
type gone struct {
	mu     sync.Mutex
	by     map[string]termfence.Evidence
	looked map[string]bool // retired enrollments whose declaration was looked for
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

// put takes in evidence. False where it says nothing that was not known: two
// looks at one box may find the same.
func (g *gone) put(e termfence.Evidence) (news bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[string]termfence.Evidence{}
	}
	if old, known := g.by[e.Box()]; known && old.Ref() == e.Ref() {
		return false
	}
	g.by[e.Box()] = e
	return true
}

// boxes is a copy of all of it.
func (g *gone) boxes() []termfence.Evidence {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]termfence.Evidence, 0, len(g.by))
	for _, e := range g.by {
		list = append(list, e)
	}
	return list
}

// once is true at the first call for an enrollment.
func (g *gone) once(enrollment string) bool {
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

func (g *gone) again(enrollment string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.looked, enrollment)
}

// found takes in evidence that is news, and queues what ran on the box.
func (w *Worker) found(e termfence.Evidence) {
	if !w.gone.put(e) {
		return
	}
	w.log.Warn("a box is gone", "about", e.Box(), "at", e.ObservedAt(), "declared", e.Declared(), "hosts", w.claims.countOn(e.Box()))
	w.alerts.Clear(alert.AwaitingEvidence, e.Box())
	w.forgetVolumes(e.Box())
	w.queueHostsOf(e.Box())
	w.queue.wakeAll() // it may be the target of what moves
}

// stored takes in the evidence about one box that the store holds: its fence,
// which the look has, and for a quarantined box an operator's declaration, which
// is looked for on each sweep until it is there: one GET. That of a retired box
// is looked for once.
func (w *Worker) stored(ctx context.Context, box roster.Box, fence survey.Fence) error {
	if !fence.At.IsZero() && !w.gone.fenced(box.Ref) {
		w.found(fence.Evidence)
	}
	retired := box.State == roster.Retired
	if w.gone.has(box.Ref) || !retired && box.State != roster.Quarantined || retired && !w.gone.once(box.Enrollment) {
		return fence.Err
	}
	e, declared, err := w.fences.Declared(ctx, box.Enrollment)
	if err != nil {
		w.gone.again(box.Enrollment)
		return fmt.Errorf("was it declared lost? %w", err)
	}
	if declared {
		w.found(e)
	}
	return fence.Err
}
