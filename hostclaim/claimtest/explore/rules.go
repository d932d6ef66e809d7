package explore

import (
	"fmt"
	"slices"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostclaim/claimtest"
)

// edge is one move that was accepted.
type edge struct {
	before, after *State
	move          move
}

// broken names what an edge breaks of the rules of a claim; "": nothing. The
// rules are told here once more, in terms of what is true, and by nothing that
// hostclaim computes for itself.
func (e edge) broken() string {
	if e.move.wrong != "" {
		return "it is accepted, although " + e.move.wrong
	}
	if problem := e.after.broken(); problem != "" {
		return problem
	}
	if e.move.step == nil {
		return ""
	}
	for _, rule := range edgeRules {
		if problem := rule(e); problem != "" {
			return problem
		}
	}
	return ""
}

var edgeRules = []func(edge) string{
	edge.grows, edge.admits, edge.covers, edge.prepares, edge.waits, edge.hands, edge.loses, edge.names, edge.stays,
	edge.releases, edge.installs, edge.pins, edge.completes, edge.repeats,
}

// broken names what a state breaks.
func (s *State) broken() string {
	c := s.Claim
	if c == nil {
		return ""
	}
	if (c.Op.Kind == hostclaim.Serving || c.Op.Kind == hostclaim.Deleting) && s.box(c.Op.Exec) < 0 {
		return fmt.Sprintf("the host is %s on %q, which is no box", c.Op.Kind, c.Op.Exec)
	}
	for i, b := range s.World.Boxes {
		exec := c.Op.Exec == b.Ref
		switch {
		case b.Session > 0 && !exec:
			return fmt.Sprintf("%s runs session %d, and %q executes", b.Ref, b.Session, c.Op.Exec)
		case b.Session > 0 && b.Session != c.Holder.Session:
			return fmt.Sprintf("%s runs session %d, the claim's is %d", b.Ref, b.Session, c.Holder.Session)
		case c.IsLost(b.Ref) && !b.Gone():
			return fmt.Sprintf("%s is lost for the host, and alive", b.Ref)
		case c.IsLost(b.Ref) && exec && c.Op.Journal.Release == nil:
			return fmt.Sprintf("%s executes, and is lost for the host", b.Ref)
		case exec && c.Owes(b.Ref, hostclaim.ParkLocal):
			return fmt.Sprintf("%s executes, and owes that it puts its local state away", b.Ref)
		case s.local(i) && !exec && !s.remembers(b.Ref):
			return fmt.Sprintf("%s holds local state that nothing will put away", b.Ref)
		}
	}
	return ""
}

// remembers reports whether the claim still knows that a box that does not
// execute holds local state: as a chore, or, in an operation, as touched.
func (s *State) remembers(ref string) bool {
	running := s.Claim.Op.Kind == hostclaim.Relocating || s.Claim.Op.Kind == hostclaim.Deleting
	return s.Claim.Owes(ref, hostclaim.ParkLocal) || running && slices.Contains(s.Claim.Touched, ref)
}

// holders are both sides of an edge within one incarnation.
func (e edge) holders() (was, is *hostclaim.Holder, same bool) {
	if e.before.Claim == nil || e.before.Claim.Holder == nil || e.after.Claim.Holder == nil {
		return nil, nil, false
	}
	was, is = e.before.Claim.Holder, e.after.Claim.Holder
	return was, is, was.Incarnation == is.Incarnation
}

// ops are both sides of an edge within one operation.
func (e edge) ops() (was, is hostclaim.Op, same bool) {
	if e.before.Claim == nil {
		return was, is, false
	}
	was, is = e.before.Claim.Op, e.after.Claim.Op
	return was, is, was.ID == is.ID && was.Kind == is.Kind
}

