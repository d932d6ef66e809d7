package worker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/placement"
)

const (
	// movesAtOnce bounds the hosts that one sweep moves to spread them.
	movesAtOnce = 4

	// moveWithin is how long a choice to move a host holds.
	moveWithin = 10 * time.Second

	// moveAgain is how long a host stays that could not be moved.
	moveAgain = time.Hour
)

// moves is the hosts that are to be moved to spread them, and those that could
// not.
type moves struct {
	mu      sync.Mutex
	to      map[string]move
	refused map[string]time.Time
}

type move struct {
	placement.Move
	until time.Time
}

// rebalance chooses a few hosts of the region's fullest boxes to be moved, where
// that is asked for and nothing else moves or waits to. No request.
func (w *Worker) rebalance(ctx context.Context) {
	if w.set.Rebalance == 0 || w.queue.size() > 0 || len(w.claims.running()) > 0 || w.unplaced.count() > 0 {
		return
	}
	pools, err := w.survey.Pools(ctx)
	if err != nil {
		w.log.Debug("spread the hosts", "err", err) // of a fence that cannot be read, which the sweep says
		return
	}
	left := movesAtOnce
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		files := slices.DeleteFunc(pools[pool], func(f placement.Published) bool {
			return !slices.Contains(f.Edges.Capabilities, placement.CapabilityRelease)
		})
		chosen := placement.Rebalance(files, w.fixed, w.set.Rebalance, left)
		left -= len(chosen)
		for _, m := range chosen {
			w.moves.put(m)
			w.enqueue(m.Host, w.claims.get(m.Host))
		}
	}
}

// fixed reports whether a host stays where it is: its claim does not say that it
// serves, or it could not be moved a while ago.
func (w *Worker) fixed(host string) bool {
	return w.claims.get(host).box == "" || w.moves.wasRefused(host)
}

// spread starts the move of a host that is to be moved to spread them. It costs
// what a drain does. One that cannot be is left alone for an hour.
func (w *Worker) spread(ctx context.Context, o hostclaim.Observed) (hostrelocate.Turn, error) {
	m, ok := w.moves.take(o.Host)
	if !ok || m.From != o.Claim.Op.Exec {
		return hostrelocate.Turn{}, nil
	}
	to, err := w.survey.Named(ctx, o.Claim, m.To)
	if err == nil {
		var turn hostrelocate.Turn
		if turn, err = w.relocate.Drain(ctx, o, hostclaim.Rebalance, to); err == nil {
			return turn, nil
		}
	}
	w.moves.refuse(o.Host)
	w.log.Info("a host is not moved to spread them", "host", o.Host, "from", m.From, "to", m.To, "err", err)
	return hostrelocate.Turn{}, nil
}

func (m *moves) put(chosen placement.Move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.to == nil {
		m.to, m.refused = map[string]move{}, map[string]time.Time{}
	}
	m.to[chosen.Host] = move{chosen, time.Now().Add(moveWithin)}
}

// take is the move that was chosen for a host, once.
func (m *moves) take(host string) (move, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	chosen, ok := m.to[host]
	delete(m.to, host)
	return chosen, ok && time.Now().Before(chosen.until)
}

func (m *moves) refuse(host string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[host] = time.Now()
}

func (m *moves) wasRefused(host string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.refused[host]
	if ok && time.Since(at) > moveAgain {
		delete(m.refused, host)
		return false
	}
	return ok
}
