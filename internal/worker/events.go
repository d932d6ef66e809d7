package worker

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/awscloud/event"
	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

const (
	// maxReceivePause bounds the pause after a receive that failed, which doubles.
	minReceivePause, maxReceivePause = time.Second, time.Minute

	// eventsAtOnce bounds the messages that are worked on together.
	eventsAtOnce = 32

	// poisonFor is how long a message that is no event is told of after it was
	// last seen. The queue brings it again until its redrive policy takes it.
	poisonFor = 10 * time.Minute

	// poisonAbout is what the alert about one is about.
	poisonAbout = "message"
)

// events takes the cloud's own notifications until ctx ends. It runs beside the
// sweep, which finds whatever is lost here.
func (w *Worker) events(ctx context.Context) error {
	if w.cloud.Events == nil || !w.clock.await(ctx) {
		return nil
	}
	var working errgroup.Group
	working.SetLimit(eventsAtOnce)
	defer func() { _ = working.Wait() }()
	var poisoned time.Time
	for again := minReceivePause; ; {
		messages, err := w.cloud.Events.Receive(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			w.alerts.Raise(alert.Queue, w.set.Region, "the event queue cannot be read: terminations are found by the sweep alone", "err", err)
			if !pause.For(ctx, again) {
				return nil
			}
			again = min(2*again, maxReceivePause)
			continue
		}
		again = minReceivePause
		w.alerts.Clear(alert.Queue, w.set.Region)
		if w.take(ctx, &working, messages) {
			poisoned = time.Now()
		} else if time.Since(poisoned) > poisonFor {
			w.alerts.Clear(alert.Queue, poisonAbout)
		}
	}
}

// take works on the messages of one receive, each on its own: one that hangs or
// fails keeps no other. The roster that they are held to is read after they were
// received: one GET. It reports whether one was no event, which is left to the
// queue's redrive policy.
func (w *Worker) take(ctx context.Context, working *errgroup.Group, messages []event.Message) (poison bool) {
	if len(messages) == 0 {
		return false
	}
	snap, self, err := w.enrolled(ctx)
	if err = errors.Join(err, w.clock.check()); err != nil && ctx.Err() == nil {
		w.log.Warn("events are left in the queue for now", "messages", len(messages), "err", err)
	}
	for _, m := range messages {
		switch seen, broken := event.Decode(m.Body); {
		case errors.Is(broken, event.ErrOtherEvent):
			working.Go(func() error { w.drop(ctx, m); return nil })
		case broken != nil:
			poison = true
			w.alerts.Raise(alert.Queue, poisonAbout, "the event queue holds a message that is no event: its redrive policy has to take it away",
				"message", m.ID, "receives", m.Receives, "err", broken)
		case err == nil:
			working.Go(func() error { w.event(ctx, m, seen, snap, self); return nil })
		}
	}
	return poison
}

// event works on one notification, and takes it off the queue once that is done.
func (w *Worker) event(ctx context.Context, m event.Message, seen termfence.Observation, snap roster.Snapshot, self roster.Box) {
	done, err := w.settle(ctx, seen, snap, self)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		w.log.Warn("an event is left in the queue for now", "event", seen.EventID, "instance", seen.InstanceID, "state", seen.State, "err", err)
	case done:
		w.drop(ctx, m)
	}
}

// settle does what a notification asks for, and reports whether it is of no more
// use: it concerns no enrolled box, its box is fenced, or what it hinted at was
// looked at. One about a box of another region is left to a worker there, which
// alone may fence it; that region's sweep finds the same.
func (w *Worker) settle(ctx context.Context, seen termfence.Observation, snap roster.Snapshot, self roster.Box) (done bool, err error) {
	box, ok := boxOf(snap, seen)
	switch {
	case !ok || w.gone.fenced(box.Ref):
		return true, nil
	case !w.mine(box):
		return box.Region == w.set.Region && seen.State != termfence.Terminated, nil
	case seen.State == termfence.Terminated:
		if err := w.fence(ctx, box, self, seen); err != nil || w.gone.fenced(box.Ref) {
			return err == nil, err
		}
	}
	err = w.lookAt(ctx, box, self)
	w.tellAwaiting(box)
	return err == nil, err
}

// boxOf is the entry whose instance the notification is about; of one that was
// readmitted, its successor.
func boxOf(snap roster.Snapshot, seen termfence.Observation) (box roster.Box, ok bool) {
	about := boxid.Cloud{Provider: boxid.AWS, Account: seen.Account, Region: seen.Region, InstanceID: seen.InstanceID}
	for ref, entry := range snap.Boxes {
		if entry.Cloud == about && entry.ReadmittedAs == "" {
			return snap.Box(ref)
		}
	}
	return roster.Box{}, false
}

// drop takes a message off the queue. One that stays comes again, and is found
// done.
func (w *Worker) drop(ctx context.Context, m event.Message) {
	if err := w.cloud.Events.Delete(ctx, m); err != nil && ctx.Err() == nil {
		w.log.Warn("delete a message that is done", "message", m.ID, "err", err)
	}
}
