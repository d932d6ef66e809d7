package hostclaim

import (
	"cmp"
	"slices"
	"time"

	"github.com/carlosframework/regionha/stopevidence"
)

// BeginDelete begins to end a serving host for good. Nobody is admitted from
// then on; its executor releases it.
func BeginDelete(op, by string, executor Member, now time.Time) Transition {
	return func(c *Claim) error {
		switch {
		case c.Op.ID == op && c.Op.Kind == Deleting && c.Op.Intent.Source == executor:
			return ErrAlreadyRecorded
		case c.Op.Kind != Serving:
			return wrong("a host that is %s cannot be deleted", c.Op.Kind)
		case c.Op.executor() != executor:
			return wrong("%s as %s is not the executor, %s as %s is", executor.Box, executor.Enrollment, c.Op.Exec, c.Op.ExecEnrollment)
		}
		c.Op = Op{
			Kind: Deleting, ID: op, By: by, StartedAt: now.UTC(),
			Exec: executor.Box, ExecEnrollment: executor.Enrollment, Participants: []string{executor.Box},
			Intent: Intent{Region: c.Holder.Region, Source: executor},
		}
		c.Op.enter("", now)
		return nil
	}
}

// ParkAfterRelease takes a host that is deleted from the executor that released
// it, on the verified receipt of that release. What is left of it waits to be
// put away: on every box that holds local state, and in the region's store.
func ParkAfterRelease(op string, receipt stopevidence.Receipt) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && c.Op.Kind == Parking {
			return ErrAlreadyRecorded
		}
		if err := c.runs(op, Deleting); err != nil {
			return err
		}
		if err := c.notStuck(); err != nil {
			return err
		}
		if err := c.checkReceipt(receipt); err != nil {
			return err
		}
		c.park()
		return nil
	}
}

// park ends the right of anyone to run a host that is deleted.
func (c *Claim) park() {
	c.vacate()
	c.Op.Kind, c.Op.Phase, c.Op.Participants = Parking, "", nil
	c.Op.Intent, c.Op.Journal = Intent{}, Journal{}
	c.oweLocal()
	c.owe(Obligation{Kind: ParkReplica, Region: c.Holder.Region, Owner: ownerRegion + c.Holder.Region})
}

// FreeHost frees a deleted host, once nothing of it is left and every loss that
// it declared was reported. The claim stays, with what it must not forget.
func FreeHost(op string) Transition {
	return func(c *Claim) error {
		if err := c.runs(op, Parking); err != nil {
			return err
		}
		switch {
		case c.Holder == nil:
			return wrong("the host has no holder: its last chore frees it")
		case len(c.Obligations) > 0:
			return wrong("%d chores are open, the first is %s", len(c.Obligations), c.Obligations[0].ID)
		case len(c.PendingLosses()) > 0:
			return wrong("loss %s is not reported yet", c.PendingLosses()[0].ID)
		}
		c.free()
		return nil
	}
}

// Residue is what lies in a region's store under an incarnation that is over.
type Residue struct{ Incarnation, Region string }

// BeginSweep parks residue of a free host, which has no holder meanwhile. The
// host cannot be created until the last of it is put away.
func BeginSweep(op, by string, residue []Residue, now time.Time) Transition {
	return func(c *Claim) error {
		switch {
		case c.Op.ID == op && c.Op.Kind == Parking:
			return ErrAlreadyRecorded
		case c.Op.Kind != Free:
			return wrong("a host that is %s is not swept", c.Op.Kind)
		case len(residue) == 0 || len(residue) > keepOthers:
			return wrong("%d places to sweep, want 1 to %d", len(residue), keepOthers)
		}
		for i, r := range residue {
			if err := cmp.Or(checkName("incarnation", r.Incarnation), checkName("region", r.Region)); err != nil {
				return wrong("%v", err)
			}
			if slices.Contains(residue[:i], r) {
				return wrong("%s in %s is to be swept twice", r.Incarnation, r.Region)
			}
		}
		c.Op = Op{Kind: Parking, ID: op, By: by, StartedAt: now.UTC(), Exec: None}
		for _, r := range residue {
			c.owe(Obligation{Kind: ParkReplica, Incarnation: r.Incarnation, Region: r.Region, Owner: ownerRegion + r.Region})
		}
		return nil
	}
}
