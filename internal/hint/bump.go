package hint

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/internal/regionfile"
)

const (
	// bumpEvery is the least time between two bumps. Readers poll every 2 s.
	bumpEvery = time.Second

	// bumpAtOnce bounds the hosts of one bump: the file keeps 256 for those who
	// poll, and whoever misses one lists every claim.
	bumpAtOnce = 128

	// maxBumps bounds the hosts that wait for a bump; what does not fit is found
	// on the slow sweeps.
	maxBumps = 10_000
)

// bumps is the hosts that the region's file is still to name, each once, in
// the order in which they came.
type bumps struct {
	mu    sync.Mutex
	order []string
	boxes map[string][]string // who has to look, by host
	more  chan struct{}
}

func newBumps() *bumps { return &bumps{boxes: map[string][]string{}, more: make(chan struct{}, 1)} }

// add has the file name a host, to everybody who has to look since it did last.
func (b *bumps) add(host string, boxes []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, waits := b.boxes[host]
	switch {
	case waits && (len(before) == 0 || len(boxes) == 0):
		b.boxes[host] = nil
		return
	case waits:
		for _, box := range boxes {
			if !slices.Contains(before, box) {
				before = append(before, box)
			}
		}
		b.boxes[host] = before
		return
	case len(b.order) >= maxBumps:
		return
	}
	b.boxes[host] = slices.Clone(boxes)
	b.order = append(b.order, host)
	select {
	case b.more <- struct{}{}:
	default:
	}
}

func (b *bumps) take() []regionfile.Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.order), bumpAtOnce)
	changes := make([]regionfile.Change, n)
	for i, host := range b.order[:n] {
		changes[i] = regionfile.Change{Host: host, Boxes: b.boxes[host]}
		delete(b.boxes, host)
	}
	b.order = b.order[n:]
	return changes
}

// bump names hosts in the region's file until ctx ends, and then once more. The
// first is named at once, and those that come within a second of it together.
func (s *Sender) bump(ctx context.Context) {
	for {
		select {
		case <-s.bumps.more:
		case <-ctx.Done():
			s.bumpNow(ctx)
			return
		}
		for s.bumpNow(ctx) && pause.For(ctx, bumpEvery) {
		}
	}
}

// bumpNow makes one bump; false where there was nothing to say.
func (s *Sender) bumpNow(ctx context.Context) bool {
	changes := s.bumps.take()
	if len(changes) == 0 || s.Bump == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*within)
	defer cancel()
	s.failed("the region's file", s.Bump(ctx, changes...))
	return true
}
