package claimtest

import (
	"fmt"

	"github.com/carlosframework/regionha/hostclaim"
)

// The actors that are not boxes. A box acts under its own reference.
const (
	Worker   = "worker"   // makes the regional steps; there may be any number
	Console  = "console"  // creates, deletes, and tells people of losses
	Operator = "operator" // a person, who sees to what is stuck
	Parker   = "parker"   // puts away what lies in the store
)

// Step is one thing that an honest actor could try: the transition that it asks
// for, with its arguments as the actor knew them.
type Step struct {
	Actor, Name string
	Transition  hostclaim.Transition

	ids    int          // how many fresh ids it names
	before func(*World) // what the actor does before it sends the write
	driver Driver       // whose step it is, and who says what it does; nil: an honest actor's
}

// Send does what the actor does before its write leaves, whatever becomes of the
// write: a box closes a session before it says so. It uses up the fresh ids that
// the step names, so call it once, in the world that the step was made in.
func (s Step) Send(w *World) {
	w.IDs += s.ids
	if s.before != nil {
		s.before(w)
	}
}

// begins reports whether the step begins an operation under a fresh id. Whoever
// tries one again chooses another id.
func (s Step) begins() bool {
	switch s.Name {
	case "begin create", "begin delete", "begin sweep", "start failover", "start drain", "start rebalance", driven:
		return true
	}
	return false
}

// steps collects what the actors could try from one observation.
type steps struct {
	w    *World
	c    *hostclaim.Claim
	list []Step
}

// Steps lists every step that any honest actor could try from an observation, in
// a fixed order. Honest means that its arguments are true in the world: evidence
// is about boxes that are gone, a receipt of what a box released, a position of
// what is durable. Whether the step is legal is for the claim to say: an
// observation may be old, and an actor hasty.
//
// It changes nothing. Fresh ids follow the world's counter, so two lists made of
// one world name the same ones.
func Steps(w *World, o hostclaim.Observed) []Step {
	s := &steps{w: w, c: o.Claim, list: make([]Step, 0, 48)}
	if s.c == nil || s.c.Holder == nil {
		s.free()
		return s.list
	}
	for i := range w.Boxes {
		if b := &w.Boxes[i]; b.Condition == Live {
			s.box(b)
		}
	}
	s.worker()
	s.console()
	s.operator()
	s.parker()
	return s.list
}

func (s *steps) add(actor, name string, t hostclaim.Transition) {
	s.list = append(s.list, Step{Actor: actor, Name: name, Transition: t})
}

// fresh is for a step that names n fresh ids.
func (s *steps) fresh(actor, name string, n int, t hostclaim.Transition) {
	s.list = append(s.list, Step{Actor: actor, Name: name, Transition: t, ids: n})
}

// after is for a step whose actor does something first.
func (s *steps) after(actor, name string, before func(*World), t hostclaim.Transition) {
	s.list = append(s.list, Step{Actor: actor, Name: name, Transition: t, before: before})
}

// id is the nth fresh id from here.
func (s *steps) id(prefix string, n int) string { return fmt.Sprintf("%s-%d", prefix, s.w.IDs+n) }

// free is about a host that nobody holds.
func (s *steps) free() {
	w := s.w
	if s.c != nil && s.c.Op.Kind == hostclaim.Parking {
		s.operator()
		s.parker()
		return
	}
	for _, b := range w.Boxes {
		if b.Gone() {
			continue
		}
		n := hostclaim.NewHost{Incarnation: s.id("i", 1), Account: "demo", App: "shop", Region: w.Region,
			RecordKey: "apps/demo/shop/instances/" + w.Host + ".json", RecordSHA256: "aa11"}
		s.fresh(Console, "begin create", 2, hostclaim.BeginCreate(n, s.id("op", 2), Console, w.Now, b.Member()))
	}
	if s.c == nil || len(s.c.RetiredIncarnations) == 0 {
		return
	}
	last := s.c.RetiredIncarnations[len(s.c.RetiredIncarnations)-1]
	s.fresh(Worker, "begin sweep", 1, hostclaim.BeginSweep(s.id("op", 1), Worker,
		[]hostclaim.Residue{{Incarnation: last, Region: w.Region}}, w.Now))
}

// console is about what an account asked for, and about what people are told.
func (s *steps) console() {
	w, c := s.w, s.c
	switch c.Op.Kind {
	case hostclaim.Creating:
		s.add(Console, "cancel create", hostclaim.CancelCreate(c.Op.ID, "no record"))
		if b := w.Box(c.Op.Intent.Selected.Box); b.Gone() {
			s.add(Console, "cancel lost create", hostclaim.CancelLostCreate(c.Op.ID, w.Gone(b.Ref)))
		}
	case hostclaim.Serving:
		s.fresh(Console, "begin delete", 1, hostclaim.BeginDelete(s.id("op", 1), Console, w.Box(c.Op.Exec).Member(), w.Now))
	case hostclaim.Parking:
		s.add(Console, "free host", hostclaim.FreeHost(c.Op.ID))
	}
	for _, l := range c.EvidenceRefs {
		s.add(Console, "report evidence", hostclaim.ReportLoss(l.ID))
	}
	for _, l := range c.PendingLosses() {
		s.add(Console, "report loss", hostclaim.ReportLoss(l.ID))
	}
}

// parker is about what lies in the region's store.
func (s *steps) parker() {
	for _, o := range s.c.Obligations {
		if o.Kind == hostclaim.ParkLocal {
			continue
		}
		if o.Park == nil {
			s.add(Parker, "bind scope", hostclaim.BindScope(o.Op, o.ID, hostclaim.Park{
				Location: hostclaim.LocationOf(s.c.Host, o.Incarnation), Incarnation: o.Incarnation,
				EvidenceAt: s.w.Now, RequestLimit: requestLimit,
			}))
		}
		s.add(Parker, "complete "+o.Kind, hostclaim.CompleteObligation(o.Op, o.ID))
	}
}

// operator is about what only a person decides.
func (s *steps) operator() {
	w, c := s.w, s.c
	for _, b := range w.Boxes {
		if b.Gone() && b.DisksGone && (c.Owes(b.Ref, hostclaim.ParkLocal) || c.IsLost(b.Ref)) {
			s.add(Operator, "disks destroyed", hostclaim.DischargeDestroyed(w.Destroyed(b)))
		}
	}
	if c.Op.Journal.Stuck == nil {
		return
	}
	proof := hostclaim.Proof{Gone: w.Gone(c.Op.Target().Box)}
	if r := c.Op.Journal.Release; r != nil {
		proof.Receipt = w.Receipt(c, hostclaim.Member{Box: r.Box, Enrollment: r.Enrollment})
	}
	_, complete := w.Baseline(c)
	for _, b := range w.Boxes {
		if !b.Gone() {
			s.fresh(Operator, "resolve", 1, hostclaim.Resolve(c.Op.ID, w.Resolution(c, w.IDs+1, b.Member(), !complete), proof, w.Now))
		}
	}
}
