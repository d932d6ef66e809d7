package agent

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/stopevidence"
)

const (
	// stoppedWithin bounds one pass's wait until nothing runs or holds a file.
	stoppedWithin = 20 * time.Second

	// endsWithin is how long a session's end waits for whoever else has its
	// database. It leaves time to flush what an agent that is told to end runs.
	endsWithin = 5 * time.Second

	// lookAgain is the pause between two looks at the machine.
	lookAgain = 10 * time.Millisecond
)

// witness is nil where a session whose app has stopped may be recorded as ended
// once it is flushed: a look at the machine finds nobody else who could commit
// to its database. The end says that no write is missing, and a release and the
// next session believe it. p is what is open of the session here.
//
// Where nobody can look, it is nil too: that the app's process group has ended is
// all that such a box knows, and so it offers no release (see [Agent.blind]).
func (h *host) witness(ctx context.Context, p producers) error {
	if h.agent.machine == nil {
		return nil
	}
	err := h.writersStopped(ctx, cmp.Or(h.endsIn, endsWithin), p)
	switch {
	case err == nil:
		h.agent.alerts.Clear(alert.Held, h.name)
	case isHeld(err):
		h.agent.alerts.Raise(alert.Held, h.name, "a process that is none of the app's has the host's database: its session is not ended", "err", err)
	case h.agent.blind(err):
		return nil
	}
	return err
}

// blind reports whether err says that no look at this machine can be complete.
// Once one was, every other failure passes.
func (a *Agent) blind(err error) bool {
	passes := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	return errors.Is(err, stopevidence.ErrIncomplete) && !passes && !a.looked.Load()
}

// isHeld reports whether err is the answer of a complete look that found
// somebody.
func isHeld(err error) bool {
	_, held := errors.AsType[*stopevidence.HeldError](err)
	return held
}

// writersStopped waits until the host's cgroup is empty and only the descriptors
// of the open replicator, if p has one, are left of the database on the machine.
func (h *host) writersStopped(ctx context.Context, within time.Duration, p producers) error {
	return untilStopped(ctx, within, func(ctx context.Context) error {
		var own []stopevidence.Descriptor
		if p.replicator != nil {
			var err error
			if own, err = p.replicator.Descriptors(); err != nil {
				return err
			}
			h.known = own
		}
		_, err := h.agent.machine.WritersStopped(ctx, h.name, h.subject(), own)
		if err == nil || isHeld(err) {
			h.agent.looked.Store(true)
		}
		return err
	})
}

// subject is what must have stopped, with the files that the session had open.
func (h *host) subject() stopevidence.Subject {
	return stopevidence.Subject{Database: h.database(), Known: h.known}
}

// untilStopped looks at the machine until nothing is held there any more, within
// a bound. The first look has as long as any may take.
func untilStopped(ctx context.Context, within time.Duration, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stoppedWithin)
	defer cancel()
	for began := time.Now(); ; {
		err := look(ctx)
		if !isHeld(err) || time.Since(began) > within || !pause.For(ctx, lookAgain) {
			return err
		}
	}
}
