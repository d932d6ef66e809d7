package hostclaim

import (
	"time"

	"github.com/carlosframework/regionha/stopevidence"
)

// ToReleasing asks the source of a drain to give the host up. Everyone has
// acknowledged, so somebody stands ready to take it.
func ToReleasing(op string, now time.Time) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && c.Op.Phase == Releasing {
			return ErrAlreadyRecorded
		}
		if err := c.at(op, Starting); err != nil {
			return err
		}
		if !c.Op.sourceExecutes() {
			return wrong("a %s has no source that could release: executor %q", c.Op.Reason(), c.Op.Exec)
		}
		if err := c.acknowledged(); err != nil {
			return err
		}
		c.Op.enter(Releasing, now)
		return nil
	}
}

// JournalRelease records what the executor gave up: its current session has
// ended at r.Final, and the stop receipt lies in the store. It belongs to its
// phase. It is a fact: it stays legal while the operation is stuck.
func JournalRelease(op string, r Release) Transition {
	return func(c *Claim) error {
		if err := c.runs(op, Relocating, Deleting); err != nil {
			return err
		}
		h := c.Holder
		r.Generation = h.Generation
		was := c.Op.Journal.Release
		switch {
		case was != nil && *was == r:
			return ErrAlreadyRecorded
		case !c.releasing():
			return wrong("nothing is released in %s", c.Op.where())
		case was != nil:
			return wrong("another release is journaled: %s", was.Receipt)
		}
		if err := c.checkRelease(r); err != nil {
			return err
		}
		c.Op.Journal.Release = &r
		if r.Session > 0 {
			h.Ended = &SessionEnd{Box: r.Box, Session: r.Session, Final: r.Final}
		}
		c.cure(ReleaseOverdue)
		return nil
	}
}

// releasing reports whether the executor is to give the host up: a source that
// was asked to, a target with a session of its own whose probe failed, the box
// of a host that is deleted.
func (c *Claim) releasing() bool {
	switch {
	case c.Op.Kind == Deleting, c.Op.Phase == Releasing:
		return true
	default:
		return c.Op.Phase == ProbeFailed && c.PreparedOpened()
	}
}

func (c *Claim) checkRelease(r Release) error {
	h, want := c.Holder, c.Op.member(c.Op.Exec)
	switch {
	case (Member{r.Box, r.Enrollment}) != want:
		return wrong("the release is by %s as %s, the executor is %s as %s", r.Box, r.Enrollment, want.Box, want.Enrollment)
	case r.Session != h.Session || (r.Session > 0 && r.Box != h.WriterBox):
		return wrong("the release is of session %d on %s, the current one is %d on %s", r.Session, r.Box, h.Session, h.WriterBox)
	case r.Receipt == "" || r.ReceiptSHA256 == "":
		return wrong("the release names no stop receipt")
	case r.Session == 0 && r.Final != Position{}:
		return wrong("no writer was ever admitted: it cannot end at %s", r.Final)
	case h.Ended != nil && h.Ended.Final != r.Final:
		return wrong("session %d ended at %s, not %s", r.Session, h.Ended.Final, r.Final)
	}
	return c.checkFinal(r.Final)
}

// ofCurrentSession reports whether r is of the newest writer. A box that
// released a host without any writer released session 0.
func (c *Claim) ofCurrentSession(r Release) bool {
	h := c.Holder
	return r.Session == h.Session && r.Generation == h.Generation && (r.Session == 0 || r.Box == h.WriterBox)
}

// PinAfterRelease takes the host from the executor that released it, on the
// verified receipt of that release. From probe-failed it names the next target,
// which acknowledges before it is handed anything; in releasing next is zero.
func PinAfterRelease(op string, receipt stopevidence.Receipt, next Member, now time.Time) Transition {
	return func(c *Claim) error {
		if c.pinnedOn(op, receipt, next) {
			return ErrAlreadyRecorded
		}
		if err := c.at(op, Releasing, ProbeFailed); err != nil {
			return err
		}
		if err := c.checkReceipt(receipt); err != nil {
			return err
		}
		if c.Op.Phase == Releasing {
			if next != (Member{}) {
				return wrong("in %s the target stays: %s is not named", Releasing, next.Box)
			}
			if err := c.acknowledged(); err != nil {
				return err
			}
		} else {
			if err := c.mayName(next); err != nil {
				return err
			}
			c.name(next, now)
			c.uninstall()
		}
		c.vacate()
		c.Op.enter(Pinning, now)
		return nil
	}
}

// pinnedOn reports whether the operation went on to pinning on this very receipt.
func (c *Claim) pinnedOn(op string, s stopevidence.Receipt, next Member) bool {
	r := c.Op.Journal.Release
	return c.Op.ID == op && c.Op.Phase == Pinning && r != nil && (next == Member{} || next == c.Op.Target()) &&
		s.Ref() == stopevidence.Ref{Key: r.Receipt, SHA256: r.ReceiptSHA256}
}

// checkReceipt holds a stop receipt to the release that the executor journaled
// of its current session.
func (c *Claim) checkReceipt(s stopevidence.Receipt) error {
	h, r := c.Holder, c.Op.Journal.Release
	switch {
	case r == nil || r.Box != c.Op.Exec || !c.ofCurrentSession(*r):
		return wrong("%s has not released session %d of %q", c.Op.Exec, h.Session, h.Generation)
	case s.Ref() != stopevidence.Ref{Key: r.Receipt, SHA256: r.ReceiptSHA256}:
		return wrong("the receipt is %s, the release cites %s", s.Ref().Key, r.Receipt)
	case s.Host() != c.Host || s.Op() != c.Op.ID || s.Obligation() != stopevidence.Release:
		return wrong("the receipt is of %s %s for %s, not of %s %s for %s",
			s.Host(), s.Op(), s.Obligation(), c.Host, c.Op.ID, stopevidence.Release)
	case s.Box() != r.Box || s.Enrollment() != r.Enrollment:
		return wrong("the receipt is of %s as %s, not %s as %s", s.Box(), s.Enrollment(), r.Box, r.Enrollment)
	case s.Incarnation() != h.Incarnation || s.Stamp() != h.Stamp || s.Session() != h.Session:
		return wrong("the receipt is of incarnation %s stamp %d session %d, not %s %d %d",
			s.Incarnation(), s.Stamp(), s.Session(), h.Incarnation, h.Stamp, h.Session)
	}
	return nil
}
