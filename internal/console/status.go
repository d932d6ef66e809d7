package console

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/roster"
)

// Status says what is going on with a host: what is being done, what that waits
// for, and what a person should do. Waits and Do may be empty.
type Status struct {
	Doing string `json:"doing"`
	Waits string `json:"waits,omitempty"`
	Do    string `json:"do,omitempty"`
}

// Sentence is the status in one sentence.
func (s Status) Sentence() string {
	text := s.Doing
	if s.Waits != "" {
		text += "; waiting for " + s.Waits
	}
	if s.Do != "" {
		text += "; " + s.Do
	}
	return text
}

// String is Sentence.
func (s Status) String() string { return s.Sentence() }

// known is what the deployment's boxes add to a claim. The zero value knows
// nothing, and then the claim alone speaks.
type known struct {
	box      func(ref string) Box
	eligible func() (none string) // why no box may be given the host now; "" if one may
}

func (k known) look(ref string) Box {
	if k.box == nil {
		return Box{Ref: ref, State: roster.Active}
	}
	return k.box(ref)
}

// describe is pure: it says what claim and boxes together mean at now.
func describe(claim *hostclaim.Claim, k known, now time.Time) Status {
	switch claim.Op.Kind {
	case hostclaim.Free:
		return describeFree(claim)
	case hostclaim.Creating:
		return describeCreating(claim, k, now)
	case hostclaim.Serving:
		return describeServing(claim, k)
	case hostclaim.Relocating:
		return describeRelocating(claim, k, now)
	}
	return Status{Doing: string(claim.Op.Kind)}
}

func describeFree(claim *hostclaim.Claim) Status {
	s := Status{Doing: "not there: nobody runs it", Do: "create it with: console host create " + claim.Host}
	if n := len(claim.CancelledCreates); n > 0 {
		last := claim.CancelledCreates[n-1]
		s.Doing = "not there: its last create was cancelled, " + last.Reason
	}
	return s
}

func describeCreating(claim *hostclaim.Claim, k known, now time.Time) Status {
	box := claim.Op.Intent.Selected.Box
	s := Status{Doing: fmt.Sprintf("being created on %s (%s)", box, begun(claim, now)), Waits: box + " to take it"}
	switch b := k.look(box); {
	case overdue(claim, now):
		s.Do = "it is overdue: create it again, which cancels this one"
	case !b.TerminatedAt.IsZero():
		s.Do = box + " is gone: create it again after " + clock(claim.Op.StartedAt.Add(CreateDeadline))
	case b.silent:
		s.Do = "look at the agent on " + box + ", " + b.Status
	}
	return s
}

func describeServing(claim *hostclaim.Claim, k known) Status {
	h, exec := claim.Holder, claim.Op.Exec
	b := k.look(exec)
	switch {
	case !b.TerminatedAt.IsZero():
		return describeDown(claim, k, fmt.Sprintf("down: the machine of %s was terminated at %s", exec, clock(b.TerminatedAt)))
	case !b.DeclaredAt.IsZero():
		return describeDown(claim, k, fmt.Sprintf("on %s, which was declared lost at %s", exec, clock(b.DeclaredAt)))
	case b.State == roster.Quarantined:
		return Status{
			Doing: "on " + exec + ", which takes no part and is not declared lost yet",
			Waits: "that declaration",
			Do:    "run console box declare-lost " + exec + " again",
		}
	case b.silent:
		return Status{
			Doing: fmt.Sprintf("on %s, which is %s and may still run it", exec, b.Status),
			Waits: "proof that " + exec + " is gone, since a silent machine may still write",
			Do: fmt.Sprintf("look at %s (%s): start its agent, or terminate the instance if it is lost; if that cannot be done, see console box declare-lost --help",
				exec, b.Instance),
		}
	case h.Session == 0:
		return Status{Doing: "created on " + exec, Waits: exec + " to start its app for the first time"}
	case h.Ended != nil:
		return Status{Doing: "stopped cleanly on " + exec, Waits: exec + " to start it again"}
	case b.Draining:
		return describeLeaving(claim, k)
	case !published(claim):
		return Status{Doing: "starting on " + exec, Waits: "its app to answer", Do: "if it takes long, look at its log on " + exec}
	}
	return Status{Doing: "serving on " + exec}
}

