package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// parallel bounds a command's requests in flight.
const parallel = 16

// survey is the deployment's boxes as one look showed them.
type survey struct {
	roster.Snapshot
	edges  placement.Snapshot
	fences map[string]evidence // by reference
	lost   map[string]evidence // declarations about quarantined boxes
	now    time.Time
}

// evidence is what is known of one fence or declaration.
type evidence struct {
	at  time.Time // read terminated, or declared; zero: not
	err error     // it could not be read: nothing is known
}

// survey reads the roster, every edges file, every fence, and the declaration
// about every quarantined box. One that cannot be read is kept as that.
func (c *Console) survey(ctx context.Context) (survey, error) {
	s := survey{now: c.now(), fences: map[string]evidence{}, lost: map[string]evidence{}}
	var err error
	if s.Snapshot, err = c.Roster.Read(ctx); err != nil {
		return survey{}, noDeployment(err)
	}
	edges := placement.Reader{Store: c.Store}
	if s.edges, err = edges.Read(ctx); err != nil {
		return survey{}, err
	}
	c.readEvidence(ctx, s)
	return s, nil
}

func (c *Console) readEvidence(ctx context.Context, s survey) {
	refs := slices.Sorted(maps.Keys(s.Boxes))
	fenced, declared := make([]evidence, len(refs)), make([]evidence, len(refs))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, ref := range refs {
		group.Go(func() error {
			box := s.Boxes[ref]
			e, _, err := c.fences().Fenced(ctx, box.Enrollment)
			fenced[i] = evidence{at: e.ObservedAt(), err: err}
			if box.State == roster.Quarantined {
				e, _, err = c.fences().Declared(ctx, box.Enrollment)
				declared[i] = evidence{at: e.ObservedAt(), err: err}
			}
			return nil
		})
	}
	_ = group.Wait() // each holds its own error
	for i, ref := range refs {
		s.fences[ref], s.lost[ref] = fenced[i], declared[i]
	}
}

// fences reads evidence of either kind.
func (c *Console) fences() termfence.Reader {
	return termfence.Reader{Store: c.Store, Roster: c.Roster}
}

// noDeployment explains the absence of a roster.
func noDeployment(err error) error {
	if !errors.Is(err, objstore.ErrNotFound) {
		return err
	}
	return &Refusal{What: "the control store holds no deployment", Err: err, Next: "see that --control is right, or make one with: console init"}
}

// Box is what an operator sees of one box.
type Box struct {
	Ref        string       `json:"ref"`
	Region     string       `json:"region"`
	Pool       string       `json:"pool"`
	State      roster.State `json:"state"`
	Draining   bool         `json:"draining"`
	Enrollment string       `json:"enrollment"`
	EnrolledAt time.Time    `json:"enrolled_at"`
	Instance   string       `json:"instance"` // the cloud's own name
	Status     string       `json:"status"`   // one sentence

	TerminatedAt time.Time `json:"terminated_at,omitzero"` // when its machine was read terminated
	DeclaredAt   time.Time `json:"declared_at,omitzero"`   // when an operator declared it lost
	HeardAt      time.Time `json:"heard_at,omitzero"`      // when the store took its last edges file
	Address      string    `json:"address,omitempty"`      // of its ingress
	Hosts        int       `json:"hosts"`

	silent bool // no edges file that still speaks for it
}

// box describes ref; one that is not in the roster has no state.
func (s survey) box(ref string) Box {
	entry, _ := s.Box(ref)
	b := Box{
		Ref: ref, Region: entry.Region, Pool: entry.Pool, State: entry.State, Draining: entry.Draining,
		Enrollment: entry.Enrollment, EnrolledAt: entry.EnrolledAt, Instance: entry.Cloud.InstanceID,
		TerminatedAt: s.fences[ref].at, DeclaredAt: s.lost[ref].at, silent: true,
	}
	worker := false
	if file, ok := s.edges.File(ref); ok {
		b.HeardAt, b.Address, b.Hosts = file.ModTime, file.Edges.Address, len(file.Edges.Hosts)
		b.silent = file.Fresh(s.now) != nil
		worker = !slices.Contains(file.Edges.Capabilities, placement.CapabilityRegionHA)
	}
	b.Status = s.boxStatus(b, worker)
	return b
}

