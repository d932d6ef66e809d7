package worker

import (
	"sync"

	"github.com/carlosframework/regionha/roster"
)

// draining is the boxes that the newest roster says are to be emptied.
type draining struct {
	mu       sync.Mutex
	revision uint64
	boxes    map[string]bool
}

func (d *draining) has(box string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.boxes[box]
}

func (d *draining) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return keys(d.boxes)
}

// set takes the place of what an older roster said, and lists the boxes that
// were not there.
func (d *draining) set(revision uint64, boxes map[string]bool) (fresh []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if revision < d.revision {
		return nil
	}
	for box := range boxes {
		if !d.boxes[box] {
			fresh = append(fresh, box)
		}
	}
	d.revision, d.boxes = revision, boxes
	return fresh
}

// empty has the hosts of the region's draining boxes queued: at once where a box
// drains since this roster, and on each sweep of the boxes while it does. One
// that is not active is for the fence and the declaration.
func (w *Worker) empty(snap roster.Snapshot) {
	now := map[string]bool{}
	for ref, box := range snap.Boxes {
		if box.Draining && box.State == roster.Active && box.Region == w.set.Region {
			now[ref] = true
		}
	}
	for _, ref := range w.draining.set(snap.Revision, now) {
		w.log.Info("a box is to be emptied", "about", ref, "hosts", w.claims.countOn(ref))
		w.queueHostsOf(ref)
	}
}
