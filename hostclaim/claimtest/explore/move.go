package explore

import (
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostclaim/claimtest"
)

// move is a step that may be tried in a state.
type move struct {
	actor, does string

	step  *claimtest.Step // a write of the claim; nil: only the world changes
	world func(*State)    // what changes beside the claim

	// cost is how many faults it takes. Only moves without any count on the way
	// out of a state.
	cost int

	// wrong says why no claim may accept the step; "": some may.
	wrong string
}

func (m move) String() string { return m.actor + " " + m.does }

// moves lists everything that may be tried in a state, in an order that depends
// on the state alone.
func moves(s *State, f *forgeries) []move {
	list := make([]move, 0, 64)
	for _, step := range claimtest.Steps(s.World, s.observed()) {
		if cost, ok := price(s, step); ok {
			list = append(list, move{actor: step.Actor, does: step.Name, step: &step, cost: cost})
		}
	}
	list = append(list, whole(s)...)
	list = append(list, fate(s)...)
	list = append(list, wrong(s, f)...)
	return list
}

// price is how many faults a step of an honest actor takes: one where it gives
// up a box that is well. False: it is made of other steps, which are tried each.
func price(s *State, step claimtest.Step) (int, bool) {
	c := s.Claim
	switch step.Name {
	case "pin and hand over", "install and open", "bind scope", "complete " + hostclaim.ParkGeneration, "complete " + hostclaim.ParkReplica,
		"report loss", "report evidence":
		return 0, false
	case "admit", "admit under a new stamp", "end session":
		if b := s.World.Box(step.Actor); b.Session > 0 {
			return 1, true
		}
	case "begin delete":
		if list := c.Holder.Admissions; len(list) > 0 && !list[len(list)-1].Published {
			return 1, true
		}
	case "start " + string(hostclaim.Drain), "start " + string(hostclaim.Rebalance):
		if s.untidy() {
			return 1, true
		}
	case "begin attempt":
		if j := c.Op.Journal; j.ProbeAttempts > j.ProbeAdmission || s.World.Box(step.Actor).Session > 0 {
			return 1, true
		}
	case "receipt lost":
		return 0, opened(c) && c.Op.Journal.LocalInstall != nil
	case "cancel create":
		return well(s, c.Op.Intent.Selected.Box), true
	case "cancel drain":
		return min(well(s, c.Op.Target().Box), well(s, c.Op.Intent.Source.Box), spares(s)), true
	case "to probe-failed":
		if c.Op.Journal.ProbeAttempts < hostclaim.MaxProbeAttempts {
			return well(s, c.Op.Target().Box), true
		}
	case "stuck: " + string(hostclaim.ReleaseOverdue):
		return well(s, c.Op.Exec), true
	case "stuck: " + string(hostclaim.NoSpare):
		return max(late(s), spares(s)), true
	case "fence target without spare":
		return spares(s), true
	case "abandon target", "stuck: " + string(hostclaim.ReplacementsUsedUp), "stuck: " + string(hostclaim.InstallOverdue):
		return late(s), true
	}
	return 0, true
}

// untidy reports whether something is open that a host gets done while it
// serves: its writer has not published, its region has not put away what it
// owes, or people were not told of a loss.
func (s *State) untidy() bool {
	list := s.Claim.Holder.Admissions
	return len(list) > 0 && !list[len(list)-1].Published || len(whole(s)) > 0
}

// whole lists steps that are made of several: a region puts everything away at
// once, and people are told of everything, so how much there is of it does not
// count.
func whole(s *State) []move {
	var list []move
	together := func(actor, does string, ts []hostclaim.Transition) {
		if len(ts) > 0 {
			list = append(list, move{actor: actor, does: does, step: &claimtest.Step{Actor: actor, Name: does, Transition: hostclaim.Then(ts...)}})
		}
	}
	if s.Claim == nil {
		return nil
	}
	var parked, told []hostclaim.Transition
	for _, o := range s.Claim.Obligations {
		if o.Kind != hostclaim.ParkLocal {
			scope := hostclaim.Park{Location: hostclaim.LocationOf(s.Claim.Host, o.Incarnation), Incarnation: o.Incarnation,
				EvidenceAt: epoch, RequestLimit: time.Minute}
			parked = append(parked, hostclaim.BindScope(o.Op, o.ID, scope), hostclaim.CompleteObligation(o.Op, o.ID))
		}
	}
	for _, l := range s.Claim.PendingLosses() {
		told = append(told, hostclaim.ReportLoss(l.ID))
	}
	together(claimtest.Parker, "puts away what the region owes", parked)
	together(claimtest.Console, "reports what was lost", told)
	return list
}

// well is 1 for a box that makes progress.
func well(s *State, ref string) int {
	if s.live(ref) {
		return 1
	}
	return 0
}

// late is what it costs that the target makes no progress. One whose probe
// failed has paid.
func late(s *State) int {
	if s.Claim.Op.Phase == hostclaim.ProbeFailed {
		return 0
	}
	return well(s, s.Claim.Op.Target().Box)
}

