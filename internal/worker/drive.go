package worker

import (
	"context"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/pause"
)

// maxQueued bounds the queue; what does not fit is found by the next sweep.
const maxQueued = 100_000

// queue is the hosts that wait to be driven, each once. A host that is added
// while it is driven is driven again.
type queue struct {
	mu    sync.Mutex
	order []string
	state map[string]queueState
	more  chan struct{}
}

type queueState int

const (
	waiting queueState = iota + 1
	driven
	again
)

func (q *queue) open() { q.state, q.more = map[string]queueState{}, make(chan struct{}, 1) }

func (q *queue) add(host string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.state[host] {
	case driven:
		q.state[host] = again
	case 0:
		if len(q.order) < maxQueued {
			q.state[host] = waiting
			q.order = append(q.order, host)
			q.signal()
		}
	}
}

func (q *queue) signal() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// take waits for a host; false when ctx ended.
func (q *queue) take(ctx context.Context) (string, bool) {
	for {
		q.mu.Lock()
		if len(q.order) > 0 {
			host := q.order[0]
			q.order = q.order[1:]
			q.state[host] = driven
			if len(q.order) > 0 {
				q.signal()
			}
			q.mu.Unlock()
			return host, true
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return "", false
		case <-q.more:
		}
	}
}

// crowded reports whether hosts wait for a driver.
func (q *queue) crowded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.order) > 0
}

// done gives a host back.
func (q *queue) done(host string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.state[host]
	delete(q.state, host)
	if was == again {
		q.state[host] = waiting
		q.order = append(q.order, host)
		q.signal()
	}
}

// drive takes hosts from the queue, at most Parallel at a time, until ctx ends.
func (w *Worker) drive(ctx context.Context) error {
	if !w.awaitClock(ctx) {
		return nil
	}
	var drivers sync.WaitGroup
	defer drivers.Wait()
	for range w.set.Parallel {
		drivers.Go(func() {
			for {
				host, ok := w.queue.take(ctx)
				if !ok {
					return
				}
				w.driveHost(ctx, host)
				w.queue.done(host)
			}
		})
	}
	return nil
}

// driveHost makes steps for one host until there is nothing left to do for it,
// or nothing can be done now.
func (w *Worker) driveHost(ctx context.Context, host string) {
	log := w.log.With("host", host)
	said, moved := "", time.Now()
	for failures := 0; failures < 5; {
		turn, err := w.stepHost(ctx, host)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures++
			log.Warn("step failed, trying again", "err", err)
			turn = hostrelocate.Turn{Again: time.Second << failures}
		case turn.Done():
			return
		case turn.Did != "":
			failures, moved = 0, time.Now()
			log.Info(turn.Did)
		case turn.Again > unplacedAfter:
			return
		case time.Since(moved) > patience && w.queue.crowded():
			w.queue.add(host) // behind those that wait
			return
		case turn.Waits != said:
			said = turn.Waits
			log.Debug(turn.Waits)
		}
		if turn.Again > 0 && !pause.For(ctx, turn.Again) {
			return
		}
	}
}

// patience is how long a host that waits for others keeps its place while hosts
// wait for one: operations that cannot go on must not keep out those that can.
const patience = time.Second

// unplacedAfter: a turn that waits longer than this gives its place to another
// host, and is taken up again on the next sweep.
const unplacedAfter = time.Minute

// stepHost makes one step: of a running relocation, or the start of one where
// the host serves on a box that is gone.
func (w *Worker) stepHost(ctx context.Context, host string) (hostrelocate.Turn, error) {
	if err := w.clockOff(); err != nil {
		return hostrelocate.Turn{}, err
	}
	o, err := hostclaim.Read(ctx, w.control, host)
	if err != nil || o.Claim == nil {
		return hostrelocate.Turn{}, err
	}
	w.claims.put(o.Claim)
	c := o.Claim
	if c.Op.Kind == hostclaim.Relocating {
		return w.relocate.Step(ctx, o)
	}
	evidence, fenced := w.gone.get(c.Op.Exec)
	if !fenced || !w.relocate.Serves(c, evidence.Box()) {
		return hostrelocate.Turn{}, nil
	}
	target, err := w.survey.choose(ctx, c)
	if err != nil {
		return hostrelocate.Turn{}, err
	}
	if target == "" {
		w.log.Error("unplaced: its box is gone and no other may be given it; trying again on each sweep", "host", host)
		return hostrelocate.Turn{Waits: "unplaced " + host + ": no box may be given it", Again: 2 * unplacedAfter}, nil
	}
	return w.relocate.StartFailover(ctx, o, evidence, target)
}