// grows: gen, stamp and session, and what is lost, never go back.
func (e edge) grows() string {
	if e.before.Claim == nil {
		return ""
	}
	if e.after.Claim.Gen != e.before.Claim.Gen+1 {
		return "the gen does not grow by one"
	}
	for _, box := range e.before.Claim.Lost {
		if !e.after.Claim.IsLost(box) {
			return box + " is lost no more"
		}
	}
	was, is, same := e.holders()
	switch {
	case !same:
	case is.Stamp < was.Stamp || is.Session < was.Session:
		return fmt.Sprintf("stamp %d becomes %d, session %d becomes %d", was.Stamp, is.Stamp, was.Session, is.Session)
	case is.Stamp != was.Stamp && is.Stamp != e.after.Claim.Gen:
		return fmt.Sprintf("a stamp begins as %d in gen %d", is.Stamp, e.after.Claim.Gen)
	case is.Session != was.Session && is.Session != is.Stamp:
		return fmt.Sprintf("session %d begins under stamp %d", is.Session, is.Stamp)
	}
	return ""
}

// newest is the admission that the edge made; nil: none.
func (e edge) newest() *hostclaim.AdmissionRecord {
	was, is, same := e.holders()
	if !same || is.Session == was.Session {
		return nil
	}
	return &is.Admissions[len(is.Admissions)-1]
}

// admits: a writer is admitted on the executor, where a writer may be, to a
// generation that nobody was ever admitted to.
func (e edge) admits() string {
	r := e.newest()
	if r == nil {
		if was, is, same := e.holders(); same && len(is.Admissions) > len(was.Admissions) {
			return fmt.Sprintf("an admission shares session %d", is.Session)
		}
		return ""
	}
	c, j := e.before.Claim, e.before.Claim.Op.Journal
	opening := r.Generation == j.Prepared
	switch {
	case r.Box != c.Op.Exec || r.Box != e.move.actor:
		return fmt.Sprintf("%s is admitted, %q executes", r.Box, c.Op.Exec)
	case admitted(c, r.Generation) || slices.Contains(j.Abandoned, r.Generation):
		return r.Generation + " was admitted or given up before"
	case j.Stuck != nil && c.Op.Phase != hostclaim.Starting:
		return "a writer is admitted in an operation that waits for an operator"
	case (c.Op.Phase == hostclaim.Releasing || c.Op.Kind == hostclaim.Deleting) && j.Release != nil:
		return "a writer is admitted on a box that released the host"
	case c.Op.Kind == hostclaim.Deleting, c.Op.Phase != "" && !slices.Contains([]hostclaim.Phase{hostclaim.Starting, hostclaim.Releasing, hostclaim.Probing}, c.Op.Phase):
		return "a writer is admitted where none may be"
	case c.Op.Phase != hostclaim.Probing:
		return ""
	case opened(c) == opening:
		return fmt.Sprintf("an attempt begins %s, the prepared generation is %s, opened before: %t", r.Generation, j.Prepared, opened(c))
	case opening && (r.Session != j.InstallStamp || r.Baseline != j.Pin.Position):
		return fmt.Sprintf("%s is opened as session %d at %s, it was built under %d at %s", j.Prepared, r.Session, r.Baseline, j.InstallStamp, j.Pin.Position)
	case j.ProbeAdmission >= j.ProbeAttempts || j.ProbeAttempts > hostclaim.MaxProbeAttempts:
		return fmt.Sprintf("an attempt is made that was not counted: %d of %d", j.ProbeAttempts, hostclaim.MaxProbeAttempts)
	}
	return ""
}

