package hostclaim

import (
	"time"

	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/termfence"
)

const (
	roleSelected = "selected"
	roleSource   = "source"
	roleTarget   = "target"
)

// Gone proves that a box can never write again, and says what is known of its
// disks.
type Gone struct {
	Evidence termfence.Evidence
	Volumes  boxvolumes.Verdict // zero: nothing, and the box keeps its local chores
}

// discharges reports whether nothing of the box's local state is left: its
// instance was terminated, and its disks with it. What an operator declared
// says nothing about disks.
func (g Gone) discharges() bool {
	return !g.Evidence.Declared() && g.Volumes.Discharged() && g.Volumes.Enrollment() == g.Evidence.Enrollment()
}

// consume relies on evidence about a member of this operation, in the write
// that needs it: the box is lost for this host for ever, the loss of its last
// session is retained for people, and the regional chores that it owned pass to
// their region. It changes nothing of any other box.
func (c *Claim) consume(g Gone, m Member, role string) error {
	e := g.Evidence
	switch {
	case e.Box() == "":
		return wrong("no evidence that %s is gone", m.Box)
	case e.Box() != m.Box || e.Enrollment() != m.Enrollment:
		return wrong("the evidence is about %s as %s, not %s as %s", e.Box(), e.Enrollment(), m.Box, m.Enrollment)
	case e.Region() != c.Holder.Region:
		return wrong("the evidence is from region %q, the operation runs in %q", e.Region(), c.Holder.Region)
	}
	if g.discharges() {
		c.cleared(m.Box)
	}
	if c.consumed(m.Box) {
		return nil
	}
	ref := e.Ref()
	f := Fence{Enrollment: m.Enrollment, Key: ref.Key, SHA256: ref.SHA256, ObservedAt: e.ObservedAt().UTC(), Declared: e.Declared()}
	if c.Op.Journal.Fences == nil {
		c.Op.Journal.Fences = map[string]Fence{}
	}
	c.Op.Journal.Fences[m.Box] = f
	c.Lost = add(c.Lost, m.Box)
	c.retainLoss(g, f, m.Box, role)
	return c.reassign(m.Box)
}

func (c *Claim) consumed(box string) bool {
	_, ok := c.Op.Journal.Fences[box]
	return ok
}

// reassign passes the regional chores that box owned to each chore's own
// region. Its park-local chores stay its own: only a proof that its disks are
// gone completes those.
func (c *Claim) reassign(box string) error {
	for i, o := range c.Obligations {
		if o.Owner != ownerBox+box || o.Kind == ParkLocal {
			continue
		}
		if o.Region == "" {
			return wrong("chore %s of %s has no region to pass to", o.ID, box)
		}
		c.Obligations[i].Owner = ownerRegion + o.Region
	}
	return nil
}

// FenceSource relies on evidence that the box a relocation or a delete takes
// the host from is gone. Where it still executed, the relocation becomes a
// failover in place, and a release that it had journaled stands; the delete goes
// on to parking. Later it is only lost.
func FenceSource(op string, source Gone, now time.Time) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && c.Op.Kind == Parking && c.IsLost(source.Evidence.Box()) {
			return ErrAlreadyRecorded
		}
		if err := c.runs(op, Relocating, Deleting); err != nil {
			return err
		}
		box := c.Op.Intent.Source.Box
		switch {
		case c.consumed(box) && source.Evidence.Box() == box:
			return ErrAlreadyRecorded
		case box == c.Op.Target().Box:
			return wrong("%s is the target now: replace it", box)
		}
		if err := c.consume(source, c.Op.Intent.Source, roleSource); err != nil {
			return err
		}
		switch {
		case c.Op.Kind == Deleting:
			c.park()
		case c.Op.sourceExecutes():
			c.failOver(now)
		}
		return nil
	}
}

// failOver makes a failover of a drain whose source is gone.
func (c *Claim) failOver(now time.Time) {
	j := &c.Op.Journal
	j.Reason = Failover
	c.leave(c.Op.Intent.Source.Box)
	c.vacate()
	c.cure(ReleaseOverdue)
	if c.Op.Phase == Releasing {
		c.Op.enter(Pinning, now)
	}
}

// FenceExhaustedTarget relies on evidence that the target is gone where no
// replacement is left: the operation is stuck at once.
func FenceExhaustedTarget(op string, target Gone, now time.Time) Transition {
	return func(c *Claim) error {
		return c.fenceIntoStuck(op, target, ReplacementsUsedUp, now)
	}
}

// FenceTargetWithoutSpare relies on evidence that the target is gone where no
// box was found to take its place for [SpareDeadline]: the operation is stuck.
func FenceTargetWithoutSpare(op string, target Gone, now time.Time) Transition {
	return func(c *Claim) error {
		return c.fenceIntoStuck(op, target, NoSpare, now)
	}
}

// fenceIntoStuck changes nothing of a source that executes. Otherwise nobody
// executes any more; what was prepared stays as long as nobody opened it. No fact
// cures a pin that is not covered, so that reason stays.
func (c *Claim) fenceIntoStuck(op string, target Gone, why StuckReason, now time.Time) error {
	if err := c.runs(op, Relocating); err != nil {
		return err
	}
	t := c.Op.Target()
	switch {
	case c.consumed(t.Box) && target.Evidence.Box() == t.Box:
		return ErrAlreadyRecorded
	case why == ReplacementsUsedUp && c.mayReplace():
		return wrong("%d of %d replacements are used", c.Op.Journal.Replacements, c.replacements())
	case why == NoSpare && !c.mayReplace():
		return wrong("no replacement is left: that is %s", ReplacementsUsedUp)
	case why == NoSpare && now.Before(target.Evidence.ObservedAt().Add(SpareDeadline)):
		return wrong("%s was seen to be gone at %s: a spare is sought for %s", t.Box, target.Evidence.ObservedAt(), SpareDeadline)
	}
	if err := c.consume(target, t, roleTarget); err != nil {
		return err
	}
	if s := c.Op.Journal.Stuck; s == nil || s.Reason != PinUncovered {
		c.stick(why, now)
	}
	if c.Op.sourceExecutes() {
		return nil
	}
	c.uninstall()
	c.vacate()
	c.Op.enter(Pinning, now)
	return nil
}
