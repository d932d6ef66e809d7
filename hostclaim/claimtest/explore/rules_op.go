package explore

import (
	"fmt"
	"slices"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostclaim/claimtest"
)

// hands: the host goes to a box only as the target of a relocation, as the box
// selected for a create, or back to a source that never stopped executing.
func (e edge) hands() string {
	was, is, same := e.ops()
	if e.before.Claim == nil || was.Exec == is.Exec || is.Exec == "" || is.Exec == hostclaim.None {
		return ""
	}
	_, h, _ := e.holders()
	switch {
	case was.Kind == hostclaim.Creating && is.Exec == was.Intent.Selected.Box && e.move.actor == is.Exec:
		return ""
	case !same || is.Exec != is.Target().Box:
		return fmt.Sprintf("%s executes, and was not the target", is.Exec)
	case h.Stamp != e.after.Claim.Gen || is.Journal.InstallStamp != h.Stamp || is.Journal.LocalInstall != nil || is.Journal.ProbeAttempts != 0:
		return fmt.Sprintf("%s is handed the host without a new installation", is.Exec)
	}
	return ""
}

// loses: evidence makes exactly the box that it is about lost, is kept until a
// person was told, and changes no other box's execution.
func (e edge) loses() string {
	if e.before.Claim == nil {
		return ""
	}
	c := e.after.Claim
	var lost []string
	for _, box := range c.Lost {
		if !e.before.Claim.IsLost(box) {
			lost = append(lost, box)
		}
	}
	if len(lost) == 0 {
		return ""
	}
	was, is, _ := e.ops()
	box := lost[0]
	told := slices.ContainsFunc(c.EvidenceRefs, func(l hostclaim.AutomaticLoss) bool {
		return l.Box == box && slices.Contains(c.LossRefs, l.ID)
	})
	switch {
	case len(lost) > 1:
		return fmt.Sprintf("one step loses %v", lost)
	case !told:
		return "nobody will be told that " + box + " was lost"
	case was.Exec != box && was.Exec != is.Exec && was.Exec != hostclaim.None && was.Kind != hostclaim.Creating && e.move.actor != claimtest.Operator:
		return fmt.Sprintf("evidence about %s takes the host from %s", box, was.Exec)
	}
	return e.spares(box)
}

// spares: what the claim says of other boxes stays.
func (e edge) spares(box string) string {
	was, is, same := e.ops()
	if !same || e.move.actor == claimtest.Operator {
		return ""
	}
	for other, enrollment := range was.Journal.Acks {
		if other != box && is.Journal.Acks[other] != enrollment && is.Participates(other) {
			return fmt.Sprintf("evidence about %s takes the acknowledgement of %s back", box, other)
		}
	}
	if was.Exec == was.Intent.Source.Box && was.Exec != box {
		a, b := was.Journal, is.Journal
		if was.Phase != is.Phase || (a.Release == nil) != (b.Release == nil) || !is.Participates(was.Exec) {
			return fmt.Sprintf("evidence about %s changes what %s does: %s becomes %s", box, was.Exec, was.Phase, is.Phase)
		}
	}
	return ""
}

// mayBeNamed says why a box may not become the target of an operation; "": it
// may.
func mayBeNamed(c *hostclaim.Claim, ref string) string {
	switch {
	case ref == c.Op.Intent.Source.Box:
		return "it is the source"
	case ref == c.Op.Target().Box:
		return "it is the target"
	case slices.Contains(c.Op.Journal.Replaced, ref):
		return "it was replaced"
	case c.IsLost(ref):
		return "it is lost"
	case c.Owes(ref, hostclaim.ParkLocal):
		return "it owes that it puts its local state away"
	}
	return ""
}

// names: another box becomes the target only where it may, and as often as it
// may. An operator may name one of those before again.
func (e edge) names() string {
	was, is, same := e.ops()
	target := is.Target().Box
	if is.Kind != hostclaim.Relocating || same && was.Target().Box == target {
		return ""
	}
	c := e.before.Claim
	if !same {
		if c.IsLost(target) || c.Owes(target, hostclaim.ParkLocal) || target == is.Intent.Source.Box || is.Intent.Source.Box != was.Exec {
			return fmt.Sprintf("a relocation from %s to %s begins, %s executes", is.Intent.Source.Box, target, was.Exec)
		}
		return ""
	}
	why := mayBeNamed(c, target)
	if e.move.actor == claimtest.Operator && !c.IsLost(target) && !c.Owes(target, hostclaim.ParkLocal) {
		why = ""
	}
	switch {
	case why != "":
		return fmt.Sprintf("%s becomes the target: %s", target, why)
	case is.Journal.Replacements > hostclaim.MaxReplacements+is.Journal.Granted:
		return fmt.Sprintf("target %d of an operation", is.Journal.Replacements)
	}
	return ""
}

