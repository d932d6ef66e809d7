package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/membership"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

const (
	// enrollPace is how often the server looks for boxes that were confirmed:
	// 17,280 LISTs a day.
	enrollPace = 5 * time.Second

	// enrollAgain is the longest pause before a box that was refused is tried
	// again. The first is a second, and each is twice the one before.
	enrollAgain = 10 * time.Minute

	// enrollAtOnce is how many boxes a pass enrolls at most.
	enrollAtOnce = 64

	// confirmedPool is the pool of a box that no person enrolled.
	confirmedPool = "default"
)

// Enroller enrolls, without a person, the boxes that workers confirmed to be of
// the group that their placement has in the roster. It is for one goroutine.
//
// A pass costs one LIST where nobody is to be enrolled. Otherwise it costs a GET
// of the roster, three or more for each box, and one more and a PUT for all of
// them together. An Enroller that ends anywhere leaves nothing behind that
// another has to know of.
type Enroller struct {
	Console *Console
	Alerts  *alert.Board
	Log     *slog.Logger

	enrolled map[string]bool     // references that the roster holds; none ever leaves it
	refused  map[string]*refused // by reference, of boxes that are confirmed and not enrolled
}

// refused is a box that was not enrolled.
type refused struct {
	newest string // key of its newest confirmation: another one is tried at once
	at     time.Time
	pause  time.Duration
}

// confirmed is a box that is about to be enrolled.
type confirmed struct {
	ref        string
	enrollment string // fixed, so that its own write is recognised
	identity   []byte
	by         membership.Evidence
}

// Run makes a pass every few seconds, until ctx ends.
func (e *Enroller) Run(ctx context.Context) error {
	for {
		if err := e.Pass(ctx); err != nil && ctx.Err() == nil {
			e.Log.Warn("looking for boxes to enroll", "err", err)
		}
		if !pause(ctx, enrollPace) {
			return nil
		}
	}
}

// Pass enrolls every box that is confirmed and that the roster does not hold.
// One that is refused keeps no other from it: it is an alert, and tried again
// later. An error is of what concerns all of them.
func (e *Enroller) Pass(ctx context.Context) error {
	reader := membership.Reader{Store: e.Console.Store, Roster: e.Console.Roster}
	keys, err := reader.List(ctx)
	if err != nil {
		return err
	}
	if len(e.due(keys)) == 0 {
		return nil
	}
	if err := e.learn(ctx); err != nil {
		return err
	}
	var ready []confirmed
	var unread error
	for _, ref := range e.due(keys) {
		box, err := e.confirmed(ctx, reader, ref, keys[ref])
		switch {
		case err == nil:
			ready = append(ready, box)
		case errors.Is(err, membership.ErrUnverified), errors.Is(err, objstore.ErrNotFound):
			e.refuse(ref, keys[ref][0], err)
		default:
			unread = errors.Join(unread, err) // it says nothing about the box
			e.later(ref, keys[ref][0])
		}
	}
	if len(ready) == 0 {
		return unread
	}
	return errors.Join(unread, e.enroll(ctx, ready, keys))
}

func (e *Enroller) enroll(ctx context.Context, ready []confirmed, keys map[string][]string) error {
	enrolled, failed, err := e.Console.enrollConfirmed(ctx, ready)
	if err != nil {
		return err
	}
	for _, box := range enrolled {
		e.Log.Info("a box is enrolled", "box", box.Ref, "region", box.Region, "instance", box.Cloud.InstanceID, "enrollment", box.Enrollment)
		e.settle(box.Ref)
	}
	for _, ref := range slices.Sorted(maps.Keys(failed)) {
		e.refuse(ref, keys[ref][0], failed[ref])
	}
	return nil
}

// due lists boxes that are confirmed, not enrolled, and not to be left alone for
// a while, by reference.
func (e *Enroller) due(keys map[string][]string) []string {
	var refs []string
	for _, ref := range slices.Sorted(maps.Keys(keys)) {
		r := e.refused[ref]
		if !e.enrolled[ref] && (r == nil || r.newest != keys[ref][0] || e.Console.now().Sub(r.at) >= r.pause) {
			refs = append(refs, ref)
		}
	}
	return refs[:min(len(refs), enrollAtOnce)]
}

// learn takes in who is enrolled.
func (e *Enroller) learn(ctx context.Context) error {
	snap, err := e.Console.Roster.Read(ctx)
	if err != nil {
		return err
	}
	for ref := range snap.Boxes {
		e.settle(ref)
	}
	return nil
}

func (e *Enroller) settle(ref string) {
	if e.enrolled == nil {
		e.enrolled = map[string]bool{}
	}
	e.enrolled[ref] = true
	delete(e.refused, ref)
	e.Alerts.Clear(alert.Enrollment, ref)
}

// refuse leaves a box alone for a while, which is alerted.
func (e *Enroller) refuse(ref, newest string, err error) {
	e.later(ref, newest)
	e.Alerts.Raise(alert.Enrollment, ref, "a box that a worker confirmed was not enrolled: see it with console box show "+ref, "err", err)
}

// later leaves a box alone for a while, so that others have their turn.
func (e *Enroller) later(ref, newest string) {
	if e.refused == nil {
		e.refused = map[string]*refused{}
	}
	r := e.refused[ref]
	if r == nil || r.newest != newest {
		r = &refused{newest: newest}
	}
	r.at, r.pause = e.Console.now(), min(max(2*r.pause, time.Second), enrollAgain)
	e.refused[ref] = r
}

// confirmed reads what a box is to be enrolled by.
func (e *Enroller) confirmed(ctx context.Context, reader membership.Reader, ref string, keys []string) (confirmed, error) {
	by, err := reader.Read(ctx, ref, keys)
	if err != nil {
		return confirmed{}, err
	}
	identity, err := e.Console.Store.Get(ctx, boxid.Key(ref))
	if err != nil {
		return confirmed{}, fmt.Errorf("its identity: %w", err)
	}
	return confirmed{ref: ref, enrollment: roster.NewEnrollment(), identity: identity.Body, by: by}, nil
}

// enrollConfirmed adds boxes in one change, and says of each that was refused
// why. One that is enrolled by then is among the enrolled.
func (c *Console) enrollConfirmed(ctx context.Context, boxes []confirmed) ([]roster.Box, map[string]error, error) {
	var enrolled []roster.Box
	var failed map[string]error
	now := c.now()
	change := func(r *roster.Roster) error {
		enrolled, failed = nil, map[string]error{} // it may be made again
		added := false
		for _, b := range boxes {
			if held, ok := r.Box(b.ref); ok {
				enrolled = append(enrolled, held)
				continue
			}
			placement := b.by.Record().TargetPlacement
			identity, err := c.verify(*r, Enrollment{Ref: b.ref, Region: placement}, b.identity)
			if err == nil {
				err = r.Enroll(identity, b.by, placement, confirmedPool, b.enrollment, now)
			}
			if err != nil {
				failed[b.ref] = err
				continue
			}
			held, _ := r.Box(b.ref)
			enrolled, added = append(enrolled, held), true
		}
		if !added {
			return errThere
		}
		return nil
	}
	if err := c.updateRoster(ctx, change); err != nil && !errors.Is(err, errThere) {
		return nil, nil, err
	}
	return enrolled, failed, nil
}
