package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/membership"
	"github.com/carlosframework/regionha/roster"
)

// errLives: a box of that region runs, so its own workers confirm others.
var errLives = errors.New("its region is not empty")

// around is what the boxes of one pass share: the roster, and for each other
// placement what its boxes were seen to be, looked up as soon as one needs it.
type around struct {
	roster.Roster
	others map[string]func() (map[string]membership.Other, error)
}

func (w *Worker) lookAround(ctx context.Context, snap roster.Snapshot) around {
	a := around{Roster: snap.Roster, others: map[string]func() (map[string]membership.Other, error){}}
	for code := range snap.Regions {
		if code != w.self.Region {
			a.others[code] = sync.OnceValues(func() (map[string]membership.Other, error) { return w.emptied(ctx, snap.Roster, code) })
		}
	}
	return a
}

// emptied describes the boxes of another placement that may act, and returns
// what it saw of them once each is terminated. The first that is not ends it.
func (w *Worker) emptied(ctx context.Context, r roster.Roster, placement string) (map[string]membership.Other, error) {
	seen := map[string]membership.Other{}
	for _, box := range membership.Occupants(r, placement) {
		if !box.Cloud.Complete() {
			return nil, membership.CheckTerminated(box, membership.Other{}, time.Now())
		}
		o, _, err := w.cloud.Instances.Describe(ctx, box.Cloud)
		if err != nil {
			return nil, err
		}
		other := membership.Other{Seen: o, At: time.Now()}
		if o.Found && (o.State == "pending" || o.State == "running") {
			return nil, fmt.Errorf("%w: box %q of %q is %s", errLives, box.Ref, placement, o.State)
		}
		if err := membership.CheckTerminated(box, other, other.At); err != nil {
			return nil, err
		}
		seen[box.Enrollment] = other
	}
	return seen, nil
}

// confirm writes the confirmation of a box, unless one that holds is there and
// has half of its time left.
func (w *Worker) confirm(ctx context.Context, a around, ref string, t *try) error {
	if t.identity.Box() == "" {
		identity, err := w.identify(ctx, a.Roster, ref)
		if err != nil {
			return err
		}
		t.identity = identity
	}
	reader := membership.Reader{Store: w.control, Roster: w.roster}
	switch held, found, err := reader.Find(ctx, ref); {
	case found && time.Since(held.Record().ObservedAt) < membership.MaxAge/2:
		return nil
	case err != nil && !errors.Is(err, membership.ErrUnverified):
		return err
	}
	rec, err := w.look(ctx, a, t.identity)
	if err != nil {
		return err
	}
	if _, err := membership.Publish(ctx, w.control, reader, rec); err != nil {
		return err
	}
	w.log.Info("a box is confirmed: a console may enroll it", "about", ref, "instance", rec.InstanceID, "placement", rec.TargetPlacement)
	return nil
}

// identify verifies who a box says that it is, in whichever cloud region of the
// deployment it runs. Where it is none, the answer is that of the worker's own.
func (w *Worker) identify(ctx context.Context, r roster.Roster, ref string) (boxid.Evidence, error) {
	obj, err := w.control.Get(ctx, boxid.Key(ref))
	if err != nil {
		return boxid.Evidence{}, err
	}
	var first error
	for _, code := range w.placements(r) {
		place := r.Regions[code]
		verifier := boxid.Verifier{Account: place.Account, Certs: w.certs}
		identity, err := verifier.Enroll(obj.Body, boxid.Expect{Box: ref, AWSRegion: place.AWSRegion, Roster: r.Enrolled()})
		if err == nil {
			return identity, nil
		}
		first = cmp.Or(first, err)
	}
	return boxid.Evidence{}, first
}

// placements lists those that have a group, the worker's own first.
func (w *Worker) placements(r roster.Roster) []string {
	var codes []string
	for _, code := range slices.Sorted(maps.Keys(r.Regions)) {
		if place := r.Regions[code]; place.GroupName != "" && place.GroupARN != "" {
			codes = append(codes, code)
		}
	}
	slices.SortStableFunc(codes, func(a, b string) int { return cmp.Compare(w.distance(a), w.distance(b)) })
	return codes
}

func (w *Worker) distance(placement string) int {
	if placement == w.self.Region {
		return 0
	}
	return 1
}

// look asks the cloud about a box, for each placement of its cloud region until
// one is proven to be its own. Otherwise the answer is the first one's.
func (w *Worker) look(ctx context.Context, a around, identity boxid.Evidence) (membership.Record, error) {
	var first error
	for _, code := range w.placements(a.Roster) {
		if a.Regions[code].AWSRegion != identity.Cloud().Region {
			continue
		}
		rec, err := w.lookFor(ctx, a, identity, code)
		if err == nil {
			return rec, nil
		}
		first = cmp.Or(first, err)
	}
	if first == nil {
		first = fmt.Errorf("no placement of %s has a group any more", identity.Cloud().Region)
	}
	return membership.Record{}, first
}

func (w *Worker) lookFor(ctx context.Context, a around, identity boxid.Evidence, placement string) (membership.Record, error) {
	var seen membership.Sighting
	var err error
	if placement != w.self.Region {
		if seen.Others, err = a.others[placement](); err != nil {
			return membership.Record{}, err
		}
		if seen.Instance, _, err = w.cloud.Instances.Describe(ctx, identity.Cloud()); err != nil {
			return membership.Record{}, err
		}
	}
	seen.Identity = identity
	if seen.Group, err = w.cloud.Groups.Member(ctx, identity.Cloud().Region, identity.Cloud().InstanceID); err != nil {
		return membership.Record{}, err
	}
	by := membership.Confirmer{Box: w.self.Ref, Enrollment: w.self.Enrollment, Region: w.self.Region}
	return membership.Verify(a.Roster, by, placement, seen, time.Now())
}
