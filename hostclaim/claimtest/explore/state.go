package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostclaim/claimtest"
)

// State is a claim with the truth about the world around it. It is never
// changed: a move makes another.
type State struct {
	Claim *hostclaim.Claim // nil: the host never had one
	World *claimtest.World

	Local  uint8 // the boxes that hold local state of the host, a bit each
	Faults int   // how many more may happen
}

// first is the state in which nothing has happened in a region of n boxes.
func first(p *claimtest.Proofs, n, faults int) *State {
	return &State{World: claimtest.NewWorld(p, n), Faults: faults}
}

func (s *State) observed() hostclaim.Observed {
	return hostclaim.Observed{Host: s.World.Host, Claim: s.Claim}
}

// box is the number of a box; -1: none of them.
func (s *State) box(ref string) int {
	return slices.IndexFunc(s.World.Boxes, func(b claimtest.Box) bool { return b.Ref == ref })
}

// live reports whether the box makes progress.
func (s *State) live(ref string) bool {
	b := s.World.Box(ref)
	return b != nil && b.Condition == claimtest.Live
}

func (s *State) gone(ref string) bool {
	b := s.World.Box(ref)
	return b != nil && b.Gone()
}

func (s *State) local(i int) bool { return s.Local&(1<<i) != 0 }

func (s *State) setLocal(i int, holds bool) {
	s.Local &^= 1 << i
	if holds {
		s.Local |= 1 << i
	}
}

// leap is more than every deadline. The clock leaps in each write, so every step
// is tried when all deadlines have passed.
const leap = 100 * 24 * time.Hour

// settle makes what is true follow the claim that was just written: who
// executes holds local state, and generations that no baseline can come from any
// more are forgotten.
func (s *State) settle() {
	c, w := s.Claim, s.World
	w.Now = w.Now.Add(leap)
	if i := s.box(c.Op.Exec); i >= 0 && !(w.Boxes[i].Gone() && w.Boxes[i].DisksGone) {
		s.setLocal(i, true)
	}
	keep := c.FilesChain()
	for _, l := range c.Chain() {
		keep = append(keep, l.Generation)
	}
	keep = append(keep, c.Op.Journal.Prepared)
	w.Generations = slices.DeleteFunc(w.Generations, func(g claimtest.Generation) bool { return !slices.Contains(keep, g.ID) })
}

// opened reports whether anybody was admitted to the current prepared
// generation.
func opened(c *hostclaim.Claim) bool {
	p := c.Op.Journal.Prepared
	return p != "" && (c.Op.Journal.PreparedOpened == p || admitted(c, p))
}

func admitted(c *hostclaim.Claim, generation string) bool {
	return c.Holder != nil && slices.ContainsFunc(c.Holder.Admissions, func(a hostclaim.AdmissionRecord) bool {
		return a.Generation == generation
	})
}

// String names a state in a line, for people.
func (s *State) String() string {
	c := s.Claim
	if c == nil {
		return "no claim"
	}
	line := string(c.Op.Kind)
	if c.Op.Phase != "" {
		line += fmt.Sprintf(" %s to %s", c.Op.Phase, c.Op.Target().Box)
	}
	if c.Op.Exec != "" {
		line += ", exec " + c.Op.Exec
	}
	if h := c.Holder; h != nil {
		line += fmt.Sprintf(", stamp %d session %d", h.Stamp, h.Session)
	}
	if k := c.Op.Journal.Stuck; k != nil {
		line += ", stuck: " + string(k.Reason)
	}
	for _, b := range s.World.Boxes {
		if b.Session > 0 {
			line += fmt.Sprintf(", %s runs session %d", b.Ref, b.Session)
		}
	}
	return line
}
