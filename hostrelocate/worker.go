package hostrelocate

import (
	"context"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

// DefaultPinDelay is how long after a fence a pin is taken. It bounds what a
// failover loses: uploads that were in flight when the box died may land late.
const DefaultPinDelay = 30 * time.Second

const defaultSkew = 30 * time.Second

// Worker makes the regional steps of relocations. Any number of workers may
// step one host. It is safe for concurrent use.
type Worker struct {
	Control objstore.Store
	Data    Store // of Region
	Region  string
	Self    hostclaim.Member
	Roster  *roster.Directory

	// Gone is the verified evidence that a box can never write again, with what is
	// known of its disks, which nothing here waits for; false: there is none, which
	// says nothing about the box. Nil: there never is.
	Gone func(box string) (hostclaim.Gone, bool)

	// Choose finds the box that takes a target's place, none of exclude; false
	// where no box may be given the host. Nil: there never is one.
	Choose func(ctx context.Context, c *hostclaim.Claim, exclude []string) (hostclaim.Member, bool, error)

	PinDelay time.Duration // DefaultPinDelay if zero

	// Skew is how far the clocks of two workers may be apart, 30s if zero. A pin
	// after a fence that another worker saw waits that much longer.
	Skew time.Duration

	Now     func() time.Time // time.Now if nil
	Changed changed          // told of each claim written; nil: nobody is told

	leases Leases
	timed  timed
}

// Step makes the next regional step of the relocation that o shows, if it is a
// worker's and due. A host with no relocation in this region is a Turn that is
// Done.
//
// Evidence comes first, the source's before the target's, then a stuck
// operation waits, then the phase decides. Only what was released is pinned
// before any evidence is consumed: a receipt rules out the late uploads whose
// window a fence would have the pin wait for.
func (w *Worker) Step(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	c := o.Claim
	if c == nil || c.Op.Kind != hostclaim.Relocating || c.Holder.Region != w.Region {
		return Turn{}, nil
	}
	if !w.pinsRelease(c) {
		if turn, made, err := w.sourceGone(ctx, o); made || err != nil {
			return turn, err
		}
		if turn, made, err := w.targetGone(ctx, o); made || err != nil {
			return turn, err
		}
	}
	if c.Op.Journal.Stuck != nil {
		return w.stuck(ctx, o)
	}
	return w.phase(ctx, o)
}

func (w *Worker) phase(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	switch o.Claim.Op.Phase {
	case hostclaim.Starting:
		return w.begin(ctx, o)
	case hostclaim.Releasing:
		return w.released(ctx, o)
	case hostclaim.Pinning:
		return w.pin(ctx, o)
	case hostclaim.Installing:
		return w.accept(ctx, o)
	case hostclaim.Installed:
		return w.installed(ctx, o)
	case hostclaim.Probing:
		return w.complete(ctx, o)
	default: // a claim that validates has no phase but hostclaim.ProbeFailed besides
		return w.failed(ctx, o)
	}
}

func (w *Worker) driver() driver { return driver{control: w.Control, changed: w.Changed} }

func (w *Worker) now() time.Time {
	if w.Now != nil {
		return w.Now()
	}
	return time.Now()
}

func (w *Worker) skew() time.Duration {
	if w.Skew == 0 {
		return defaultSkew
	}
	return w.Skew
}
