package hostclaim

import (
	"fmt"
	"time"

	"github.com/carlosframework/regionha/resolution"
	"github.com/carlosframework/regionha/stopevidence"
)

// StuckReason says why an operation waits for an operator.
type StuckReason string

// The reasons of a stuck operation.
const (
	ReplacementsUsedUp StuckReason = "replacements used up" // the target must be left, and no other may be named
	NoSpare            StuckReason = "no spare"             // the target must be left, and no other was found
	ReleaseOverdue     StuckReason = "release overdue"      // a live box was asked to give up the host and did not
	InstallOverdue     StuckReason = "install overdue"      // a target made no progress in installing or installed
	PinUncovered       StuckReason = "pin uncovered"        // the store does not hold what the evidence says was written
	ReceiptLost        StuckReason = "install receipt lost" // of a target that has written already
)

var stuckReasons = []StuckReason{ReplacementsUsedUp, NoSpare, ReleaseOverdue, InstallOverdue, PinUncovered, ReceiptLost}

// Stuck says that an operation waits for an operator.
type Stuck struct {
	Reason StuckReason `json:"reason"`
	Gen    uint64      `json:"gen"` // of the write that said so
	Since  time.Time   `json:"since"`
}

// MarkStuck hands an operation that cannot go on by itself to an operator. It
// ends the attempts of a target, so that one which is alive can release, and
// drops a release that led nowhere, so that its box can cite its receipt again.
//
// Facts stay legal: evidence of every kind, a release, the end of a session. A
// source that executes in starting may be admitted, and the drain be cancelled.
// Nothing else is legal until [Resolve].
func MarkStuck(op string, why StuckReason, now time.Time) Transition {
	return func(c *Claim) error {
		if err := c.runs(op, Relocating, Deleting); err != nil {
			return err
		}
		if s := c.Op.Journal.Stuck; s != nil {
			if s.Reason == why {
				return ErrAlreadyRecorded
			}
			return wrong("%s", c.Op.where())
		}
		switch {
		case c.Op.Phase == Installed && c.Op.Journal.LocalInstall != nil:
			return wrong("%s can be probed: nothing is missing", c.Op.Exec)
		case c.Op.Phase == Probing && c.probed(c.Op.Journal.Probe):
			return wrong("session %d of %s has passed its probe: nothing is missing", c.Holder.Session, c.Op.Exec)
		}
		if err := c.checkStuck(why, now); err != nil {
			return err
		}
		if c.Op.Phase == Probing {
			c.failProbe(now)
		}
		if why == ReleaseOverdue {
			c.Op.Journal.Release = nil // its receipt was of no use
		}
		c.stick(why, now)
		return nil
	}
}

func (c *Claim) stick(why StuckReason, now time.Time) {
	c.Op.Journal.Stuck = &Stuck{Reason: why, Gen: c.Gen, Since: now.UTC()}
}

// checkStuck holds a reason to what the claim shows of it.
func (c *Claim) checkStuck(why StuckReason, now time.Time) error {
	j := c.Op.Journal
	due, failing := c.targetDue()
	switch why {
	case ReplacementsUsedUp:
		if c.mayReplace() {
			return wrong("%d of %d replacements are used", j.Replacements, c.replacements())
		}
		return after(failing && c.Op.Kind == Relocating, why, due, now)
	case NoSpare:
		return after(failing && c.Op.Kind == Relocating, why, due.Add(SpareDeadline), now)
	case ReleaseOverdue:
		return after(c.releasing(), why, j.PhaseSince.Add(ReleaseDeadline), now)
	case InstallOverdue:
		due, installing := c.installDue()
		return after(installing, why, due, now)
	case PinUncovered:
		return after(c.Op.Phase == Pinning && j.Pin == nil, why, c.Op.PinFrom(), now)
	case ReceiptLost:
		return after(c.Op.Phase == Probing && c.PreparedOpened(), why, now, now)
	}
	return wrong("unknown reason %q", why)
}

func after(applies bool, why StuckReason, due, now time.Time) error {
	if !applies {
		return wrong("%q does not apply here", why)
	}
	if now.Before(due) {
		return wrong("%q applies from %s on", why, due)
	}
	return nil
}

// cure ends a stuck operation whose reason a fact has taken away.
func (c *Claim) cure(why StuckReason) {
	if s := c.Op.Journal.Stuck; s != nil && s.Reason == why {
		c.Op.Journal.Stuck = nil
	}
}

// cureTarget takes away what was wrong with a target that is replaced.
func (c *Claim) cureTarget() {
	for _, why := range []StuckReason{ReplacementsUsedUp, NoSpare, InstallOverdue, ReceiptLost} {
		c.cure(why)
	}
	if c.Op.Phase == ProbeFailed {
		c.cure(ReleaseOverdue)
	}
}

// Proof is what shows that the current target of a stuck operation, which has
// written, writes no more. One of the two is enough.
type Proof struct {
	Gone    Gone
	Receipt stopevidence.Receipt
}