// stays: an operation that waits for an operator goes on by a fact or by the
// operator.
func (e edge) stays() string {
	was, is, _ := e.ops()
	if was.Journal.Stuck == nil {
		return ""
	}
	facts := []string{"fence source", "fence exhausted target", "fence target without spare", "replace target", "journal release", "end session",
		"cancel drain", "complete " + hostclaim.ParkLocal}
	switch {
	case slices.Contains(facts, e.move.step.Name), e.move.actor == claimtest.Operator, e.move.actor == claimtest.Console, e.move.actor == claimtest.Parker:
		return ""
	case was.Phase == hostclaim.Starting && is.Phase == hostclaim.Starting && e.move.actor == was.Exec:
		return ""
	}
	return "an operation that waits for an operator goes on"
}

// releases: a release and the end of a session are of the executor's own current
// session, which runs no more.
func (e edge) releases() string {
	was, is, same := e.holders()
	if !same {
		return ""
	}
	o := e.before.Claim.Op
	stopped := func() bool { b := e.after.World.Box(e.move.actor); return b.Session == 0 && b.Closed >= was.Session }
	if is.Ended != nil && was.Ended == nil {
		if is.Ended.Box != was.WriterBox || is.Ended.Session != was.Session || o.Exec != was.WriterBox || e.move.actor != o.Exec || !stopped() {
			return fmt.Sprintf("session %d of %s ends, and %s executes", is.Ended.Session, is.Ended.Box, o.Exec)
		}
	}
	r := e.after.Claim.Op.Journal.Release
	if r == nil || o.Journal.Release != nil {
		return ""
	}
	if r.Box != o.Exec || r.Box != e.move.actor || r.Session != was.Session || r.Generation != was.Generation || !stopped() {
		return fmt.Sprintf("%s releases session %d, and %s executes session %d", r.Box, r.Session, o.Exec, was.Session)
	}
	return ""
}

// installs: a receipt is of the executor's own installation, before its build
// was opened.
func (e edge) installs() string {
	was, is, same := e.ops()
	l := is.Journal.LocalInstall
	if !same || l == nil || was.Journal.LocalInstall != nil && *was.Journal.LocalInstall == *l {
		return ""
	}
	if l.Box != was.Exec || l.Box != e.move.actor || l.InstallStamp != was.Journal.InstallStamp || opened(e.before.Claim) {
		return fmt.Sprintf("%s puts installation %d in place, %s executes %d", l.Box, l.InstallStamp, was.Exec, was.Journal.InstallStamp)
	}
	return ""
}

// pins: a pin is journaled once, against the claim that it was selected from,
// and holds what was released, unless an operator accepts that it does not.
func (e edge) pins() string {
	was, is, same := e.ops()
	p := is.Journal.Pin
	if !same || p == nil || was.Journal.Pin != nil && *was.Journal.Pin == *p {
		return ""
	}
	r := is.Journal.Release
	switch {
	case was.Journal.Pin != nil:
		return "another pin takes the place of the one that was journaled"
	case was.Exec != hostclaim.None:
		return "a pin is taken while " + was.Exec + " executes"
	case p.Key != hostclaim.PinKey(e.before.Claim.Host, was.ID, e.before.Claim.Gen):
		return "the pin was selected against another claim"
	case r != nil && r.Final.TXID > 0 && (p.Position.Generation != r.Final.Generation || p.Position.TXID < r.Final.TXID):
		return fmt.Sprintf("the pin %s does not hold what was released, %s", p.Position, r.Final)
	}
	return ""
}

// completes: a relocation ends on a passing probe of the session that runs on
// its target, and a host is freed when nothing is left of it.
func (e edge) completes() string {
	was, is, _ := e.ops()
	c := e.before.Claim
	if was.Kind == hostclaim.Parking && is.Kind == hostclaim.Free && c.Holder != nil && (len(c.Obligations) > 0 || len(c.PendingLosses()) > 0) {
		return "the host is freed, and not all of it is put away and told"
	}
	if was.Kind != hostclaim.Relocating || is.Kind != hostclaim.Serving || was.Phase != hostclaim.Probing {
		return ""
	}
	h, p := c.Holder, was.Journal.Probe
	if p == nil || p.Session != h.Session || p.Box != was.Exec || h.WriterBox != was.Exec || h.Session < was.Journal.InstallStamp {
		return fmt.Sprintf("%s serves, and its session %d passed no probe", was.Exec, h.Session)
	}
	return ""
}

// repeats: the same step once more is refused, or changes nothing that a future
// depends on.
func (e edge) repeats() string {
	again, err := e.after.observed().Next("nonce", e.move.step.Transition)
	if err != nil {
		return ""
	}
	twice := &State{Claim: again, World: e.after.World.Clone(), Local: e.after.Local, Faults: e.after.Faults}
	if canon(twice) == canon(e.after) {
		return ""
	}
	return "the same step has a second effect: " + twice.String()
}
