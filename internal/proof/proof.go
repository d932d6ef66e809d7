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
// [boxid.ErrTaken], [boxid.ErrBadRef], [roster.ErrOutdated], and ctx's; anything
// else is waited out.
//
// A look costs one GET. The identity costs one GET, and one PUT the first time,
// and is tried again each minute.
func Wait(ctx context.Context, c Config) (roster.Box, roster.Region, error) {
	var tried time.Time
	var unpublished error
	published, said := false, ""
	for {
		if !published && time.Since(tried) > publishEvery {
			tried = time.Now()
			unpublished = boxid.Publish(ctx, c.Control, c.Box, c.Machine, tried)
			published = unpublished == nil
		}
		if errors.Is(unpublished, boxid.ErrTaken) || errors.Is(unpublished, boxid.ErrBadRef) {
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

func waitingFor(err, unpublished error) string {
	why := fmt.Sprintf("waiting to be enrolled: %v", err)
	if unpublished != nil {
		why += fmt.Sprintf("; its identity is not published: %v", unpublished)
	}
	return why
}

// Look compares this machine with the roster once. One GET beside the metadata
// service.
func Look(ctx context.Context, c Config) (roster.Box, roster.Region, error) {
	fail := func(err error) (roster.Box, roster.Region, error) { return roster.Box{}, roster.Region{}, err }
	me, err := c.Machine.Cloud(ctx)
	if err != nil {
		return fail(fmt.Errorf("read who this machine is: %w", err))
	}
	snap, err := c.Roster.Read(ctx)
	if errors.Is(err, objstore.ErrNotFound) {
		return fail(errors.New("the control store holds no roster yet"))
	}
	if err != nil {
		return fail(err)
	}
	box, err := snap.Self(c.Box, me)
	if err != nil {
		if entry, ok := snap.Box(c.Box); ok && entry.Cloud.Complete() && entry.Cloud != me {
			return fail(fmt.Errorf("%w: %s is %s, this machine is %s", ErrOtherMachine, c.Box, entry.Cloud, me))
		}
		return fail(err)
	}
	region, ok := snap.Region(c.Region)
	if !ok || box.Region != c.Region {
		return fail(fmt.Errorf("box %s is enrolled in region %q, and not in %q", c.Box, box.Region, c.Region))
	}
	return box, region, nil
}
