package claimtest

import (
	"fmt"
	"slices"

	"github.com/carlosframework/regionha/hostclaim"
)

// checker holds each write of a claim to the properties, from what was written
// before and what is true in the world.
type checker struct {
	w *World

	stamp, session uint64            // the newest ever
	generations    []known           // every one that a claim ever named as written or built
	local          map[string]bool   // boxes that may hold local state
	parked         map[string]string // generations that were queued to be parked, with their chore
}

// known is what the claims said of one generation.
type known struct {
	id       string
	session  uint64 // that writes it; 0: none was admitted yet
	from     hostclaim.Position
	prepared bool
	build    string // digest of the accepted build
	declared bool   // the loss of its session was declared, beyond cut
	cut      uint64

	// What must be reached by every later admission: what clients were promised
	// and was not declared lost.
	needTXID, needSeq uint64
}

func newChecker(w *World) *checker {
	return &checker{w: w, local: map[string]bool{}, parked: map[string]string{}}
}

func (k *checker) find(id string) *known {
	for i := len(k.generations) - 1; i >= 0; i-- {
		if k.generations[i].id == id {
			return &k.generations[i]
		}
	}
	return nil
}

// broken is a property that does not hold.
func broken(n int, format string, args ...any) error {
	return fmt.Errorf("property %d: %s", n, fmt.Sprintf(format, args...))
}

// wrote holds one write to the properties.
func (k *checker) wrote(before *hostclaim.Claim, o hostclaim.Observed, s Step) error {
	if before == nil {
		before = &hostclaim.Claim{Op: hostclaim.Op{Kind: hostclaim.Free}}
	}
	after := o.Claim
	for _, check := range []func(before, after *hostclaim.Claim) error{
		k.left, k.grows, k.prepared, k.admitted, k.evidence, k.chores, k.finished,
	} {
		if err := check(before, after); err != nil {
			return err
		}
	}
	return k.oneWriter(o)
}

// oneWriter is property 1: at most one box may be admitted.
func (k *checker) oneWriter(o hostclaim.Observed) error {
	c := o.Claim
	if c.Holder == nil {
		return nil
	}
	scratch := c.Clone()
	scratch.Gen++
	may := ""
	for i := range k.w.Boxes {
		b := &k.w.Boxes[i]
		if !k.admissible(c, &scratch, b) {
			continue
		}
		if may != "" {
			return broken(1, "both %s and %s may be admitted", may, b.Ref)
		}
		if may = b.Ref; c.Op.Exec != may {
			return broken(1, "%s may be admitted, the executor is %q", may, c.Op.Exec)
		}
	}
	return nil
}

// admissible reports whether any honest admission of a box is legal. Where one
// is, scratch is made anew.
func (k *checker) admissible(c *hostclaim.Claim, scratch **hostclaim.Claim, b *Box) bool {
	s := steps{w: k.w, c: c}
	baseline, _ := k.w.Baseline(c)
	a := s.admission(b, baseline)
	a.KeepStamp = false
	if !takes(*scratch, a) {
		p := c.Op.Journal.Pin
		if c.Op.Phase != hostclaim.Probing || p == nil {
			return false
		}
		a.NewGeneration, a.KeepStamp, a.Baseline = c.Op.Journal.Prepared, true, p.Position
		if !takes(*scratch, a) {
			return false
		}
	}
	*scratch = c.Clone()
	(*scratch).Gen++
	return true
}

// takes reports whether the claim takes an admission, whatever vouches for the
// session before.
func takes(c *hostclaim.Claim, a hostclaim.Admission) bool {
	for _, a.Coverage = range []hostclaim.Coverage{hostclaim.Uncovered, hostclaim.CleanReturn, hostclaim.Released} {
		if a.Coverage == hostclaim.CleanReturn && c.Holder.Ended == nil || a.Coverage == hostclaim.Released && c.Op.Journal.Release == nil {
			continue
		}
		if hostclaim.AdmitWriter(a)(c) == nil {
			return true
		}
	}
	return false
}

// left is the other half of property 1: a box that was admitted under the newest
// stamp is left only by its release, or on evidence that it is gone.
func (k *checker) left(before, after *hostclaim.Claim) error {
	exec, h := before.Op.Exec, before.Holder
	if h == nil || h.Session == 0 || h.Stamp > h.Session || exec != h.WriterBox || after.Op.Exec == exec || after.IsLost(exec) {
		return nil
	}
	if r := before.Op.Journal.Release; r == nil || r.Box != exec || r.Session != h.Session {
		return broken(1, "session %d of %s may still run, and %q executes: nothing was released", h.Session, exec, after.Op.Exec)
	}
	return nil
}

