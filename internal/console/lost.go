package console

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// Loss is what an operator says about a box that is to be declared lost.
type Loss struct {
	Ref     string
	Who     string   // the person
	Why     string   // one line
	Checked []string // what was looked at, one line each
	Confirm string   // the reference, typed out
}

// Destruction is what an operator says about the disks of a box that is gone.
type Destruction struct {
	Ref     string
	Who     string // the person
	Why     string // one line
	How     string // how they were destroyed, in one line
	Confirm string // the reference, typed out
}

func notEnrolled(ref string) error {
	return &Refusal{What: fmt.Sprintf("box %q was not looked up", ref), Err: fmt.Errorf("%w: it is not in the roster", ErrNone),
		Next: "see the boxes with: console box list"}
}

// enrolled reads the entry of a box.
func (c *Console) enrolled(ctx context.Context, ref string) (roster.Box, error) {
	snap, err := c.Roster.Read(ctx)
	if err != nil {
		return roster.Box{}, noDeployment(err)
	}
	box, ok := snap.Box(ref)
	if !ok {
		return roster.Box{}, notEnrolled(ref)
	}
	return box, nil
}

// DeclareLost declares a box lost that no cloud will report terminated, so that
// workers move its hosts. It quarantines the box first: one that may still act
// is never declared lost, and a second run goes on from there. Where the box
// was declared lost before, that declaration is the answer.
func (c *Console) DeclareLost(ctx context.Context, l Loss) (termfence.Evidence, error) {
	box, err := c.enrolled(ctx, l.Ref)
	if err != nil {
		return termfence.Evidence{}, err
	}
	d := termfence.Declaration{Box: box.Ref, Enrollment: box.Enrollment, Cloud: box.Cloud, Region: box.Region,
		Who: l.Who, Why: l.Why, Checked: l.Checked, Confirmation: l.Confirm, DeclaredAt: c.now()}
	if err := d.Check(); err != nil {
		return termfence.Evidence{}, refuseLoss(l.Ref, err, "correct it and run it again; nothing was written")
	}
	if box.State != roster.Active { // of an active one no declaration counts
		evidence, declared, err := c.fences().Declared(ctx, box.Enrollment)
		if err != nil || declared {
			return evidence, err
		}
	}
	if err := c.quarantine(ctx, l.Ref); err != nil {
		return termfence.Evidence{}, err
	}
	evidence, err := settled(func() (termfence.Evidence, error) { return termfence.Declare(ctx, c.Store, c.fences(), d) })
	if err != nil {
		return termfence.Evidence{}, fmt.Errorf("box %q is quarantined and not declared lost yet, run it again: %w", l.Ref, err)
	}
	return evidence, nil
}

func refuseLoss(ref string, err error, next string) error {
	return &Refusal{What: fmt.Sprintf("box %q was not declared lost", ref), Err: err, Next: next}
}

// quarantine keeps a box from acting. One that is quarantined costs no write.
func (c *Console) quarantine(ctx context.Context, ref string) error {
	err := c.updateRoster(ctx, func(r *roster.Roster) error {
		if r.Boxes[ref].State == roster.Quarantined {
			return errThere
		}
		return r.Quarantine(ref)
	})
	switch {
	case errors.Is(err, errThere):
		return nil
	case errors.Is(err, roster.ErrInvalid):
		return refuseLoss(ref, err, "nothing was written; see what the box is with: console box list")
	case err != nil:
		return fmt.Errorf("box %q was not quarantined: %w", ref, err)
	}
	return nil
}

// settled writes an immutable record, again while the outcome is unknown: the
// same bytes again are the same record.
func settled[P any](write func() (P, error)) (proof P, err error) {
	for range attempts {
		if proof, err = write(); !errors.Is(err, objstore.ErrUnknown) {
			break
		}
	}
	return proof, err
}

// Discharge states that the disks of a box are destroyed, which is legal only
// of one that is fenced or declared lost. Where that was stated before, the
// record that is there is the answer.
func (c *Console) Discharge(ctx context.Context, d Destruction) (termfence.Destroyed, error) {
	box, err := c.enrolled(ctx, d.Ref)
	if err != nil {
		return termfence.Destroyed{}, err
	}
	record := termfence.Destruction{Box: box.Ref, Enrollment: box.Enrollment, Who: d.Who, Why: d.Why, How: d.How,
		Confirmation: d.Confirm, DeclaredAt: c.now()}
	if err := record.Check(); err != nil {
		return termfence.Destroyed{}, refuseDischarge(d.Ref, err, "correct it and run it again; nothing was written")
	}
	destroyed, err := settled(func() (termfence.Destroyed, error) {
		return termfence.DeclareDestroyed(ctx, c.Store, c.fences(), record)
	})
	switch {
	case errors.Is(err, termfence.ErrUnverified):
		return termfence.Destroyed{}, refuseDischarge(d.Ref, err,
			"nothing was written; terminate its instance, or declare it lost with: console box declare-lost "+d.Ref)
	case err != nil:
		return termfence.Destroyed{}, fmt.Errorf("the disks of box %q were not declared destroyed: %w", d.Ref, err)
	}
	return destroyed, nil
}

func refuseDischarge(ref string, err error, next string) error {
	return &Refusal{What: fmt.Sprintf("the disks of box %q were not declared destroyed", ref), Err: err, Next: next}
}