// Resolve goes on with a stuck operation as an operator decided, with the box
// that the resolution names: a spare, the source, or the same target again. One
// more replacement is granted. A source that still executes and is named serves
// on, under a new stamp. What was pinned and prepared is dropped: the data is
// chosen afresh, from the newest release or what the writers left. Once the
// current target opened the prepared generation it is left only with proof.
func Resolve(op string, r resolution.Resolution, proof Proof, now time.Time) Transition {
	return func(c *Claim) error {
		if c.ended(op, Resolved) {
			return ErrAlreadyRecorded
		}
		if err := c.runs(op, Relocating, Deleting); err != nil {
			return err
		}
		j := &c.Op.Journal
		if contains(j.Resolutions, r.Ref().Key) {
			return ErrAlreadyRecorded
		}
		if err := c.checkResolution(r); err != nil {
			return err
		}
		why := j.Stuck.Reason
		j.Resolutions = append(j.Resolutions, r.Ref().Key)
		j.Stuck, j.AcceptEmpty = nil, j.AcceptEmpty || r.AcceptEmpty()
		j.Granted++
		next := Member{Box: r.Box(), Enrollment: r.Enrollment()}
		switch {
		case c.Op.Kind == Deleting:
			return c.goOnDeleting(next, now)
		case c.Op.sourceExecutes():
			return c.goOnReleasing(next, now)
		case why == PinUncovered:
			j.Release, c.Holder.Ended = nil, nil // nothing that they vouch for is there
		}
		return c.goOnWith(next, proof, now)
	}
}

func (c *Claim) checkResolution(r resolution.Resolution) error {
	s := c.Op.Journal.Stuck
	switch {
	case r.Host() != c.Host || r.Op() != c.Op.ID:
		return wrong("the resolution is of %q %q, not %q %q", r.Host(), r.Op(), c.Host, c.Op.ID)
	case s == nil:
		return wrong("%s is not stuck", c.Op.where())
	case r.Gen() < s.Gen || r.Gen() >= c.Gen:
		return wrong("the resolution was made at gen %d, stuck since gen %d", r.Gen(), s.Gen)
	}
	return c.mayTake(r.Box())
}

func (c *Claim) goOnDeleting(next Member, now time.Time) error {
	if next != c.Op.Intent.Source {
		return wrong("%s is deleted on %s: no other box goes on with it", c.Host, c.Op.Intent.Source.Box)
	}
	c.Op.enter("", now)
	return nil
}

// goOnReleasing is about a source that executes: it serves on, or another
// target is named and it is asked again.
func (c *Claim) goOnReleasing(next Member, now time.Time) error {
	if next == c.Op.Intent.Source {
		c.execute(next)
		c.finish(Resolved)
		return nil
	}
	if err := c.rename(next, now); err != nil {
		return err
	}
	c.Op.enter(c.Op.Phase, now)
	return nil
}

// goOnWith begins a nested relocation to next.
func (c *Claim) goOnWith(next Member, proof Proof, now time.Time) error {
	if c.PreparedOpened() {
		if err := c.prove(proof); err != nil {
			return err
		}
		if err := c.mayTake(next.Box); err != nil {
			return err
		}
	}
	if err := c.rename(next, now); err != nil {
		return err
	}
	if c.Op.Phase == Starting {
		return nil
	}
	j := &c.Op.Journal
	c.uninstall()
	if j.Prepared != "" {
		j.Abandoned = add(j.Abandoned, j.Prepared)
	}
	j.Pin, j.Prepared, j.PreparedStamp, j.PreparedAuthority = nil, "", 0, nil
	c.vacate()
	c.Op.enter(Pinning, now)
	return nil
}

// prove holds the current target to its release or to its end.
func (c *Claim) prove(p Proof) error {
	if p.Gone.Evidence.Box() != "" {
		return c.consume(p.Gone, c.Op.Target(), roleTarget)
	}
	if err := c.checkReceipt(p.Receipt); err != nil {
		return fmt.Errorf("%s opened %q and is left only with its receipt or evidence that it is gone: %w",
			c.Op.Target().Box, c.Op.Journal.Prepared, err)
	}
	return nil
}

// rename names the box that an operator chose, which may be one that takes part
// already.
func (c *Claim) rename(next Member, now time.Time) error {
	if err := next.check("box"); err != nil {
		return wrong("%v", err)
	}
	old, acknowledged := c.Op.Target().Box, c.Op.Journal.Acks[next.Box] != ""
	if known := c.Op.member(next.Box); known.Box == next.Box && known != next && (acknowledged || next.Box != old) {
		return wrong("%s is enrolled as %s in this operation, not %s", next.Box, known.Enrollment, next.Enrollment)
	}
	if next.Box == old {
		c.Op.Journal.Target, c.Op.Journal.TargetSince = next, now.UTC()
		return nil
	}
	c.name(next, now)
	if !c.IsLost(old) {
		c.oweLocalOf(old)
	}
	return nil
}
