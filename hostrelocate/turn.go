package hostrelocate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
)

// Turn is what one step of a driver came to.
type Turn struct {
	Did   string        // what was done; "": nothing
	Waits string        // what is waited for; "": nothing
	Again time.Duration // when to look again; 0: at once, or never if nothing is waited for
	Told  bool          // another driver ends the wait, and tells of it: Again is for where that is lost

	// Now is the claim as this step wrote it, for the next step to be made on
	// without a read: that is one conditional write on this version again. Without
	// a claim, the next step reads it.
	Now hostclaim.Observed
}

// String is the turn as one sentence, for logs and people.
func (t Turn) String() string {
	switch {
	case t.Did == "":
		return t.Waits
	case t.Waits == "":
		return t.Did
	}
	return t.Did + "; " + t.Waits
}

// Done reports that nothing is left to do and nothing is waited for.
func (t Turn) Done() bool { return t == Turn{} }

const (
	// poll is how often a running operation's claim is read while another
	// driver is waited for.
	poll = 250 * time.Millisecond

	// soon is the pause for what another driver is about to finish.
	soon = 50 * time.Millisecond

	// retry is the pause after a step that could not be made now, and of a box
	// that waits for a worker, whose hint wakes it sooner.
	retry = time.Second

	// seek is the pause while no box may be given a host.
	seek = 5 * time.Second

	// maxWait is the longest pause while a time passes that the claim knows.
	maxWait = 30 * time.Second

	// untilTold is for what only an operator's write ends, which is told.
	untilTold = 5 * time.Minute
)

// changed tells others that a claim moved; it carries no authority.
type changed func(ctx context.Context, c *hostclaim.Claim)

// driver is what both kinds of driver do with a claim.
type driver struct {
	control objstore.Store
	changed changed
}

// update makes one claim write. A claim that moved, or a step that is recorded
// already, is no error: the next step looks again at once.
func (d driver) update(ctx context.Context, o hostclaim.Observed, did string, t hostclaim.Transition) (Turn, error) {
	next, err := hostclaim.Update(ctx, d.control, o, t)
	switch {
	case errors.Is(err, hostclaim.ErrAlreadyRecorded), errors.Is(err, hostclaim.ErrConflict):
		return moved(o.Host), nil
	case err != nil:
		return Turn{}, err
	}
	if d.changed != nil {
		d.changed(ctx, next.Claim)
	}
	return Turn{Did: did, Waits: "what follows", Now: next}, nil
}

// step is a claim write that may be made, and what it would have done.
type step struct {
	did string
	do  hostclaim.Transition
}

// first makes the first step that the claim allows now; false: it allows none,
// and nothing was sent.
func (d driver) first(ctx context.Context, o hostclaim.Observed, steps ...step) (Turn, bool, error) {
	for _, s := range steps {
		if allows(o, s.do) {
			turn, err := d.update(ctx, o, s.did, s.do)
			return turn, true, err
		}
	}
	return Turn{}, false, nil
}

// allows asks the claim itself whether a step is legal now, so that none of its
// rules and deadlines stands here a second time. It makes no request.
func allows(o hostclaim.Observed, t hostclaim.Transition) bool {
	_, err := o.Next("asked", t)
	return err == nil
}

func moved(host string) Turn { return Turn{Waits: "looking again: " + host + " moved"} }

func waits(again time.Duration, format string, args ...any) Turn {
	return Turn{Waits: fmt.Sprintf(format, args...), Again: again}
}

// told is waits for what another driver does, and tells of.
func told(again time.Duration, format string, args ...any) Turn {
	turn := waits(again, format, args...)
	turn.Told = true
	return turn
}