// covers: what the session before promised is in the baseline, or it is
// declared lost, once.
func (e edge) covers() string {
	r, h := e.newest(), (*hostclaim.Holder)(nil)
	if r == nil {
		return ""
	}
	if h, _, _ = e.holders(); h.Session == 0 {
		if r.WritesLost != nil {
			return "a loss of a session that never was is declared"
		}
		return ""
	}
	g := e.before.World.Generation(h.Generation)
	if r.Coverage == hostclaim.Uncovered {
		lost := r.WritesLost
		if lost == nil || lost.Session != h.Session || lost.Generation != h.Generation || lost.Box != h.WriterBox {
			return fmt.Sprintf("session %d is not declared lost", h.Session)
		}
		if r.Baseline.Generation == h.Generation && lost.RemoteMaxTXID != r.Baseline.TXID {
			return fmt.Sprintf("the declared loss begins at %d, the baseline is %s", lost.RemoteMaxTXID, r.Baseline)
		}
		return ""
	}
	if r.WritesLost != nil {
		return "a loss is declared of a session that something vouches for"
	}
	if g != nil && g.Acked > 0 && (r.Baseline.Generation != g.ID || r.Baseline.TXID < g.Acked) {
		return fmt.Sprintf("%s promised up to %d, the baseline %s does not hold it, and nothing declares it lost", g.ID, g.Acked, r.Baseline)
	}
	if g != nil && g.AckedSeq > 0 && (r.Baseline.FilesGeneration != g.ID || r.Baseline.FilesSeq < g.AckedSeq) {
		return fmt.Sprintf("%s promised files up to %d, the baseline %s does not hold them, and nothing declares them lost", g.ID, g.AckedSeq, r.Baseline)
	}
	return ""
}

// prepares: a prepared generation is fresh, is built once, and is put away if
// nobody opened it.
func (e edge) prepares() string {
	was, is, same := e.ops()
	if !same && was.Kind != hostclaim.Relocating {
		return ""
	}
	c, a, b := e.after.Claim, was.Journal, is.Journal
	if b.Prepared != "" && b.Prepared != a.Prepared && (admitted(e.before.Claim, b.Prepared) || slices.Contains(a.Abandoned, b.Prepared)) {
		return b.Prepared + " is prepared, and is not fresh"
	}
	if a.PreparedAuthority != nil && b.PreparedAuthority != nil && a.Prepared == b.Prepared && *a.PreparedAuthority != *b.PreparedAuthority {
		return a.Prepared + " is built again"
	}
	built := a.Abandoned
	if a.Prepared != "" && !opened(e.before.Claim) {
		built = append(slices.Clone(built), a.Prepared)
	}
	for _, p := range built {
		if p != b.Prepared && !admitted(c, p) && !slices.Contains(b.Abandoned, p) && !slices.ContainsFunc(c.Obligations,
			func(o hostclaim.Obligation) bool {
				return o.Kind == hostclaim.ParkGeneration && (o.Generation == p || o.Generation == "")
			}) {
			return p + " was built, nobody opened it, and nothing will put it away"
		}
	}
	return ""
}

// waits: a phase that needs every participant is not left before all have
// acknowledged, each in the enrollment that the operation knows.
func (e edge) waits() string {
	was, is, same := e.ops()
	if !same || was.Kind != hostclaim.Relocating {
		return ""
	}
	for box, enrollment := range is.Journal.Acks {
		if b := e.after.World.Box(box); b.Enrollment != enrollment || was.Journal.Acks[box] != enrollment && e.move.actor != box {
			return fmt.Sprintf("%s is acknowledged as %s", box, enrollment)
		}
	}
	steps := map[hostclaim.Phase]hostclaim.Phase{hostclaim.Starting: hostclaim.Releasing, hostclaim.Pinning: hostclaim.Installing,
		hostclaim.Installing: hostclaim.Installed, hostclaim.Installed: hostclaim.Probing, hostclaim.Releasing: hostclaim.Pinning}
	fact := e.move.step.Name == "fence source" || e.move.actor == claimtest.Operator || is.Journal.Stuck != nil
	onward := steps[was.Phase] == is.Phase || was.Phase == hostclaim.Starting && is.Phase == hostclaim.Pinning
	if onward && !fact && !was.Acknowledged() {
		return fmt.Sprintf("%s is left, and not all of %v acknowledged", was.Phase, was.Participants)
	}
	return ""
}
