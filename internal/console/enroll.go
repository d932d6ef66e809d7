package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

// Enrollment is what an operator says about a box that is to be enrolled.
type Enrollment struct {
	Ref        string `json:"ref"`
	Region     string `json:"region"`
	Pool       string `json:"pool"`
	InstanceID string `json:"instance_id"` // the instance that the operator expects
}

// Enroll binds a reference to the cloud instance that published its identity
// under it, from that identity's signature and the operator's expectation. It
// returns the box's entry; one that says exactly this already is success.
func (c *Console) Enroll(ctx context.Context, e Enrollment) (roster.Box, error) {
	if err := boxid.CheckRef(e.Ref); err != nil {
		return roster.Box{}, refuseEnroll(e.Ref, err, "name the box as its agent's --box does")
	}
	if e.InstanceID == "" {
		return roster.Box{}, refuseEnroll(e.Ref, errors.New("nobody said which instance it is to be"),
			"name the instance that you expect with --instance-id")
	}
	identity, err := c.Store.Get(ctx, boxid.Key(e.Ref))
	if errors.Is(err, objstore.ErrNotFound) {
		return roster.Box{}, refuseEnroll(e.Ref, fmt.Errorf("%w: it has not published its identity", ErrNone),
			"start its agent with --box "+e.Ref+" and try again, or wait for it with --wait")
	}
	if err != nil {
		return roster.Box{}, err
	}
	return c.enroll(ctx, e, identity.Body)
}

func refuseEnroll(ref string, err error, next string) error {
	return &Refusal{What: fmt.Sprintf("box %q was not enrolled", ref), Err: err, Next: next}
}

// errThere ends a change that finds itself made.
var errThere = errors.New("it is there already")

// enroll makes the change under an enrollment id that is fresh and fixed, so its
// own write is recognised.
func (c *Console) enroll(ctx context.Context, e Enrollment, identity []byte) (roster.Box, error) {
	id, now := roster.NewEnrollment(), c.now()
	var found roster.Box
	change := func(r *roster.Roster) error {
		evidence, err := c.verify(*r, e, identity)
		if err != nil {
			return err
		}
		if held, ok := r.Box(e.Ref); ok && held.Cloud == evidence.Cloud() && held.Region == e.Region && held.Pool == e.Pool {
			found = held
			return errThere
		}
		if err := r.Enroll(evidence, roster.OperatorsWord{}, e.Region, e.Pool, id, now); err != nil {
			return err
		}
		found, _ = r.Box(e.Ref)
		return nil
	}
	err := c.updateRoster(ctx, change)
	switch {
	case errors.Is(err, errThere):
		return found, nil
	case errors.Is(err, boxid.ErrUnverified):
		return roster.Box{}, refuseEnroll(e.Ref, err, "nothing was written; check the reference and the instance id against your cloud")
	case errors.Is(err, roster.ErrEnrolled), errors.Is(err, roster.ErrInvalid):
		return roster.Box{}, refuseEnroll(e.Ref, err, "nothing was written; see what is enrolled with: console box list")
	case errors.Is(err, objstore.ErrNotFound):
		return roster.Box{}, noDeployment(err)
	case err != nil:
		return roster.Box{}, fmt.Errorf("box %q was not enrolled: %w", e.Ref, err)
	}
	return found, nil
}

// updateRoster makes change on the roster as it is, again where another write
// was first or the outcome is unknown: change has to recognise itself made.
func (c *Console) updateRoster(ctx context.Context, change func(*roster.Roster) error) error {
	var err error
	for range attempts {
		_, err = roster.Update(ctx, c.Store, c.Private, c.Roster, change)
		if !errors.Is(err, objstore.ErrConflict) && !errors.Is(err, objstore.ErrUnknown) && !errors.Is(err, objstore.ErrSuperseded) {
			break
		}
	}
	return err
}

// verify holds the published identity to the roster and to the operator.
func (c *Console) verify(r roster.Roster, e Enrollment, identity []byte) (boxid.Evidence, error) {
	region, ok := r.Region(e.Region)
	if !ok {
		return boxid.Evidence{}, fmt.Errorf("%w: region %q is not in the roster", roster.ErrInvalid, e.Region)
	}
	verifier := boxid.Verifier{Account: region.Account, Certs: c.Certs}
	return verifier.Enroll(identity, boxid.Expect{Box: e.Ref, AWSRegion: region.AWSRegion, InstanceID: e.InstanceID, Roster: r.Enrolled()})
}

// EnrollWhenPublished is Enroll, but waits up to timeout for the box to publish
// its identity.
func (c *Console) EnrollWhenPublished(ctx context.Context, e Enrollment, timeout time.Duration, progress func(string)) (roster.Box, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for said := false; ; said = true {
		box, err := c.Enroll(ctx, e)
		if !errors.Is(err, ErrNone) {
			return box, err
		}
		if !said {
			progress("waiting for box " + e.Ref + " to publish its identity")
		}
		if !pause(ctx, pace) {
			return roster.Box{}, err
		}
	}
}
