package hostclaim

import (
	"fmt"
	"slices"
	"time"
)

// Relocation says what a relocation sets out to do.
type Relocation struct {
	Op                string // a fresh id
	By                string
	Now               time.Time
	Source, Target    Member
	DirectoryRevision uint64        // of the roster that both were checked against
	PinDelay          time.Duration // how long after a fence a pin is taken; bounds loss, not safety
}

// StartRelocation begins to move a serving host off a live box, for [Drain] or
// [Rebalance]. The source executes until it has released.
func StartRelocation(r Relocation, why Reason) Transition {
	return func(c *Claim) error {
		if c.started(r, why) {
			return ErrAlreadyRecorded
		}
		if err := c.mayRelocate(r); err != nil {
			return err
		}
		switch {
		case why != Drain && why != Rebalance:
			return wrong("reason is %q, want %q or %q: a failover needs evidence", why, Drain, Rebalance)
		case c.Owes(r.Source.Box, ParkLocal):
			return fmt.Errorf("%w: source %s still owes this host a %s", ErrPendingChore, r.Source.Box, ParkLocal)
		}
		c.relocate(r, why)
		c.Op.Participants = []string{r.Source.Box, r.Target.Box}
		return nil
	}
}

// StartFailover begins to move a serving host off a box that is proven gone.
// Nobody executes until the target is handed the installation.
func StartFailover(r Relocation, source Gone) Transition {
	return func(c *Claim) error {
		if c.started(r, Failover) {
			return ErrAlreadyRecorded
		}
		if err := c.mayRelocate(r); err != nil {
			return err
		}
		c.relocate(r, Failover)
		c.Op.Participants = []string{r.Target.Box}
		c.vacate()
		return c.consume(source, r.Source, roleSource)
	}
}

// started reports whether this very relocation runs.
func (c *Claim) started(r Relocation, why Reason) bool {
	i := c.Op.Intent
	return c.Op.Kind == Relocating && c.Op.ID == r.Op && i.Reason == why && i.Source == r.Source && i.Target == r.Target
}

func (c *Claim) mayRelocate(r Relocation) error {
	switch {
	case c.Op.Kind != Serving:
		return wrong("a host that is %s cannot be relocated", c.Op.Kind)
	case c.Op.ID == r.Op:
		return wrong("operation %s is over", r.Op)
	case c.Op.Exec != r.Source.Box:
		return wrong("%s is not the executor, %s is", r.Source.Box, c.Op.Exec)
	case c.Op.executor() != r.Source:
		return wrong("%s executes as %s, not %s", r.Source.Box, c.Op.ExecEnrollment, r.Source.Enrollment)
	case r.Source.Box == r.Target.Box:
		return wrong("source and target are both %s", r.Source.Box)
	case r.PinDelay < 0:
		return wrong("pin delay is %s, want 0 or more", r.PinDelay)
	case c.owesReplica():
		return fmt.Errorf("%w: region %s still owes this host a %s", ErrPendingChore, c.Holder.Region, ParkReplica)
	}
	return c.mayTake(r.Target.Box)
}

// owesReplica reports whether the very place that the host would be installed
// from waits to be put away.
func (c *Claim) owesReplica() bool {
	return slices.ContainsFunc(c.Obligations, func(o Obligation) bool {
		return o.Kind == ParkReplica && o.Region == c.Holder.Region && o.Incarnation == c.Holder.Incarnation
	})
}

func (c *Claim) relocate(r Relocation, why Reason) {
	h := c.Holder
	c.Op = Op{
		Kind: Relocating, ID: r.Op, By: r.By, StartedAt: r.Now.UTC(), Exec: c.Op.Exec, ExecEnrollment: c.Op.ExecEnrollment,
		Intent: Intent{
			Region: h.Region, Reason: why, Source: r.Source, Target: r.Target,
			StampFrom: h.Stamp, GenerationFrom: h.Generation,
			DirectoryRevision: r.DirectoryRevision, PinDelay: r.PinDelay,
		},
		Journal: Journal{TargetSince: r.Now.UTC()},
	}
	c.Op.enter(Starting, r.Now)
}