// describeLeaving: the box drains, and no move has begun.
func describeLeaving(claim *hostclaim.Claim, k known) Status {
	exec := claim.Op.Exec
	s := Status{Doing: "serving on " + exec + ", which drains", Waits: "a worker to move it"}
	if k.eligible != nil {
		if none := k.eligible(); none != "" {
			s.Waits = "a box that may take it: " + none
			s.Do = "start or enroll another box of region " + claim.Holder.Region
		}
	}
	return s
}

// describeDown: the box is gone, as doing says, and no failover has begun.
func describeDown(claim *hostclaim.Claim, k known, doing string) Status {
	s := Status{
		Doing: doing,
		Waits: "a worker of region " + claim.Holder.Region + " to start the failover",
		Do:    "if it does not begin within a minute, see that a worker runs there",
	}
	if k.eligible != nil {
		if none := k.eligible(); none != "" {
			s.Waits = "a box that may take it: " + none
			s.Do = "start or enroll another box of region " + claim.Holder.Region
		}
	}
	return s
}

func describeRelocating(claim *hostclaim.Claim, k known, now time.Time) Status {
	op := claim.Op
	source, target := op.Intent.Source.Box, cmp.Or(op.Target().Box, "a box that is not chosen yet")
	s := Status{
		Doing: fmt.Sprintf("%s from %s to %s (%s, %s)", reasonText(op.Reason()), source, target, phaseText(op, now), begun(claim, now)),
		Waits: waitsFor(op, now),
	}
	for _, box := range []string{op.Exec, op.Target().Box} { // nobody else is asked for anything
		if box == "" || box == hostclaim.None {
			continue
		}
		if b := k.look(box); b.silent || !b.TerminatedAt.IsZero() || b.State != roster.Active {
			s.Do = "look at " + box + ", " + b.Status
		}
	}
	if stuck := op.Journal.Stuck; stuck != nil {
		s.Waits = fmt.Sprintf("an operator: it is stuck for %s, %s", lasted(stuck.Since, now), stuck.Reason)
		s.Do = cmp.Or(s.Do, fmt.Sprintf("look at the agents on %s and %s", source, target))
	}
	return s
}

// phaseText is the phase, and how long it has lasted where that is news.
func phaseText(op hostclaim.Op, now time.Time) string {
	if op.Phase == hostclaim.Starting {
		return string(op.Phase)
	}
	return string(op.Phase) + " for " + lasted(op.Journal.PhaseSince, now)
}

func reasonText(r hostclaim.Reason) string {
	if r == hostclaim.Failover {
		return "failing over"
	}
	return "moving"
}

func waitsFor(op hostclaim.Op, now time.Time) string {
	target, j := op.Target().Box, op.Journal
	switch op.Phase {
	case hostclaim.Starting:
		switch missing := unacknowledged(op); {
		case len(missing) == 1:
			return missing[0] + " to say that it is ready"
		case len(missing) > 1:
			return strings.Join(missing, " and ") + " to say that they are ready"
		case op.Participates(op.Intent.Source.Box):
			return fmt.Sprintf("%s to fetch a copy, while %s serves on", target, op.Exec)
		}
	case hostclaim.Releasing:
		if j.Release == nil {
			return op.Exec + " to stop the app and give it up"
		}
	case hostclaim.Pinning:
		if from := op.PinFrom(); now.Before(from) {
			return "late writes to arrive, until " + clock(from)
		}
		return "a worker to select the newest data"
	case hostclaim.Installing:
		return target + " to build a copy of the data"
	case hostclaim.Installed:
		return target + " to put the files in place"
	case hostclaim.Probing:
		if j.Probe == nil {
			return fmt.Sprintf("the app on %s to answer, attempt %d of %d", target, j.ProbeAttempts, hostclaim.MaxProbeAttempts)
		}
	case hostclaim.ProbeFailed:
		if op.Exec == target && j.Release == nil {
			return fmt.Sprintf("%s, whose app did not answer, to give it up", target)
		}
		return "a box that may take it in place of " + target
	}
	return "a worker to go on"
}

func unacknowledged(op hostclaim.Op) (boxes []string) {
	for _, box := range op.Participants {
		if op.Journal.Acks[box] == "" {
			boxes = append(boxes, box)
		}
	}
	return boxes
}

// lasted is how long something has gone on.
func lasted(since, now time.Time) string {
	return hostrecord.Duration(max(now.Sub(since).Round(time.Second), 0)).String()
}

// begun says since when the operation runs.
func begun(claim *hostclaim.Claim, now time.Time) string {
	return "begun " + lasted(claim.Op.StartedAt, now) + " ago"
}
