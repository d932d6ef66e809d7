// Package proof lets a process act as a box only on the machine that is that
// box.
//
// It publishes this machine's signed identity, waits until the roster holds it
// under the box's reference, and compares the two by exact equality. So neither
// a cloned image nor a disk that was moved to another instance ever acts in a
// box's name.
package proof

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

// ErrOtherMachine: the roster holds this reference as another machine. This one
// never acts in its name.
var ErrOtherMachine = errors.New("this reference is enrolled as another machine")

const (
	lookEvery    = time.Second
	publishEvery = time.Minute
)

// Machine is the metadata service of the machine that this process runs on.
type Machine interface {
	boxid.Source
	Cloud(ctx context.Context) (boxid.Cloud, error)
}

// Config says which box this machine should be.
type Config struct {
	Control     objstore.Store
	Roster      *roster.Directory
	Machine     Machine
	Box, Region string
	Log         *slog.Logger

	// Waiting is told what is waited for whenever that changes; nil: nobody.
	Waiting func(why string)
}

// Wait publishes this machine's identity and returns once the roster holds it
// as the box, with the box's entry and its region's. Errors: [ErrOtherMachine],
// [boxid.ErrBadRef], [roster.ErrOutdated], and ctx's; anything else is waited
// out.
//
// A look costs one GET. The identity costs one GET, and one PUT the first time,
// and is tried again each minute. A record that is another machine's, or that
// cannot be read, is said once and never rewritten: a box that is enrolled does
// not need it any more.
func Wait(ctx context.Context, c Config) (roster.Box, roster.Region, error) {
	var published publication
	said := ""
	for {
		unpublished := published.try(ctx, c)
		if errors.Is(unpublished, boxid.ErrBadRef) {
			return roster.Box{}, roster.Region{}, fmt.Errorf("publish this box's identity: %w", unpublished)
		}
		box, region, err := Look(ctx, c)
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrOtherMachine) || errors.Is(err, roster.ErrOutdated) {
			return box, region, errors.Join(err, ctx.Err())
		}
		if why := waitingFor(err, unpublished); why != said {
			said = why
			c.Log.Info(why)
			if c.Waiting != nil {
				c.Waiting(why)
			}
		}
		if !pause.For(ctx, lookEvery) {
			return roster.Box{}, roster.Region{}, ctx.Err()
		}
	}
}

// publication is what became of publishing this machine's identity.
type publication struct {
	tried time.Time
	err   error
	final bool // trying again changes nothing
}

// try publishes, unless it did or did so a short while ago, and says why it is
// not published.
func (p *publication) try(ctx context.Context, c Config) error {
	if p.final || time.Since(p.tried) <= publishEvery {
		return p.err
	}
	p.tried = time.Now()
	p.err = boxid.Publish(ctx, c.Control, c.Box, c.Machine, p.tried)
	taken := errors.Is(p.err, boxid.ErrTaken)
	p.final = p.err == nil || taken
	if taken {
		c.Log.Error("this machine cannot publish who it is: give it another reference if it is not enrolled yet", "err", p.err)
	}
	return p.err
}

func waitingFor(err, unpublished error) string {
	why := "waiting to be enrolled: " + err.Error()
	if unpublished != nil {
		why += fmt.Sprintf("; its identity is not published: %v", unpublished)
	}
	return why
}

// Look compares this machine with the roster once. One GET beside the metadata
// service.
func Look(ctx context.Context, c Config) (roster.Box, roster.Region, error) {
	snap, err := c.Roster.Read(ctx)
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return roster.Box{}, roster.Region{}, errors.New("the control store holds no roster yet")
	case err != nil:
		return roster.Box{}, roster.Region{}, err
	}
	return Match(ctx, c, snap)
}

// Match compares this machine with a roster that was just read. Where the
// roster says that it may not act, for whichever reason, the error is
// [roster.ErrNotSelf]; any other error says nothing.
func Match(ctx context.Context, c Config, snap roster.Snapshot) (roster.Box, roster.Region, error) {
	fail := func(err error) (roster.Box, roster.Region, error) { return roster.Box{}, roster.Region{}, err }
	me, err := c.Machine.Cloud(ctx)
	if err != nil {
		return fail(fmt.Errorf("read who this machine is: %w", err))
	}
	region, ok := snap.Region(c.Region)
	box, err := snap.Self(c.Box, me)
	if err != nil {
		entry, enrolled := snap.Box(c.Box)
		switch {
		case !enrolled:
			err = fmt.Errorf("%w: %s", err, enrollment(c, me, region))
		case entry.Cloud.Complete() && entry.Cloud != me:
			err = fmt.Errorf("%w: %s is %s, this machine is %s: %w", ErrOtherMachine, c.Box, entry.Cloud, me, err)
		}
		return fail(err)
	}
	if !ok || box.Region != c.Region {
		return fail(fmt.Errorf("%w: box %s is enrolled in region %q, and not in %q", roster.ErrNotSelf, c.Box, box.Region, c.Region))
	}
	return box, region, nil
}

// enrollment says how a machine that the roster does not hold comes into it.
func enrollment(c Config, me boxid.Cloud, region roster.Region) string {
	approve := fmt.Sprintf("console box enroll %s --region %s --instance-id %s", c.Box, c.Region, me.InstanceID)
	if region.GroupName == "" {
		return "approve it with: " + approve
	}
	return fmt.Sprintf("it needs a worker's confirmation that group %s launched it, and a console that serves; or approve it with: %s",
		region.GroupName, approve)
}
