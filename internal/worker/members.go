package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/roster"
)

const (
	// membersWithin bounds a pass over the boxes that are not enrolled.
	membersWithin = time.Minute

	// membersAtOnce is how many boxes a pass looks into at one time, and
	// membersPerPass how many in all: those that were tried longest ago.
	membersAtOnce  = 8
	membersPerPass = 256

	// membersListed bounds the boxes that are not enrolled.
	membersListed = 10_000

	// A box is tried again after a tenth of the time that it waits by then, at
	// least a sweep and at most memberAgain, and after memberGiveUp it is left to
	// a person: what it published stays when its machine goes.
	memberAgain  = 10 * time.Minute
	memberGiveUp = 24 * time.Hour

	// memberPatience is how long a box may be unconfirmed before a person is
	// told: a group takes a while to show an instance that it launched.
	memberPatience = 2 * time.Minute
)

// members is what became of the boxes that are not enrolled, by reference. It
// holds no more than the last listing.
type members struct {
	tries map[string]*try
}

// try is what is known of one box that is not enrolled.
type try struct {
	since    time.Time // when it published who it is
	next     time.Time
	identity boxid.Evidence // its record is immutable: verified once
}

// again puts the next try off.
func (t *try) again(now time.Time, sweep time.Duration) {
	t.next = now.Add(max(sweep, min(now.Sub(t.since)/10, memberAgain)))
}

// follow takes in which boxes are not enrolled now and since when they wait,
// forgets all others, and lists those that are due, the one that is due for
// longest first.
func (m *members) follow(waiting map[string]time.Time, now time.Time) (due, gone []string) {
	next := make(map[string]*try, len(waiting))
	for ref, since := range waiting {
		t := m.tries[ref]
		if t == nil {
			t = &try{since: since}
		}
		if next[ref] = t; !now.Before(t.next) {
			due = append(due, ref)
		}
	}
	for ref := range m.tries {
		if next[ref] == nil {
			gone = append(gone, ref)
		}
	}
	m.tries = next
	slices.SortFunc(due, func(a, b string) int {
		return cmp.Or(next[a].next.Compare(next[b].next), strings.Compare(a, b))
	})
	return due[:min(len(due), membersPerPass)], gone
}

// confirmMembers confirms the boxes that published who they are, are not
// enrolled, and were launched by the group of their placement, so that a console
// enrolls them without a person. It is for one goroutine.
//
// A pass costs one LIST, of a page for each thousand references that there ever
// were. A new box costs a GET, a LIST of its confirmations, the
// two requests about its group, a GET of the roster and a PUT; one that is not
// confirmed is tried again with growing pauses, without the first GET. For a box
// of another region every enrollment there that may act is described first,
// until one is not terminated, and then the box's own instance.
func (w *Worker) confirmMembers(ctx context.Context, snap roster.Snapshot) {
	if w.cloud.Groups == nil || len(w.placements(snap.Roster)) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, membersWithin)
	defer cancel()
	now := time.Now()
	waiting, err := w.unenrolled(ctx, snap, now)
	if err != nil {
		w.log.Warn("list the boxes that are not enrolled", "err", err)
		return
	}
	due, gone := w.members.follow(waiting, now)
	for _, ref := range gone {
		w.alerts.Clear(alert.Enrollment, ref)
	}
	look := w.lookAround(ctx, snap)
	var group errgroup.Group
	group.SetLimit(membersAtOnce)
	for _, ref := range due {
		t := w.members.tries[ref]
		group.Go(func() error {
			err := w.confirm(ctx, look, ref, t)
			if ctx.Err() == nil {
				t.again(now, w.set.Sweep)
				w.tellUnconfirmed(ref, t, now, err)
			}
			return nil
		})
	}
	_ = group.Wait() // every error was told
}

// tellUnconfirmed raises what keeps a box from being enrolled, unless that may
// pass by itself.
func (w *Worker) tellUnconfirmed(ref string, t *try, now time.Time, err error) {
	switch waits := now.Sub(t.since); {
	case err == nil && waits >= memberAgain:
		w.alerts.Raise(alert.Enrollment, ref, "a box is confirmed and no console enrolled it: see that console serve runs, with the key that signs the roster")
	case err == nil, errors.Is(err, errLives) && waits < memberAgain:
		w.alerts.Clear(alert.Enrollment, ref)
	case errors.Is(err, boxid.ErrUnverified), waits >= memberPatience:
		w.alerts.Raise(alert.Enrollment, ref, "a box that is not enrolled cannot be confirmed: see what it is with console box list, and enroll it or end it",
			"err", err)
	default:
		w.log.Info("a box is not confirmed yet", "about", ref, "err", err)
	}
}

// unenrolled lists the references that published an identity not too long ago
// and that the roster does not hold, with the time by the store.
func (w *Worker) unenrolled(ctx context.Context, snap roster.Snapshot, now time.Time) (map[string]time.Time, error) {
	waiting := map[string]time.Time{}
	for info, err := range w.control.List(ctx, boxid.Prefix) {
		if err != nil {
			return nil, err
		}
		ref, ok := boxid.ParseKey(info.Key)
		_, enrolled := snap.Box(ref)
		if enrolled || !ok || now.Sub(info.ModTime) > memberGiveUp {
			continue
		}
		if len(waiting) == membersListed {
			return nil, fmt.Errorf("more than %d boxes are not enrolled", membersListed)
		}
		waiting[ref] = info.ModTime
	}
	return waiting, nil
}
