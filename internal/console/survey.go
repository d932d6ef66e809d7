package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/carlosframework/regionha/internal/survey"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// parallel bounds a command's requests in flight.
const parallel = 16

// view is the deployment's boxes as one look showed them.
type view struct {
	*survey.Look
	lost map[string]survey.Fence // declarations about quarantined boxes, by reference
}

// view reads the roster, every edges file, every fence, and the declaration
// about every quarantined box. One that cannot be read is kept as that.
func (c *Console) view(ctx context.Context) (view, error) {
	reader := survey.Reader{Store: c.Store, Roster: c.Roster, Now: c.now}
	look, err := reader.Look(ctx)
	if err != nil {
		return view{}, noDeployment(err)
	}
	v := view{Look: look, lost: map[string]survey.Fence{}}
	for _, ref := range slices.Sorted(maps.Keys(v.Boxes)) {
		if v.Boxes[ref].State == roster.Quarantined {
			v.lost[ref] = c.declared(ctx, v.Boxes[ref])
		}
	}
	return v, nil
}

// declared reads the declaration about a box.
func (c *Console) declared(ctx context.Context, box roster.Box) survey.Fence {
	e, _, err := c.fences().Declared(ctx, box.Enrollment)
	return survey.Fence{At: e.ObservedAt(), Err: err}
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
	State      roster.State `json:"state"` // or [Waiting]
	Draining   bool         `json:"draining"`
	Enrollment string       `json:"enrollment"`
	EnrolledAt time.Time    `json:"enrolled_at"`
	Instance   string       `json:"instance"` // the cloud's own name
	Status     string       `json:"status"`   // one sentence

	TerminatedAt time.Time `json:"terminated_at,omitzero"` // when its machine was read terminated
	DeclaredAt   time.Time `json:"declared_at,omitzero"`   // when an operator declared it lost
	HeardAt      time.Time `json:"heard_at,omitzero"`      // when the store took its last edges file
	Address      string    `json:"address,omitempty"`      // of its ingress
	Protocol     int       `json:"protocol"`               // what its build speaks, as it says
	Hosts        int       `json:"hosts"`
	ReadmittedAs string    `json:"readmitted_as"`
	Next         string    `json:"next"` // the command that a person may give now

	silent bool // no edges file that still speaks for it
}

// box describes ref; one that is not in the roster has no state.
func (v view) box(ref string) Box {
	entry, _ := v.Box(ref)
	b := Box{
		Ref: ref, Region: entry.Region, Pool: entry.Pool, State: entry.State, Draining: entry.Draining,
		Enrollment: entry.Enrollment, EnrolledAt: entry.EnrolledAt, Instance: entry.Cloud.InstanceID,
		TerminatedAt: v.Fences[ref].At, DeclaredAt: v.lost[ref].At, ReadmittedAs: entry.ReadmittedAs, silent: true,
	}
	worker := false
	if file, ok := v.Edges.File(ref); ok {
		b.HeardAt, b.Address, b.Hosts, b.Protocol = file.ModTime, file.Edges.Address, len(file.Edges.Hosts), file.Edges.Protocol
		b.silent = file.Fresh(v.At) != nil
		worker = !slices.Contains(file.Edges.Capabilities, placement.CapabilityRegionHA)
	}
	b.Status = v.boxStatus(b, worker)
	return b
}

func (v view) boxStatus(b Box, worker bool) string {
	fence, lost := v.Fences[b.Ref], v.lost[b.Ref]
	switch {
	case b.State == "":
		return "not enrolled"
	case b.ReadmittedAs != "":
		return "retired: its machine is " + b.ReadmittedAs + " now"
	case fence.Err != nil:
		return fmt.Sprintf("its fence cannot be read: %v", fence.Err)
	case !b.TerminatedAt.IsZero():
		return "gone: its machine was terminated at " + clock(b.TerminatedAt)
	case lost.Err != nil:
		return fmt.Sprintf("its declaration cannot be read: %v", lost.Err)
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
	case b.Draining && b.Hosts == 0:
		return "up, drained: it runs no host"
	case b.Draining:
		return "up, draining"
	}
	return "up"
}

// Boxes lists every box of the roster by reference, and then the machines that
// published who they are and wait to be enrolled: the 50 that did so last.
func (c *Console) Boxes(ctx context.Context) ([]Box, error) {
	v, err := c.view(ctx)
	if err != nil {
		return nil, err
	}
	list := []Box{}
	for _, ref := range slices.Sorted(maps.Keys(v.Boxes)) {
		list = append(list, v.box(ref))
	}
	waiting, err := c.waiting(ctx, v)
	return append(list, waiting...), err
}

// Box looks at one box, or at a machine that waits to be enrolled as it. One
// that is neither is [ErrNone].
func (c *Console) Box(ctx context.Context, ref string) (Box, error) {
	v, err := c.view(ctx)
	if err != nil {
		return Box{}, err
	}
	if box, ok := v.Box(ref); ok {
		if box.State == roster.Retired {
			v.lost[ref] = c.declared(ctx, box)
		}
		return v.box(ref), nil
	}
	return c.waitingBox(ctx, v, ref)
}

// clock shows a time to a person: UTC, to the second.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
