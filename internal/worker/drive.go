package worker

import (
	"context"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/hint"
)

const (
	// maxPoll is the longest pause between two looks at a claim that a box is to
	// move, and minPoll the first. Boxes hint when they did; a hint that was lost
	// costs so much.
	minPoll, maxPoll = time.Second, 2 * time.Second

	// patience is how long a move whose claim does not change counts as one that
	// runs: one that cannot go on keeps no other from being begun. It is looked at
	// more and more rarely, at last each maxRest.
	patience = 30 * time.Second
	maxRest  = 30 * time.Second

	// tellAgain is how long the boxes of a move are waited for before they are told
	// of it once more.
	tellAgain = 5 * time.Second

	// untilSwept: a turn that waits longer than this waits for a person or for
	// another box, and is taken up again on the next sweep.
	untilSwept = time.Minute

	// maxFailures is how many steps of a host may fail in a row before it is left
	// to the next sweep.
	maxFailures = 5

	// perBox is how many moves run for each box that may be given hosts, where
	// that is more than Parallel: a box installs a few at a time, and those that
	// wait for it only cost looks.
	perBox = 4
)

// drive moves hosts until ctx ends. Parallel drivers take what is first in the
// queue, make its steps, and put it off while it waits.
func (w *Worker) drive(ctx context.Context) error {
	var drivers sync.WaitGroup
	defer drivers.Wait()
	for range w.set.Parallel {
		drivers.Go(func() {
			for {
				s, ok := w.queue.take(ctx)
				if !ok {
					return
				}
				w.driveHost(ctx, s)
			}
		})
	}
	return nil
}

// mayBegin reports whether another move may be begun: as many run at a time as
// the boxes can take, but Parallel at least.
func (w *Worker) mayBegin() bool {
	taking := 0
	for _, f := range w.survey.Edges().Files {
		if f.Edges.Region == w.set.Region && f.Edges.Accepting && !w.gone.has(f.Edges.Box) {
			taking++
		}
	}
	return w.claims.active(time.Now().Add(-patience)) < max(w.set.Parallel, perBox*taking)
}

// driveHost makes steps for one host until there is nothing left to do for it,
// it has to wait, or it is not this worker's turn any more.
func (w *Worker) driveHost(ctx context.Context, s *slot) {
	log := w.log.With("host", s.host)
	var turn hostrelocate.Turn
	for ctx.Err() == nil {
		if !w.queue.look(s) {
			w.queue.putOff(s, s.rank, 0)
			return
		}
		var err error
		turn, err = w.nextStep(ctx, s.host, turn)
		e := w.claims.get(s.host)
		switch {
		case ctx.Err() != nil:
		case err != nil && s.failures < maxFailures:
			s.failures++
			log.Warn("step failed", "err", err, "in_a_row", s.failures)
			w.queue.putOff(s, rankOf(e), time.Second<<s.failures)
			return
		case err != nil || turn.Done() || turn.Again > untilSwept:
			log.Debug("left to the next sweep", "waits", turn.Waits, "err", err)
			w.queue.done(s)
			return
		case turn.Did != "":
			s.failures, s.told = 0, time.Now()
			log.Info(turn.Did)
		case turn.Waits != s.said:
			s.said = turn.Waits
			log.Debug(turn.Waits)
		}
		if turn.Again > 0 {
			w.queue.putOff(s, rankOf(e), w.pauseOf(s, e, turn))
			return
		}
	}
	w.queue.done(s)
}

// pauseOf is how long a host is put off whose turn says to look again: for what
// is told, more and more rarely, and to the moment for everything else. While it
// waits for boxes they are told once more now and then.
func (w *Worker) pauseOf(s *slot, e entry, turn hostrelocate.Turn) time.Duration {
	now := time.Now()
	still := now.Sub(e.changed)
	switch {
	case !turn.Told:
		return turn.Again
	case now.Sub(s.told) >= tellAgain:
		s.told = now
		w.tellBoxes(s.host, e)
	}
	if still > patience {
		return min(still/4, maxRest)
	}
	return min(minPoll+still/2, maxPoll)
}

// tellBoxes tells the boxes of a move once more that it waits for them.
func (w *Worker) tellBoxes(host string, e entry) {
	if e.moving {
		w.set.Send(hint.Outgoing{Hint: hint.Hint{Host: host, Gen: e.gen}, To: e.boxes})
	}
}

// nextStep makes the step that follows last: on the claim as that wrote it, where
// it wrote one.
func (w *Worker) nextStep(ctx context.Context, host string, last hostrelocate.Turn) (hostrelocate.Turn, error) {
	if last.Now.Claim == nil {
		return w.stepHost(ctx, host)
	}
	if err := w.mayDrive(); err != nil {
		return hostrelocate.Turn{}, err
	}
	return w.step(ctx, last.Now)
}

// stepHost makes one step: of a running move, or the start of one where the host
// serves on a box that is gone, that is to be emptied, or that has too many. It
// costs one GET beside what the step does.
func (w *Worker) stepHost(ctx context.Context, host string) (hostrelocate.Turn, error) {
	if err := w.mayDrive(); err != nil {
		return hostrelocate.Turn{}, err
	}
	o, err := hostclaim.Read(ctx, w.control, host)
	if err != nil {
		return hostrelocate.Turn{}, err
	}
	w.unplaced.clear(host)
	if o.Claim == nil {
		return hostrelocate.Turn{}, nil
	}
	w.saw(o.Claim)
	return w.step(ctx, o)
}

func (w *Worker) step(ctx context.Context, o hostclaim.Observed) (hostrelocate.Turn, error) {
	if o.Claim.Op.Kind == hostclaim.Relocating {
		return w.relocate.Step(ctx, o)
	}
	return w.begin(ctx, o)
}
