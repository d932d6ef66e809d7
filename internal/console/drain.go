package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/claimlist"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// emptyPace is how often a command that waits for a box to be empty looks.
const emptyPace = time.Second

// DrainBox keeps a box from being chosen, and has the workers of its region move
// its hosts. A box that drains already costs no write. [Console.AwaitEmpty]
// watches it.
func (c *Console) DrainBox(ctx context.Context, ref string) error {
	box, err := c.setDraining(ctx, ref, "drained", (*roster.Roster).Drain)
	if err != nil {
		return err
	}
	c.hintWorkers(ctx, box)
	claims, err := c.claims(ctx)
	if err != nil {
		return fmt.Errorf("box %q drains; workers find its hosts on their sweep: %w", ref, err)
	}
	var hosts []string
	for _, l := range claims {
		if l.err == nil && isOn(l.Claim, ref) {
			hosts = append(hosts, l.Host)
		}
	}
	_ = regionfile.Bump(ctx, c.Store, box.Region, hosts...) // workers find them on their sweep too
	return nil
}

// hintWorkers has the workers of a box's region look at it now. They do on their
// sweep too, so what fails here is nobody's error.
func (c *Console) hintWorkers(ctx context.Context, box roster.Box) {
	if c.Hint == nil {
		return
	}
	reader := placement.Reader{Store: c.Store}
	edges, err := reader.Read(ctx)
	if err != nil {
		return
	}
	var addrs []string
	for _, f := range edges.Files {
		if e := f.Edges; e.Region == box.Region && e.Internal != "" && slices.Contains(e.Capabilities, placement.CapabilityWorker) && f.Fresh(c.now()) == nil {
			addrs = append(addrs, e.Internal)
		}
	}
	c.Hint(ctx, hint.Hint{V: 1, Box: box.Ref}, addrs)
}

// UndrainBox lets a box be chosen again. What was moved off it stays where it
// is, and moves that have begun go on.
func (c *Console) UndrainBox(ctx context.Context, ref string) error {
	_, err := c.setDraining(ctx, ref, "undrained", (*roster.Roster).Undrain)
	return err
}

// setDraining makes one change of a box's entry, which done names.
func (c *Console) setDraining(ctx context.Context, ref, done string, change func(*roster.Roster, string) error) (roster.Box, error) {
	box, err := c.enrolled(ctx, ref)
	if err != nil {
		return box, err
	}
	err = c.updateRoster(ctx, func(r *roster.Roster) error {
		was := r.Boxes[ref]
		if err := change(r, ref); err != nil {
			return err
		}
		if r.Boxes[ref] == was {
			return errThere
		}
		return nil
	})
	switch {
	case errors.Is(err, errThere), err == nil:
		return box, nil
	case errors.Is(err, roster.ErrInvalid):
		return box, &Refusal{What: fmt.Sprintf("box %q was not %s", ref, done), Err: err, Next: "see what it is with: console box list"}
	}
	return box, fmt.Errorf("box %q was not %s: %w", ref, done, err)
}

// isOn reports whether a box has a host, is to have it, or is still to give it
// up.
func isOn(claim *hostclaim.Claim, ref string) bool {
	if claim == nil {
		return false
	}
	return claim.Op.Exec == ref || claim.Op.Kind == hostclaim.Creating && claim.Op.Intent.Selected.Box == ref
}

// AwaitEmpty watches a box that drains until no claim names it, and returns how
// many hosts left. It says to progress what becomes of each host. A claim that
// cannot be read may name the box, so it is waited for.
func (c *Console) AwaitEmpty(ctx context.Context, ref string, timeout time.Duration, progress func(string)) (int, error) {
	e := emptying{Console: c, ref: ref, began: c.now(), progress: progress,
		list: claimlist.Reader{Store: c.Store}, on: map[string]*hostclaim.Claim{}, said: map[string]string{}}
	for {
		unread := e.look(ctx)
		switch {
		case ctx.Err() != nil: // below
		case unread == nil && len(e.on) == 0:
			return e.left, nil
		case c.now().Sub(e.began) > timeout:
			return e.left, errors.Join(unread, &Refusal{What: fmt.Sprintf("box %q is not empty", ref), Err: e.why(),
				Next: "it drains on; look at its hosts with: console host show HOST"})
		}
		if !pause(ctx, emptyPace) {
			return e.left, fmt.Errorf("box %s drains on without us (%w); watch it with: console host list", ref, context.Cause(ctx))
		}
	}
}

// emptying is a box that is watched while it drains.
type emptying struct {
	*Console
	ref      string
	began    time.Time
	progress func(string)

	list claimlist.Reader
	on   map[string]*hostclaim.Claim // the claims that name the box, or whose move off it runs
	said map[string]string           // the last sentence about each of them
	left int
}

// look takes in what changed, and says what became of each host. Its error is of
// what could not be read.
func (e *emptying) look(ctx context.Context) error {
	changed, unread := e.list.Changed(ctx)
	for _, o := range changed {
		was, on := e.on[o.Host]
		switch {
		case isOn(o.Claim, e.ref) || leaves(o.Claim, e.ref):
			e.on[o.Host] = o.Claim
		case on:
			delete(e.on, o.Host)
			e.left++
			e.say(o.Host, "left for "+nextOf(o.Claim, was))
		}
	}
	if len(e.on) == 0 {
		return unread
	}
	v, err := e.view(ctx)
	if err != nil {
		return errors.Join(unread, err)
	}
	for _, host := range slices.Sorted(maps.Keys(e.on)) {
		e.say(host, e.sentence(ctx, v, e.on[host]))
	}
	return unread
}

// leaves reports whether a move off the box runs.
func leaves(claim *hostclaim.Claim, ref string) bool {
	return claim.Op.Kind == hostclaim.Relocating && claim.Op.Intent.Source.Box == ref
}

// nextOf says where a host went that was on the box.
func nextOf(claim, was *hostclaim.Claim) string {
	switch exec := claim.Op.Exec; {
	case claim.Op.Kind == hostclaim.Serving:
		return exec
	case was.Op.Kind == hostclaim.Relocating:
		return was.Op.Target().Box
	}
	return "nowhere: it is " + string(claim.Op.Kind)
}

// sentence is what is going on with a host, without how long it has. Of one that
// no move has begun for it says why not.
func (e *emptying) sentence(ctx context.Context, v view, claim *hostclaim.Claim) string {
	if claim.Op.Kind == hostclaim.Relocating {
		op := claim.Op
		return fmt.Sprintf("moves to %s, %s: waiting for %s", op.Target().Box, op.Phase, waitsFor(op, op.StartedAt))
	}
	pool := ""
	if rec, _ := e.recordOf(ctx, claim); rec != nil {
		pool = rec.Pool
	}
	return v.host(claim, pool).Status.Sentence()
}

func (e *emptying) say(host, sentence string) {
	if e.said[host] == sentence {
		return
	}
	e.said[host] = sentence
	e.progress(fmt.Sprintf("%6.1f s  %s %s", e.now().Sub(e.began).Seconds(), host, sentence))
}

// why says what a box that is not empty still has.
func (e *emptying) why() error {
	var errs []error
	for _, host := range slices.Sorted(maps.Keys(e.on)) {
		errs = append(errs, fmt.Errorf("%s %s", host, e.said[host]))
	}
	return errors.Join(errs...)
}