// spares is what it costs to overlook that a live box could be the target.
func spares(s *State) int {
	for _, b := range s.World.Boxes {
		if b.Condition == claimtest.Live && mayBeNamed(s.Claim, b.Ref) == "" {
			return 1
		}
	}
	return 0
}

// apply makes the state after a move. The claim's refusal is an error.
func (s *State) apply(m move) (*State, error) {
	next := &State{Claim: s.Claim, Local: s.Local, Faults: s.Faults - m.cost}
	if m.step == nil {
		next.World = s.World.Clone()
		m.world(next)
		return next, nil
	}
	c, err := s.observed().Next("nonce", m.step.Transition)
	if err != nil {
		return nil, err
	}
	next.World, next.Claim = s.World.Clone(), c
	m.step.Send(next.World)
	next.World.Learn(m.actor, c)
	if i := s.box(m.actor); i >= 0 && m.step.Name == "complete "+hostclaim.ParkLocal {
		next.setLocal(i, false)
	}
	if b := next.World.Box(m.actor); b != nil && m.step.Name == "local install" {
		b.ReceiptLost = false // it is of an installation before
	}
	next.settle()
	next.Faults -= s.misplaced(next)
	return next, nil
}

// misplaced is what it costs that the host is to go to a box that makes no
// progress: it could not be known better, or an operator chose it.
func (s *State) misplaced(next *State) int {
	was, is := hostclaim.Op{}, next.Claim.Op
	if s.Claim != nil {
		was = s.Claim.Op
	}
	named := is.ID != was.ID || is.Target().Box != was.Target().Box || is.Journal.Granted > was.Journal.Granted
	if is.Kind == hostclaim.Relocating && named && !next.live(is.Target().Box) {
		return 1
	}
	return 0
}

// fate is what happens to boxes and to the store, and what people do to boxes.
func fate(s *State) []move {
	var list []move
	happens := func(actor, does string, cost int, world func(*State)) {
		list = append(list, move{actor: actor, does: does, cost: cost, world: world})
	}
	for i, b := range s.World.Boxes {
		if b.Condition == claimtest.Live {
			happens(b.Ref, "is wedged", 1, func(s *State) { s.World.Boxes[i].Condition = claimtest.Wedged })
		}
		if !b.Gone() {
			happens(b.Ref, "is terminated, with its disks", 1, func(s *State) { s.terminate(i, true) })
			happens(b.Ref, "is terminated, its disks are kept", 1, func(s *State) { s.terminate(i, false) })
		}
		if b.Condition == claimtest.Wedged {
			happens(claimtest.Operator, "switches "+b.Ref+" off and declares it lost", 0, func(s *State) {
				s.World.Declare(b.Ref)
				s.found(i)
			})
		}
		if b.Gone() && !b.DisksGone && s.Claim != nil && s.Claim.Owes(b.Ref, hostclaim.ParkLocal) {
			happens(claimtest.Operator, "destroys the disks of "+b.Ref, 0, func(s *State) { s.destroy(i) })
		}
		if b.Session > 0 && !b.Gone() {
			s.writer(b, happens)
		}
	}
	s.store(happens)
	return list
}

// writer is what befalls a session that runs.
func (s *State) writer(b claimtest.Box, happens func(string, string, int, func(*State))) {
	if g := s.World.Generation(b.Generation); g != nil && g.Acked == 0 {
		happens(b.Ref, "promises a client a write", 0, func(s *State) { s.World.Write(b.Ref) })
	}
	if b.Condition != claimtest.Live {
		return
	}
	happens(b.Ref, "crashes its app", 1, func(s *State) { s.World.Crash(b.Ref) })
	if s.Claim.Op.Phase == hostclaim.Probing && !b.ReceiptLost {
		happens(b.Ref, "loses its install receipt", 1, func(s *State) { s.World.Box(b.Ref).ReceiptLost = true })
	}
}

// store is what befalls the data in the store.
func (s *State) store(happens func(string, string, int, func(*State))) {
	pinning := s.Claim != nil && s.Claim.Op.Phase == hostclaim.Pinning && s.Claim.Op.Journal.Pin == nil
	for _, g := range s.World.Generations {
		if g.Acked > g.TXID || g.AckedSeq > g.FilesSeq {
			happens("store", fmt.Sprintf("receives what was promised in %s", g.ID), 0, func(s *State) { s.World.Upload(g.ID) })
		}
		if pinning && g.TXID > 0 && !g.Broken {
			happens("store", fmt.Sprintf("loses a part of %s", g.ID), 1, func(s *State) { s.World.Generation(g.ID).Broken = true })
		}
	}
}

func (s *State) terminate(i int, disks bool) {
	s.World.Fence(s.World.Boxes[i].Ref)
	s.found(i)
	if disks {
		s.destroy(i)
	}
}

// found says when a box was found gone: before everything else, so that each
// deadline that counts from it has passed.
func (s *State) found(i int) {
	b := &s.World.Boxes[i]
	b.GoneAt, b.ReceiptLost = epoch, false
}

func (s *State) destroy(i int) {
	s.World.Boxes[i].DisksGone = true
	s.setLocal(i, false)
}
