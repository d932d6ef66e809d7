package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// Retire ends the entry of a box for ever. It is legal only of one that is
// fenced or declared lost, and that no claim names any more: neither as the one
// that executes, nor in an operation. A box that is retired already costs no
// write.
func (c *Console) Retire(ctx context.Context, ref string) (roster.Box, error) {
	box, err := c.enrolled(ctx, ref)
	if err != nil || box.State == roster.Retired {
		return box, err
	}
	gone, err := c.gone(ctx, box)
	if err != nil {
		return roster.Box{}, fmt.Errorf("box %q was not retired: %w", ref, err)
	}
	if !gone {
		return roster.Box{}, refuseRetire(ref, errors.New("it is neither read terminated nor declared lost, so it may still run"),
			"terminate its instance and wait until box list says that it is gone, or see console box declare-lost --help")
	}
	if err := c.unnamed(ctx, ref); err != nil {
		return roster.Box{}, err
	}
	if err := c.updateRoster(ctx, func(r *roster.Roster) error { return r.Retire(ref) }); err != nil {
		return roster.Box{}, fmt.Errorf("box %q was not retired: %w", ref, err)
	}
	box.State = roster.Retired
	return box, nil
}

func refuseRetire(ref string, err error, next string) error {
	return &Refusal{What: fmt.Sprintf("box %q was not retired", ref), Err: err, Next: next}
}

// gone reports whether a box is fenced or declared lost. Evidence that cannot
// be read is an error.
func (c *Console) gone(ctx context.Context, box roster.Box) (bool, error) {
	for _, look := range []func(context.Context, string) (termfence.Evidence, bool, error){c.fences().Fenced, c.fences().Declared} {
		if _, found, err := look(ctx, box.Enrollment); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// unnamed refuses to retire a box that a claim names, or may name since it
// cannot be read. It costs one LIST and a GET of every claim.
func (c *Console) unnamed(ctx context.Context, ref string) error {
	claims, err := c.claims(ctx)
	if err != nil {
		return fmt.Errorf("box %q was not retired: %w", ref, err)
	}
	var named []string
	for _, l := range claims {
		switch {
		case l.err != nil:
			return refuseRetire(ref, fmt.Errorf("the claim of %s may name it: %w", l.Host, l.err), "see that it can be read, and try again")
		case l.Claim != nil && slices.Contains(namedBy(l.Claim), ref):
			named = append(named, l.Host)
		}
	}
	if len(named) == 0 {
		return nil
	}
	return refuseRetire(ref, fmt.Errorf("claims of %d hosts still name it: %s", len(named), few(named)),
		"workers move them; watch them with console host list, and try again when none is left")
}

// namedBy lists the boxes that a claim needs: the one that executes, and those of
// its operation.
func namedBy(claim *hostclaim.Claim) []string {
	op := claim.Op
	switch op.Kind {
	case hostclaim.Free:
		return nil
	case hostclaim.Creating:
		return []string{op.Intent.Selected.Box}
	}
	return append(slices.Clone(op.Participants), op.Exec, op.Intent.Source.Box, op.Target().Box)
}

// few lists names for a sentence.
func few(names []string) string {
	const most = 5
	slices.Sort(names)
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Readmission is what an operator says about a machine that comes back.
type Readmission struct {
	Ref string // under which it is retired
	As  string // under which it published its identity now
}

// Readmit enrolls the machine of a retired box anew, under another reference, in
// the region and the pool that it had. It is for a box that was declared lost
// and runs after all: under its old reference it never acts again. What its old
// enrollment left on its disks is not taken up.
func (c *Console) Readmit(ctx context.Context, m Readmission) (roster.Box, error) {
	old, err := c.enrolled(ctx, m.Ref)
	if err != nil {
		return roster.Box{}, err
	}
	if err := c.checkReadmission(ctx, old, m); err != nil {
		return roster.Box{}, err
	}
	identity, err := c.Store.Get(ctx, boxid.Key(m.As))
	if errors.Is(err, objstore.ErrNotFound) {
		return roster.Box{}, refuseReadmit(m.Ref, fmt.Errorf("%w: %s has not published its identity", ErrNone, m.As),
			"start the agent of that machine with --box "+m.As+" and try again")
	}
	if err != nil {
		return roster.Box{}, err
	}
	return c.readmit(ctx, old, m.As, identity.Body)
}

func refuseReadmit(ref string, err error, next string) error {
	return &Refusal{What: fmt.Sprintf("box %q was not readmitted", ref), Err: err, Next: next}
}

func (c *Console) checkReadmission(ctx context.Context, old roster.Box, m Readmission) error {
	if err := boxid.CheckRef(m.As); err != nil {
		return refuseReadmit(m.Ref, err, "name it as its agent's --box does now")
	}
	switch {
	case m.As == m.Ref:
		return refuseReadmit(m.Ref, errors.New("a reference is enrolled once, for ever"), "start its agent under another --box, and name that with --as")
	case old.State != roster.Retired:
		return refuseReadmit(m.Ref, fmt.Errorf("it is %s", old.State), "only a retired box is readmitted: see console box retire --help")
	case !old.Cloud.Complete():
		return refuseReadmit(m.Ref, errors.New("it never proved which machine it is"), "enroll the machine with: console box enroll "+m.As)
	}
	_, fenced, err := c.fences().Fenced(ctx, old.Enrollment)
	if err == nil && fenced {
		err = refuseReadmit(m.Ref, fmt.Errorf("its instance %s was read terminated, and never comes back", old.Cloud.InstanceID),
			"enroll the new machine with: console box enroll "+m.As)
	}
	return err
}

// readmit makes the change. The retired entries of the instance are what it is
// about, so only they may name it beside the new one.
func (c *Console) readmit(ctx context.Context, old roster.Box, as string, raw []byte) (roster.Box, error) {
	id, now := roster.NewEnrollment(), c.now()
	var found roster.Box
	change := func(r *roster.Roster) error {
		place := r.Regions[old.Region]
		known := slices.DeleteFunc(r.Enrolled(), func(e boxid.Enrolled) bool {
			return e.Cloud == old.Cloud && r.Boxes[e.Box].State == roster.Retired
		})
		identity, err := boxid.Verifier{Account: place.Account, Certs: c.Certs}.Enroll(raw,
			boxid.Expect{Box: as, AWSRegion: place.AWSRegion, InstanceID: old.Cloud.InstanceID, Roster: known})
		if err != nil {
			return err
		}
		if held, ok := r.Box(as); ok && held.Cloud == old.Cloud && r.Boxes[old.Ref].ReadmittedAs == as {
			found = held
			return errThere
		}
		if err := r.Readmit(old.Ref, identity); err != nil {
			return err
		}
		if err := r.Enroll(identity, roster.OperatorsWord{}, old.Region, old.Pool, id, now); err != nil {
			return err
		}
		found, _ = r.Box(as)
		return nil
	}
	err := c.updateRoster(ctx, change)
	switch {
	case err == nil, errors.Is(err, errThere):
		return found, nil
	case errors.Is(err, boxid.ErrUnverified), errors.Is(err, roster.ErrEnrolled), errors.Is(err, roster.ErrInvalid):
		return roster.Box{}, refuseReadmit(old.Ref, err, "nothing was written; see what is enrolled with: console box list")
	}
	return roster.Box{}, fmt.Errorf("box %q was not readmitted: %w", old.Ref, err)
}