// grows is property 2: numbers only grow, and no two admissions share one.
func (k *checker) grows(before, after *hostclaim.Claim) error {
	if after.Gen != before.Gen+1 {
		return broken(2, "gen %d follows %d", after.Gen, before.Gen)
	}
	h := after.Holder
	if h == nil {
		return nil
	}
	if same := before.Holder; same != nil && same.Incarnation == h.Incarnation && (h.Stamp < same.Stamp || h.Session < same.Session) {
		return broken(2, "stamp %d to %d, session %d to %d", same.Stamp, h.Stamp, same.Session, h.Session)
	}
	if h.Stamp > 0 && h.Stamp < k.stamp || h.Session > 0 && h.Session < k.session {
		return broken(2, "stamp %d after %d, session %d after %d", h.Stamp, k.stamp, h.Session, k.session)
	}
	for _, r := range h.Admissions {
		if g := k.find(r.Generation); g != nil && g.session > 0 && g.session != r.Session {
			return broken(2, "sessions %d and %d share generation %s", g.session, r.Session, r.Generation)
		}
	}
	if h.Session > 0 && h.Session == k.session && k.find(h.Generation) == nil {
		return broken(2, "session %d was admitted twice, on %s too", h.Session, h.Generation)
	}
	k.stamp, k.session = max(k.stamp, h.Stamp), max(k.session, h.Session)
	return nil
}

// prepared is property 3: what was built and accepted is never built again. That
// it is opened at most once follows from property 2, as each opening is an
// admission to it.
func (k *checker) prepared(_, after *hostclaim.Claim) error {
	j := after.Op.Journal
	if j.Prepared == "" {
		return nil
	}
	g := k.find(j.Prepared)
	if g == nil {
		k.generations = append(k.generations, known{id: j.Prepared, prepared: true})
		g = k.find(j.Prepared)
	}
	switch a := j.PreparedAuthority; {
	case !g.prepared:
		return broken(3, "%s had a writer before it was handed out to be built", g.id)
	case a == nil && g.build != "":
		return broken(3, "%s, whose build was accepted, is handed out to be built again", g.id)
	case a != nil && g.build != "" && g.build != a.SHA256:
		return broken(3, "two builds of %s are accepted: %s and %s", g.id, g.build, a.SHA256)
	case a != nil:
		g.build = a.SHA256
	}
	return nil
}

// evidence is property 9: what is learned about a box changes nothing of the
// execution of another.
func (k *checker) evidence(before, after *hostclaim.Claim) error {
	if len(after.Lost) == len(before.Lost) || before.Holder == nil || after.Holder == nil {
		return nil
	}
	exec := before.Op.Exec
	if exec == "" || exec == hostclaim.None || after.IsLost(exec) {
		return nil
	}
	a, b := before.Holder, after.Holder
	if after.Op.Exec != exec || a.Stamp != b.Stamp || a.Session != b.Session || a.Ended != b.Ended && *a.Ended != *b.Ended ||
		before.Op.Phase != after.Op.Phase {
		return broken(9, "evidence about %v took %s %s from %s: it is %s %s on %s now",
			after.Lost, before.Op.Kind, before.Op.Phase, exec, after.Op.Kind, after.Op.Phase, after.Op.Exec)
	}
	if before.Op.Journal.Acks[exec] != after.Op.Journal.Acks[exec] {
		return broken(9, "evidence about %v changed the acknowledgement of %s", after.Lost, exec)
	}
	return nil
}

// replay is property 8: the same step from the same observation again is a
// conflict or the same result, and made of its own result it has no effect.
func (r *run) replay(before, after hostclaim.Observed, s Step) error {
	if s.Transition == nil {
		return nil
	}
	if c, err := after.Next("replay", s.Transition); err == nil {
		return broken(8, "%s has a second effect: gen %d to %d", s.Name, after.Claim.Gen, c.Gen)
	}
	if r.report.Writes%16 != 0 {
		return nil
	}
	return r.again(before, s)
}

// again sends a step once more from its old observation.
func (r *run) again(o hostclaim.Observed, s Step) error {
	if o.ETag == r.newest().ETag {
		return nil
	}
	next, err := hostclaim.Update(r.ctx(), r.store, o, s.Transition)
	if err == nil || len(r.store.applied) > 0 {
		return broken(8, "%s applied twice to one observation: gen %d", s.Name, next.Claim.Gen)
	}
	return nil
}

func wide(o hostclaim.Obligation) bool {
	return o.Kind == hostclaim.ParkGeneration && o.Generation == "" && o.Park == nil
}

func owesGeneration(c *hostclaim.Claim, id string) bool {
	return slices.ContainsFunc(c.Obligations, func(o hostclaim.Obligation) bool {
		return o.Kind == hostclaim.ParkGeneration && (o.Generation == id || wide(o))
	})
}
