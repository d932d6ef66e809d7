package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/placement"
)

// begin starts the move of a host that serves where it should not, if anywhere.
func (w *Worker) begin(ctx context.Context, o hostclaim.Observed) (hostrelocate.Turn, error) {
	c := o.Claim
	box := c.Op.Exec
	switch evidence, gone := w.evidence(box); {
	case !w.relocate.Serves(c, box):
		return hostrelocate.Turn{}, nil
	case gone:
		return w.place(ctx, o, "its box is gone", func(to hostclaim.Member) (hostrelocate.Turn, error) {
			return w.relocate.StartFailover(ctx, o, evidence, to.Box)
		})
	case w.draining.has(box):
		return w.place(ctx, o, "its box is draining", func(to hostclaim.Member) (hostrelocate.Turn, error) {
			if err := w.mayRelease(box); err != nil {
				return hostrelocate.Turn{}, err
			}
			return w.relocate.Drain(ctx, o, hostclaim.Drain, to)
		})
	}
	return w.spread(ctx, o)
}

// place starts to move a host to the box that is chosen for it. One that cannot
// be placed now is tried again on each sweep. It costs what the choice does: one
// GET of the host's record, and its part of a look.
func (w *Worker) place(ctx context.Context, o hostclaim.Observed, why string, start func(hostclaim.Member) (hostrelocate.Turn, error)) (hostrelocate.Turn, error) {
	target, ok, err := w.survey.Choose(ctx, o.Claim, nil)
	if err != nil {
		return hostrelocate.Turn{}, err
	}
	if !ok {
		return w.leave(o.Host, why, "no box may be given it"), nil
	}
	turn, err := start(target)
	if errors.Is(err, hostrelocate.ErrRefused) || errors.Is(err, hostclaim.ErrPendingChore) {
		return w.leave(o.Host, why, err.Error()), nil
	}
	return turn, err
}

// leave leaves a host unplaced until the next sweep.
func (w *Worker) leave(host, why, but string) hostrelocate.Turn {
	turn := hostrelocate.Turn{Waits: fmt.Sprintf("unplaced %s: %s and %s", host, why, but), Again: 2 * untilSwept}
	w.unplaced.put(host, why+" and "+but)
	return turn
}

// mayRelease refuses to begin a drain that would have to be cancelled: only a
// box that can prove that it stopped can give a host up.
func (w *Worker) mayRelease(box string) error {
	file, _ := w.survey.Edges().File(box)
	if !slices.Contains(file.Edges.Capabilities, placement.CapabilityRelease) {
		return fmt.Errorf("%w: %s does not say that it can prove a stop", hostrelocate.ErrRefused, box)
	}
	return nil
}

// unplaced is the hosts that should move and that no box may be given, with the
// reason of each.
type unplaced struct {
	mu sync.Mutex
	by map[string]string
}

func (u *unplaced) put(host, why string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by == nil {
		u.by = map[string]string{}
	}
	u.by[host] = why
}

func (u *unplaced) clear(host string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.by, host)
}

func (u *unplaced) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.by)
}

// first is how many there are, and of the first by name the reason.
func (u *unplaced) first() (n int, host, why string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.by) == 0 {
		return 0, "", ""
	}
	host = slices.Min(slices.Collect(maps.Keys(u.by)))
	return len(u.by), host, u.by[host]
}
