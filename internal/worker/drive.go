package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/placement"
)

// maxQueued bounds the queue; what does not fit is found by the next sweep.
const maxQueued = 100_000

// queue is the hosts that wait to be driven, each once. A host that is added
// while it is driven wakes its driver.
type queue struct {
	mu    sync.Mutex
	order []string
	hosts map[string]*slot
	more  chan struct{}
}

// slot is the place of one host in the queue.
type slot struct {
	driven, again bool
	woken         chan struct{} // told that the host was added while it is driven
}

func (q *queue) open() { q.hosts, q.more = map[string]*slot{}, make(chan struct{}, 1) }

func (q *queue) add(host string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch p := q.hosts[host]; {
	case p == nil && len(q.order) < maxQueued:
		q.hosts[host] = &slot{woken: make(chan struct{}, 1)}
		q.order = append(q.order, host)
		signal(q.more)
	case p != nil && p.driven:
		p.again = true
		signal(p.woken)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
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
			q.hosts[host].driven = true
			if len(q.order) > 0 {
				signal(q.more)
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

// look is called by the driver of a host before it looks at it: what was added
// until then needs no other look. The channel tells of what is added after it.
func (q *queue) look(host string) (woken <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.hosts[host]
	p.again = false
	select {
	case <-p.woken:
	default:
	}
	return p.woken
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
	p := q.hosts[host]
	if !p.again {
		delete(q.hosts, host)
		return
	}
	p.driven, p.again = false, false
	q.order = append(q.order, host)
	signal(q.more)
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
		woken := w.queue.look(host)
		turn, err := w.stepHost(ctx, host)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures++
			log.Warn("step failed, trying again", "err", err)
			turn, woken = hostrelocate.Turn{Again: time.Second << failures}, nil
		case turn.Done():
			return
		case turn.Did != "":
			failures, moved = 0, time.Now()
			log.Info(turn.Did)
		case turn.Again > untilSwept:
			log.Warn(turn.Waits)
			return
		case time.Since(moved) > patience && w.queue.crowded():
			w.queue.add(host) // behind those that wait
			return
		case turn.Waits != said:
			said = turn.Waits
			log.Debug(turn.Waits)
		}
		if !until(ctx, turn.Again, woken) {
			return
		}
	}
}

// until waits for again, or until the driver is woken; false where ctx ended
// first.
func until(ctx context.Context, again time.Duration, woken <-chan struct{}) bool {
	if again <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(again)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-woken:
	case <-t.C:
	}
	return true
}

// patience is how long a host that waits for others keeps its place while hosts
// wait for one: operations that cannot go on must not keep out those that can.
const patience = time.Second

// untilSwept: a turn that waits longer than this waits for a person or for
// another box. It gives its place to another host, and is taken up again on the
// next sweep.
const untilSwept = time.Minute

// stepHost makes one step: of a running relocation, or the start of one where
// the host serves on a box that is gone, or that is to be emptied. It costs one
// GET beside what the step does.
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
	switch evidence, fenced := w.gone.get(c.Op.Exec); {
	case c.Op.Kind == hostclaim.Relocating:
		w.findPeers(ctx, c)
		return w.relocate.Step(ctx, o)
	case !w.relocate.Serves(c, c.Op.Exec):
		return hostrelocate.Turn{}, nil
	case fenced:
		return w.place(ctx, o, "its box is gone", func(to hostclaim.Member) (hostrelocate.Turn, error) {
			return w.relocate.StartFailover(ctx, o, evidence, to.Box)
		})
	case w.draining.has(c.Op.Exec):
		return w.place(ctx, o, "its box is draining", func(to hostclaim.Member) (hostrelocate.Turn, error) {
			if err := w.mayRelease(c.Op.Exec); err != nil {
				return hostrelocate.Turn{}, err
			}
			return w.relocate.Drain(ctx, o, hostclaim.Drain, to)
		})
	}
	return hostrelocate.Turn{}, nil
}

// place starts to move a host to the box that is chosen for it. One that cannot
// be placed now is tried again on each sweep. It costs what the choice does.
func (w *Worker) place(ctx context.Context, o hostclaim.Observed, why string, start func(hostclaim.Member) (hostrelocate.Turn, error)) (hostrelocate.Turn, error) {
	target, ok, err := w.survey.Choose(ctx, o.Claim, nil)
	if err != nil {
		return hostrelocate.Turn{}, err
	}
	if !ok {
		return unplaced(o.Host, why, "no box may be given it"), nil
	}
	turn, err := start(target)
	if errors.Is(err, hostrelocate.ErrRefused) || errors.Is(err, hostclaim.ErrPendingChore) {
		return unplaced(o.Host, why, err.Error()), nil
	}
	return turn, err
}

func unplaced(host, why, but string) hostrelocate.Turn {
	return hostrelocate.Turn{Waits: fmt.Sprintf("unplaced %s: %s and %s", host, why, but), Again: 2 * untilSwept}
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
