package worker

import (
	"context"
	"errors"
	"time"

	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/objstore"
)

const (
	// turnTTL is how long the turn of a worker lasts that does not renew it.
	turnTTL = 10 * time.Second

	// turnAsk is how often one that has hosts to drive asks whether it is its
	// turn. With turnTTL it bounds what the death of a worker delays: 12 s.
	turnAsk = 2 * time.Second

	// turnRace is the pause after another worker was faster.
	turnRace = 100 * time.Millisecond

	// turnIdle is how long a worker keeps its turn that has nothing to drive.
	turnIdle = time.Minute
)

// turnKey is the lease that says which worker of a region drives now.
func turnKey(region string) string { return "control/drivers/" + region + ".json" }

// takeTurns lets one of the region's workers drive at a time, so that two do not
// make the same requests. It says who begins and never who may: every step is a
// conditional write, whoever holds the turn, and every worker looks for boxes
// that are gone regardless of it.
//
// A worker asks for the turn once it has a host to drive, and gives it back when
// it ends, or had none for a minute. While one has it, that is a PUT each 3 s,
// and a GET each 2 s of each other one that has hosts to drive; at rest nothing. A
// turn that can neither be had nor be seen to be another's keeps no host waiting.
func (w *Worker) takeTurns(ctx context.Context) error {
	if !w.clock.await(ctx) {
		return nil
	}
	c := lease.Candidate{Store: w.control, Key: turnKey(w.set.Region), Holder: w.self.Enrollment, TTL: turnTTL}
	said := ""
	for w.queue.awaitAny(ctx) {
		if err := w.mayDrive(); err != nil {
			if !pause.For(ctx, turnAsk) {
				return nil
			}
			continue
		}
		held, err := c.Acquire(ctx)
		other, isOther := errors.AsType[*lease.HeldError](err)
		switch {
		case err == nil:
			said = ""
			w.lead(ctx, held.Lost())
			if err := held.Release(ctx); err != nil {
				w.log.Debug("give back the turn", "err", err)
			}
		case isOther:
			if other.Holder != said {
				said = other.Holder
				w.log.Info("standing by: another worker drives", "worker", said, "hosts", w.queue.size())
			}
			pause.For(ctx, min(other.Wait, turnAsk))
		case errors.Is(err, objstore.ErrConflict):
			pause.For(ctx, turnRace)
		case ctx.Err() == nil:
			w.log.Warn("driving without knowing whose turn it is", "err", err)
			forAWhile, cancel := context.WithTimeout(ctx, turnTTL)
			w.lead(forAWhile, nil)
			cancel()
		}
	}
	return nil
}

// lead opens the queue until the turn is lost, is of no more use, or this worker
// may not drive.
func (w *Worker) lead(ctx context.Context, lost <-chan struct{}) {
	w.queue.set(true)
	defer w.queue.set(false)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for busy := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-lost:
			return
		case <-tick.C:
		}
		if w.queue.size() > 0 {
			busy = time.Now()
		}
		if time.Since(busy) > turnIdle || w.mayDrive() != nil {
			return
		}
	}
}
