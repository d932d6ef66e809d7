package hostclaim

import (
	"fmt"
	"time"
)

// MaxReplacements is how many times one operation names another target, beyond
// what operators grant.
const MaxReplacements = 2

// ReplaceTarget relies on evidence that the target is gone and goes on with
// next, as far as what is there allows. It is a fact: it stays legal while the
// operation is stuck.
//
//   - Before anything was handed over, the phase stays; next acknowledges before
//     it is left.
//   - While the prepared generation is built, next builds a fresh one, prepared,
//     from the same pin.
//   - Once its build is accepted, and as long as nobody opened it, next makes its
//     own local install of the same generation.
//   - Once it was opened, the data is chosen afresh from what the dead target
//     wrote.
//
// prepared is used in the second case only.
func ReplaceTarget(op string, target Gone, next Member, prepared string, now time.Time) Transition {
	return func(c *Claim) error {
		if err := c.runs(op, Relocating); err != nil {
			return err
		}
		t := c.Op.Target()
		if next == t && c.consumed(target.Evidence.Box()) {
			return ErrAlreadyRecorded
		}
		if err := c.mayName(next); err != nil {
			return err
		}
		if err := c.consume(target, t, roleTarget); err != nil {
			return err
		}
		c.cureTarget()
		c.name(next, now)
		return c.resume(prepared, now)
	}
}

// AbandonTarget goes on with next where the target is alive, makes no progress
// and never opened the prepared generation, as the claim itself proves: it
// resumes as [ReplaceTarget] does. The old target is not named again in this
// operation, and puts away what it holds.
func AbandonTarget(op string, next Member, prepared string, now time.Time) Transition {
	return func(c *Claim) error {
		if err := c.runs(op, Relocating); err != nil {
			return err
		}
		if c.abandonedFor(next) {
			return ErrAlreadyRecorded
		}
		if err := c.notStuck(); err != nil {
			return err
		}
		old := c.Op.Target().Box
		switch due, ok := c.targetDue(); {
		case c.PreparedOpened():
			return wrong("%s opened %q: it is left only by its release", old, c.Op.Journal.Prepared)
		case c.Op.Exec == old && c.Holder.Stamp <= c.Holder.Session:
			return wrong("%s was admitted as session %d", old, c.Holder.Session)
		case old == "" || !ok:
			return wrong("%q owes no progress in %s", old, c.Op.where())
		case now.Before(due):
			return wrong("%s may make progress until %s", old, due)
		}
		if err := c.mayName(next); err != nil {
			return err
		}
		c.name(next, now)
		if err := c.resume(prepared, now); err != nil {
			return err
		}
		c.oweLocalOf(old)
		return nil
	}
}

// abandonedFor reports whether next took the place of a live target.
func (c *Claim) abandonedFor(next Member) bool {
	left := c.Op.Journal.Replaced
	return len(left) > 0 && next == c.Op.Target() && !c.consumed(left[len(left)-1])
}

// NameTarget names the target of an operation that has none, since it came from
// a move whose region lost its only box.
func NameTarget(op string, next Member, now time.Time) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && next.Box != "" && next == c.Op.Target() {
			return ErrAlreadyRecorded
		}
		if err := c.at(op, Pinning); err != nil {
			return err
		}
		if t := c.Op.Target(); t.Box != "" {
			return wrong("%s is the target: replace it", t.Box)
		}
		if err := c.mayName(next); err != nil {
			return err
		}
		c.name(next, now)
		return nil
	}
}

// mayName refuses a box that must not become the target. Whoever chooses one
// leaves out the same boxes.
func (c *Claim) mayName(next Member) error {
	o := c.Op
	if err := next.check("next"); err != nil {
		return wrong("%v", err)
	}
	switch {
	case !c.mayReplace():
		return wrong("%d of %d replacements are used", o.Journal.Replacements, c.replacements())
	case next.Box == o.Intent.Source.Box:
		return wrong("%s is the source", next.Box)
	case next.Box == o.Target().Box:
		return wrong("%s is the target already", next.Box)
	case contains(o.Journal.Replaced, next.Box):
		return wrong("%s was replaced in this operation", next.Box)
	}
	return c.mayTake(next.Box)
}

// mayTake refuses a box that can take the host in no operation.
func (c *Claim) mayTake(box string) error {
	switch {
	case c.IsLost(box):
		return wrong("%s is lost for this host", box)
	case c.Owes(box, ParkLocal):
		return fmt.Errorf("%w: %s still owes this host a %s", ErrPendingChore, box, ParkLocal)
	}
	return nil
}

func (c *Claim) mayReplace() bool { return c.Op.Journal.Replacements < c.replacements() }

func (c *Claim) replacements() int { return MaxReplacements + c.Op.Journal.Granted }

// name makes next the target in the place of the box that was, if there was one.
func (c *Claim) name(next Member, now time.Time) {
	j, old := &c.Op.Journal, c.Op.Target().Box
	if old != "" {
		j.Replacements++
		j.Replaced = add(j.Replaced, old)
		c.leave(old)
	}
	j.Target, j.TargetSince = next, now.UTC()
	c.Op.Participants = add(c.Op.Participants, next.Box)
}

// resume goes on with a target that was just named, as far as what is there
// allows.
func (c *Claim) resume(prepared string, now time.Time) error {
	j := &c.Op.Journal
	switch {
	case c.PreparedOpened():
		c.uninstall()
		c.vacate()
		c.Op.enter(Pinning, now)
	case j.PreparedAuthority != nil:
		c.handOver(Installed, now)
	case j.Prepared != "":
		if err := c.checkFresh(prepared); err != nil {
			return err
		}
		j.Abandoned = add(j.Abandoned, j.Prepared)
		c.install(prepared, now)
	}
	return nil
}

// uninstall forgets the installation of a box that does not execute any more,
// with what it was built from once it was written to. What that box released
// itself stands.
func (c *Claim) uninstall() {
	j := &c.Op.Journal
	j.InstallStamp, j.LocalInstall = 0, nil
	j.ProbeAttempts, j.ProbeAdmission, j.Probe = 0, 0, nil
	if !c.PreparedOpened() {
		return
	}
	j.Pin, j.Prepared, j.PreparedStamp, j.PreparedAuthority = nil, "", 0, nil
	if j.Release != nil && !c.ofCurrentSession(*j.Release) {
		j.Release = nil
	}
}
