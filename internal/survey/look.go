package survey

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// Reader looks at the boxes of a deployment. It is for one goroutine.
type Reader struct {
	Store  objstore.Store // of the control bucket
	Roster *roster.Directory
	Region string                // only this region's boxes are asked for a fence; "": every box
	Gone   func(ref string) bool // boxes that are known to be gone, whatever the look shows; nil: none
	Now    func() time.Time      // time.Now if nil

	edges  placement.Reader
	last   placement.Snapshot
	fences fences
}

// Look is the boxes as one pass over the store showed them.
type Look struct {
	roster.Snapshot
	Edges  placement.Snapshot
	Fences map[string]Fence // by reference; a box that was not asked for one has no entry
	At     time.Time
	Cost   int // requests that it cost, of which one GET and two LISTs always

	gone  func(ref string) bool
	loads map[string]placement.Box
}

// Look reads the roster, the edges files that changed since its last call, and
// the fences: a GET and two LISTs, and a GET of each file and each fence that is
// new to this reader, however many boxes there are. A fence that cannot be read
// is kept as that.
func (r *Reader) Look(ctx context.Context) (*Look, error) {
	l := &Look{At: r.now(), Fences: map[string]Fence{}, gone: r.Gone, loads: map[string]placement.Box{}}
	var err error
	if l.Snapshot, err = r.Roster.Read(ctx); err != nil {
		return nil, err
	}
	r.edges.Store = r.Store
	if l.Edges, err = r.edges.Read(ctx); err != nil {
		return nil, err
	}
	l.Cost = 3
	for _, f := range l.Edges.Files {
		l.loads[f.Edges.Box] = placement.Load(f.Edges)
		if was, _ := r.last.File(f.Edges.Box); was.ETag != f.ETag {
			l.Cost++
		}
	}
	r.last = l.Edges
	r.readFences(ctx, l)
	return l, nil
}

func (r *Reader) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

func (l *Look) isGone(ref string) bool { return l.gone != nil && l.gone(ref) }

// Eligible lists the boxes that may be given a host with what they have, by
// reference, and says of each other box of the region why not. A fence that
// cannot be read is an error. The time and the region's entry are the look's.
func (l *Look) Eligible(want placement.Want) (boxes []placement.Box, why []string, err error) {
	for _, ref := range slices.Sorted(maps.Keys(l.Boxes)) {
		if l.Boxes[ref].Region != want.Region {
			continue
		}
		switch err := l.judge(want, ref); {
		case err == nil:
			boxes = append(boxes, l.loads[ref])
		case errors.Is(err, placement.ErrIneligible):
			why = append(why, fmt.Sprintf("%s (%s)", ref, reason(ref, err)))
		default:
			return nil, nil, err
		}
	}
	for _, problem := range l.Edges.Problems {
		why = append(why, problem.Error())
	}
	return boxes, why, nil
}

func (l *Look) judge(want placement.Want, ref string) error {
	want.Now = l.At
	want.RosterRegion, _ = l.Region(want.Region)
	box, _ := l.Box(ref)
	file, _ := l.Edges.File(ref)
	f := l.Fences[ref]
	if box.State != roster.Active {
		f.Err = nil // it is refused for that, whatever its fence would say
	}
	return placement.Eligible(want, placement.Candidate{Ref: ref, Box: box, File: file,
		Fenced: !f.At.IsZero() || l.isGone(ref), FenceErr: f.Err})
}

// reason is an ineligibility without what the list around it says already.
func reason(ref string, err error) string {
	return strings.TrimPrefix(err.Error(), fmt.Sprintf("placement: box %s: %v: ", ref, placement.ErrIneligible))
}

// NoneError: no box of the region may be given the host, for the reasons that
// Why has of each.
type NoneError struct {
	Region string
	Why    []string
}

// Error is one sentence for a person.
func (e *NoneError) Error() string {
	if len(e.Why) == 0 {
		return fmt.Sprintf("no box of region %s may take it: none is enrolled", e.Region)
	}
	return fmt.Sprintf("no box of region %s may take it: %s", e.Region, strings.Join(e.Why, ", "))
}

// Choose picks the box for a host of app. Errors: [NoneError], or the one with
// which a fence could not be read.
func (l *Look) Choose(want placement.Want, host, app string) (hostclaim.Member, error) {
	boxes, why, err := l.Eligible(want)
	if err != nil {
		return hostclaim.Member{}, err
	}
	ref, ok := placement.Choose(host, app, boxes)
	if !ok {
		return hostclaim.Member{}, &NoneError{Region: want.Region, Why: why}
	}
	return hostclaim.Member{Box: ref, Enrollment: l.Boxes[ref].Enrollment}, nil
}

// Named is the box that somebody names for a host. One that may not be given it
// is [placement.ErrIneligible] with the first reason. As for a choice, a fence
// of the region that cannot be read is an error.
func (l *Look) Named(want placement.Want, ref string) (hostclaim.Member, error) {
	if _, _, err := l.Eligible(want); err != nil {
		return hostclaim.Member{}, err
	}
	switch err := l.judge(want, ref); {
	case errors.Is(err, placement.ErrIneligible):
		return hostclaim.Member{}, fmt.Errorf("%w: %s", placement.ErrIneligible, reason(ref, err))
	case err != nil:
		return hostclaim.Member{}, err
	}
	return hostclaim.Member{Box: ref, Enrollment: l.Boxes[ref].Enrollment}, nil
}

// give counts one more host of app in on ref.
func (l *Look) give(ref, app string) {
	load := l.loads[ref]
	load.Add(app)
	l.loads[ref] = load
}

// take counts one host of app less on ref.
func (l *Look) take(ref, app string) {
	load := l.loads[ref]
	load.Hosts--
	load.Apps[app]--
	l.loads[ref] = load
}

// serves reports whether the edges file of ref lists the host: then its load
// counts it in.
func (l *Look) serves(ref, host string) bool {
	file, _ := l.Edges.File(ref)
	_, ok := file.Edges.Hosts[host]
	return ok
}
