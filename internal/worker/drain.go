package worker

import (
	"context"
	"sync"

	"github.com/carlosframework/regionha/roster"
)

// draining is the boxes that the roster of the last sweep says are to be
// emptied.
type draining struct {
	mu    sync.Mutex
	boxes map[string]bool
}

func (d *draining) has(box string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.boxes[box]
}

// set takes the place of what was there, and lists the boxes that were not.
func (d *draining) set(boxes map[string]bool) (fresh []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for box := range boxes {
		if !d.boxes[box] {
			fresh = append(fresh, box)
		}
	}
	d.boxes = boxes
	return fresh
}

// empty has the hosts of the region's draining boxes queued: at once where a box
// drains since this roster, and on each sweep of the boxes while it does. One
// that is not active is for the fence and the declaration.
func (w *Worker) empty(ctx context.Context, snap roster.Snapshot) {
	now := map[string]bool{}
	for ref, box := range snap.Boxes {
		if box.Draining && box.State == roster.Active && box.Region == w.set.Region {
			now[ref] = true
		}
	}
	for _, ref := range w.draining.set(now) {
		w.log.Info("a box is to be emptied", "about", ref)
		w.queueHostsOf(ctx, ref)
	}
}