// Acknowledge records that a participant is ready to take part under its
// enrollment. It is never rewritten.
func Acknowledge(op, box, enrollment string) Transition {
	return func(c *Claim) error {
		if err := c.runs(op, Relocating); err != nil {
			return err
		}
		if !c.Op.Participates(box) {
			return wrong("%s takes no part in %s", box, op)
		}
		if got, ok := c.Op.Journal.Acks[box]; ok {
			if got == enrollment {
				return ErrAlreadyRecorded
			}
			return wrong("%s acknowledged as %s, not %s", box, got, enrollment)
		}
		if want := c.Op.member(box).Enrollment; enrollment != want {
			return wrong("%s is enrolled as %s in this operation, not %s", box, want, enrollment)
		}
		if err := c.notStuck(); err != nil {
			return err
		}
		if c.Op.Journal.Acks == nil {
			c.Op.Journal.Acks = map[string]string{}
		}
		c.Op.Journal.Acks[box] = enrollment
		return nil
	}
}

// CancelDrain gives a drain up that cannot begin, while the source executes: an
// acknowledgement was missing for [DrainDeadline] after its target was named, or
// the operation is stuck. The source serves on under its stamp.
func CancelDrain(op string, now time.Time) Transition {
	return func(c *Claim) error {
		if c.ended(op, Cancelled) {
			return ErrAlreadyRecorded
		}
		if err := c.runs(op, Relocating); err != nil {
			return err
		}
		from := c.Op.Journal.TargetSince.Add(DrainDeadline)
		late := !c.Op.Acknowledged() && !now.Before(from)
		switch {
		case c.Op.Phase != Starting || !c.Op.sourceExecutes():
			return wrong("only a drain that is starting is cancelled, not %s", c.Op.where())
		case !late && c.Op.Journal.Stuck == nil:
			return wrong("acknowledged by all: %t, waits until %s: it may still begin", c.Op.Acknowledged(), from)
		}
		c.finish(Cancelled)
		return nil
	}
}

// acknowledged refuses to go on without every current participant.
func (c *Claim) acknowledged() error {
	if !c.Op.Acknowledged() {
		return wrong("not every participant of %v acknowledged", c.Op.Participants)
	}
	return nil
}

// leave takes a box out of the operation. Its acknowledgement goes with it.
func (c *Claim) leave(box string) {
	c.Op.Participants = without(c.Op.Participants, func(b string) bool { return b == box })
	delete(c.Op.Journal.Acks, box)
	if len(c.Op.Journal.Acks) == 0 {
		c.Op.Journal.Acks = nil
	}
}

// finish ends an operation: its executor serves. Every other box that holds
// local state, and every generation that was prepared and never opened, waits
// to be put away.
func (c *Claim) finish(how Outcome) {
	c.oweLocal()
	for _, generation := range c.Op.Journal.Abandoned {
		c.oweGeneration(generation)
	}
	c.serve(how)
}

// ended reports whether op is the relocation that left the host serving, and
// ended so.
func (c *Claim) ended(op string, how Outcome) bool {
	return c.Op.Kind == Serving && c.Op.ID == op && c.Op.Outcome == how
}

// runs holds a transition to its operation. A fact needs no more: it stays legal
// while the operation is stuck.
func (c *Claim) runs(op string, kinds ...Kind) error {
	if c.Op.ID != op {
		return stale(c, op)
	}
	if !slices.Contains(kinds, c.Op.Kind) {
		return wrong("a host that is %s has no such step: want %v", c.Op.Kind, kinds)
	}
	return nil
}

// at holds a step to its operation and phase, and to one that is not stuck.
func (c *Claim) at(op string, phases ...Phase) error {
	if err := c.runs(op, Relocating); err != nil {
		return err
	}
	if err := c.notStuck(); err != nil {
		return err
	}
	if !slices.Contains(phases, c.Op.Phase) {
		return wrong("phase is %q, want %q", c.Op.Phase, phases)
	}
	return nil
}

func (c *Claim) notStuck() error {
	if c.Op.Journal.Stuck != nil {
		return wrong("%s", c.Op.where())
	}
	return nil
}
