package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

const (
	// endsWithin is how long an ordinary end of a machine takes: one that is
	// shutting down or stopping for longer may never say terminated.
	endsWithin = 2 * time.Minute

	// unreachedFor is how long a box that a hint is about may be out of reach
	// before that is told: an agent that starts anew takes less.
	unreachedFor = 10 * time.Second
)

// sight is what this worker last saw of one box. None of it is evidence.
type sight struct {
	at        time.Time // of the last describe that was answered; zero: none was
	found     bool      // the cloud knew the instance then
	state     string    // of the instance then
	since     time.Time // when it was first seen in this state
	err       error     // of the last describe
	unreached time.Time // since when it cannot be connected to; zero: it can, or nobody tried
}

// sights is what was last seen of each box.
type sights struct {
	mu sync.Mutex
	by map[string]sight
}

func (s *sights) of(ref string) sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[ref]
}

func (s *sights) at(ref string) time.Time { return s.of(ref).at }

func (s *sights) update(ref string, change func(*sight)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]sight{}
	}
	seen := s.by[ref]
	change(&seen)
	s.by[ref] = seen
}

func (s *sights) described(ref string, o termfence.Observation, err error, now time.Time) {
	s.update(ref, func(seen *sight) {
		seen.err = err
		if err != nil {
			return
		}
		if seen.at.IsZero() || o.Found != seen.found || o.State != seen.state {
			seen.since = now
		}
		seen.at, seen.found, seen.state = now, o.Found, o.State
	})
}

// awaits says why the hosts of a box wait for evidence that nobody may ever
// give, by what was seen of it and why its edges file is stale, nil where that
// is fresh or not known; "": they do not.
//
// At once: an instance that the cloud does not know, or that is stopped; a box
// that published nothing for longer than [placement.FreshFor]. After a while: an
// instance that is stopping or shutting down, and a box that a hint is about and
// that cannot be reached. An unanswered describe alone is none of it: the box
// may be well.
func (s sight) awaits(stale error, now time.Time) string {
	if !s.at.IsZero() {
		switch {
		case !s.found:
			return "the cloud does not know its instance"
		case s.state == "stopped":
			return "its instance is stopped"
		case (s.state == "stopping" || s.state == "shutting-down") && now.Sub(s.since) >= endsWithin:
			return fmt.Sprintf("its instance is %s for %s", s.state, now.Sub(s.since).Round(time.Second))
		}
	}
	silent := ""
	switch {
	case stale != nil:
		silent = stale.Error()
	case !s.unreached.IsZero() && now.Sub(s.unreached) >= unreachedFor:
		silent = "it cannot be reached"
	default:
		return ""
	}
	switch {
	case s.err != nil:
		return silent + ", and the cloud does not answer about it"
	case s.at.IsZero():
		return silent + ", and its instance cannot be asked for"
	}
	return fmt.Sprintf("%s, and its instance is %s", silent, s.state)
}

// tellAwaiting alerts where a box's hosts wait for evidence, and says when that
// is over: the box is back, or it is gone.
func (w *Worker) tellAwaiting(box roster.Box) {
	why, now := "", time.Now()
	if w.mine(box) && box.State != roster.Retired && !w.gone.has(box.Ref) {
		why = w.sights.of(box.Ref).awaits(w.stale(box, now), now)
	}
	if why == "" {
		w.alerts.Clear(alert.AwaitingEvidence, box.Ref)
		return
	}
	w.alerts.Raise(alert.AwaitingEvidence, box.Ref,
		"a box may be gone and nothing proves it: its hosts stay where they are until it is back, its instance is terminated, or an operator declares it lost",
		"why", why, "instance", box.Cloud.InstanceID, "hosts", w.claims.countOn(box.Ref))
}

// stale says why a box's edges file does not speak for it, as of the last look.
// One that was enrolled a moment ago has none yet; without a look nothing is
// known.
func (w *Worker) stale(box roster.Box, now time.Time) error {
	edges := w.survey.Edges()
	file, published := edges.File(box.Ref)
	switch {
	case len(edges.Files) == 0, !published && now.Sub(box.EnrolledAt) <= placement.FreshFor:
		return nil
	case !published:
		return errors.New("it has no edges file")
	}
	return file.Fresh(now)
}

// tryReach tries to connect to a box where its edges file says, and remembers
// since when it fails. It reports whether this is its first failure.
func (w *Worker) tryReach(ctx context.Context, ref string) (first bool) {
	file, ok := w.survey.Edges().File(ref)
	if w.set.Reach == nil || !ok {
		return false
	}
	err := w.set.Reach(ctx, file.Edges.Internal)
	w.sights.update(ref, func(seen *sight) {
		switch {
		case err == nil:
			seen.unreached = time.Time{}
		case seen.unreached.IsZero():
			seen.unreached, first = time.Now(), true
		}
	})
	return first
}