func (s survey) boxStatus(b Box, worker bool) string {
	fence, lost := s.fences[b.Ref], s.lost[b.Ref]
	switch {
	case b.State == "":
		return "not enrolled"
	case fence.err != nil:
		return fmt.Sprintf("its fence cannot be read: %v", fence.err)
	case !b.TerminatedAt.IsZero():
		return "gone: its machine was terminated at " + clock(b.TerminatedAt)
	case lost.err != nil:
		return fmt.Sprintf("its declaration cannot be read: %v", lost.err)
	case !b.DeclaredAt.IsZero():
		return "declared lost at " + clock(b.DeclaredAt)
	case b.State == roster.Quarantined:
		return "takes no part, and is not declared lost yet: run console box declare-lost " + b.Ref + " again"
	case b.State != roster.Active:
		return "takes no part"
	case b.HeardAt.IsZero():
		return "not heard of yet: start its agent"
	case b.silent:
		return "silent: last heard of at " + clock(b.HeardAt)
	case worker:
		return "up, drives operations, runs no hosts"
	case b.Draining:
		return "up, draining"
	}
	return "up"
}

// Boxes lists every box of the roster, by reference.
func (c *Console) Boxes(ctx context.Context) ([]Box, error) {
	s, err := c.survey(ctx)
	if err != nil {
		return nil, err
	}
	list := []Box{}
	for _, ref := range slices.Sorted(maps.Keys(s.Boxes)) {
		list = append(list, s.box(ref))
	}
	return list, nil
}

// eligible returns the boxes that may be given a host, and of each other box
// why not. Where a fence cannot be read nobody is offered.
func (s survey) eligible(want placement.Want) (boxes []placement.Box, why []string, err error) {
	want.Now = s.now
	for _, ref := range slices.Sorted(maps.Keys(s.Boxes)) {
		entry, _ := s.Box(ref)
		if entry.Region != want.Region {
			continue
		}
		file, _ := s.edges.File(ref)
		f := s.fences[ref]
		err := placement.Eligible(want, placement.Candidate{Ref: ref, Box: entry, File: file, Fenced: !f.at.IsZero(), FenceErr: f.err})
		switch {
		case err == nil:
			boxes = append(boxes, placement.Load(file.Edges))
		case errors.Is(err, placement.ErrIneligible):
			why = append(why, fmt.Sprintf("%s (%s)", ref, reason(ref, err)))
		default:
			return nil, nil, err
		}
	}
	for _, problem := range s.edges.Problems {
		why = append(why, problem.Error())
	}
	return boxes, why, nil
}

// reason is an ineligibility without what the list around it says already.
func reason(ref string, err error) string {
	return strings.TrimPrefix(err.Error(), fmt.Sprintf("placement: box %s: %v: ", ref, placement.ErrIneligible))
}

// choose picks the box for a host of app, once.
func (s survey) choose(want placement.Want, host, app string) (hostclaim.Member, error) {
	boxes, why, err := s.eligible(want)
	if err != nil {
		return hostclaim.Member{}, err
	}
	ref, ok := placement.Choose(host, app, boxes)
	if !ok {
		return hostclaim.Member{}, fmt.Errorf("no box of region %s may take it: %s", want.Region, cmp.Or(strings.Join(why, ", "), "none is enrolled"))
	}
	entry, _ := s.Box(ref)
	return hostclaim.Member{Box: ref, Enrollment: entry.Enrollment}, nil
}

// clock shows a time to a person: UTC, to the second.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
