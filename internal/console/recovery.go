package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/claimlist"
	"github.com/carlosframework/regionha/roster"
)

// recoveryPace is how often the server makes a pass.
const recoveryPace = time.Minute

// fencePrefix is where the fences are, by enrollment; maxFences bounds their
// listing.
const (
	fencePrefix = "control/box-fences/"
	maxFences   = 100_000
)

// Recovery is what the server does by itself where nobody else would. It cancels
// creates that their boxes did not take in time, and retires the boxes that were
// read terminated once no claim names them. It is for one goroutine.
//
// A pass costs two LISTs, a GET of the roster, and one of each claim that
// changed since the last. A claim that cannot be read hides no other, and keeps
// every box from being retired.
type Recovery struct {
	Console *Console
	Log     *slog.Logger

	list     claimlist.Reader
	creating map[string]hostclaim.Observed // by host
	names    map[string][]string           // the boxes that a claim names, by host
}

// Run makes a pass each minute, until ctx ends.
func (r *Recovery) Run(ctx context.Context) error {
	for {
		if err := r.Pass(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("looking for what nobody else finishes", "err", err)
		}
		if !pause(ctx, recoveryPace) {
			return nil
		}
	}
}

// Pass does what is to be done now. What failed is tried again in the next.
func (r *Recovery) Pass(ctx context.Context) error {
	if r.creating == nil {
		r.list.Store, r.creating, r.names = r.Console.Store, map[string]hostclaim.Observed{}, map[string][]string{}
	}
	unread := r.list.Each(ctx, r.saw)
	cancelled := r.cancelOverdue(ctx)
	if unread != nil || r.Console.Private == nil {
		return errors.Join(unread, cancelled)
	}
	return errors.Join(cancelled, r.retireGone(ctx))
}

func (r *Recovery) saw(o hostclaim.Observed, _ time.Time) {
	delete(r.creating, o.Host)
	delete(r.names, o.Host)
	if o.Claim.Op.Kind == hostclaim.Creating {
		r.creating[o.Host] = o
	}
	if refs := namedBy(o.Claim); len(refs) > 0 {
		r.names[o.Host] = refs
	}
}

func (r *Recovery) cancelOverdue(ctx context.Context) error {
	var errs []error
	for _, host := range slices.Sorted(maps.Keys(r.creating)) {
		o := r.creating[host]
		if !overdue(o.Claim, r.Console.now()) {
			continue
		}
		_, err := r.Console.cancelOverdue(ctx, o)
		if err != nil && !taken(err) {
			errs = append(errs, err)
			continue
		}
		delete(r.creating, host)
		if err != nil {
			continue // it was taken in the last moment
		}
		r.Log.Warn("a create was cancelled: its box did not take the host in time", "host", host)
	}
	return errors.Join(errs...)
}

// retireGone retires what [Console.Retire], which looks at everything again,
// would not refuse.
func (r *Recovery) retireGone(ctx context.Context) error {
	fenced, err := r.fenced(ctx)
	if err != nil || len(fenced) == 0 {
		return err
	}
	named := map[string]bool{}
	for _, refs := range r.names {
		for _, ref := range refs {
			named[ref] = true
		}
	}
	var errs []error
	for _, ref := range fenced {
		if named[ref] {
			continue
		}
		box, err := r.Console.Retire(ctx, ref)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.Log.Info("a box that is gone is retired", "box", box.Ref, "enrollment", box.Enrollment)
	}
	return errors.Join(errs...)
}

// fenced lists the boxes that have a fence and are not retired, by reference.
func (r *Recovery) fenced(ctx context.Context) ([]string, error) {
	enrollments := map[string]bool{}
	for info, err := range r.Console.Store.List(ctx, fencePrefix) {
		if err != nil {
			return nil, fmt.Errorf("list the fences: %w", err)
		}
		if len(enrollments) == maxFences {
			return nil, fmt.Errorf("list the fences: more than %d", maxFences)
		}
		enrollments[strings.TrimSuffix(strings.TrimPrefix(info.Key, fencePrefix), ".json")] = true
	}
	snap, err := r.Console.Roster.Read(ctx)
	if err != nil {
		return nil, err
	}
	var refs []string
	for _, ref := range slices.Sorted(maps.Keys(snap.Boxes)) {
		if box := snap.Boxes[ref]; box.State != roster.Retired && enrollments[box.Enrollment] {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}
