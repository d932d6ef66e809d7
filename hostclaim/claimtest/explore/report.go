package explore

import (
	"fmt"
	"slices"
	"strings"
)

// Failure is the shortest way to a state or a move that breaks a rule.
type Failure struct {
	Rule  string
	Steps []string // from nothing on

	at   uint32
	move uint16
	// state says that the state itself is what is wrong, not a move from it.
	state bool
}

// String is the counterexample as numbered steps.
func (f *Failure) String() string {
	var b strings.Builder
	for i, s := range f.Steps {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, s)
	}
	fmt.Fprintf(&b, "     %s\n", f.Rule)
	return b.String()
}

// finish looks where all states lead, and tells a failure as steps.
func (x *explorer) finish() {
	if x.Failure == nil && x.complete {
		if _, at, rule := x.lead(); rule != "" {
			x.Failure = &Failure{Rule: rule, at: at, state: true}
		}
	}
	if f := x.Failure; f != nil {
		f.Steps = x.path(f.at)
		if !f.state {
			s := x.replay(f.at)
			m := moves(s, x.forgeries)[f.move]
			f.Steps = append(f.Steps, m.tell(s, s.tried(m)))
		}
	}
}

// tried is the state after a move, as far as there is one.
func (s *State) tried(m move) *State {
	next, err := s.apply(m)
	if err != nil {
		return s
	}
	return next
}

// way lists the moves that lead to a node, as numbers.
func (g *Graph) way(id uint32) []uint16 {
	var way []uint16
	for ; id != 0; id = g.nodes[id].parent {
		way = append(way, g.nodes[id].move)
	}
	slices.Reverse(way)
	return way
}

// replay makes the state of a node once more.
func (x *explorer) replay(id uint32) *State {
	s := x.root
	for _, n := range x.way(id) {
		s = s.tried(moves(s, x.forgeries)[n])
	}
	return s
}

// path tells how a node is reached.
func (x *explorer) path(id uint32) []string {
	var steps []string
	s := x.root
	for _, n := range x.way(id) {
		m := moves(s, x.forgeries)[n]
		next := s.tried(m)
		steps = append(steps, m.tell(s, next))
		s = next
	}
	return steps
}

// tell is a move and what it made of the claim, for people.
func (m move) tell(before, after *State) string {
	if m.step == nil {
		return m.String()
	}
	line := m.actor + " " + told(m.does)
	if was, is := before.Claim, after.Claim; was == nil || was.Op.ID != is.Op.ID && is.Op.ID != "" {
		line += " (" + is.Op.ID + ")"
	}
	return fmt.Sprintf("%-46s gen %d: %s", line, after.Claim.Gen, after)
}

// told makes a sentence's verb of the first word of a step's name.
func told(name string) string {
	first, rest, _ := strings.Cut(name, " ")
	switch {
	case first == "to":
		first = "goes on to"
	case first == "stuck:":
		first = "hands the operation to an operator:"
	case first == "local":
		first = "makes its local"
	case first == "receipt":
		first = "finds its receipt"
	case first == "disks":
		first = "declares the disks"
	case strings.HasSuffix(first, "sh"), strings.HasSuffix(first, "ss"):
		first += "es"
	case !strings.HasSuffix(first, "s"):
		first += "s"
	}
	return strings.TrimSpace(first + " " + rest)
}

// Report tells what was explored, for docs.
func (g *Graph) Report() string {
	var b strings.Builder
	steps := int32(0)
	if g.complete {
		steps, _ = g.longest()
	}
	fmt.Fprintf(&b, "boxes: %d, faults: at most %d: %d states, %d edges, depth %d; the longest shortest way to serving is %d steps\n",
		g.Bounds.Boxes, g.Bounds.Faults, len(g.nodes), len(g.edges), g.Depth, steps)
	counts := make([]Count, 0, len(g.Counts))
	for c := range g.Counts {
		counts = append(counts, c)
	}
	slices.SortFunc(counts, func(a, b Count) int { return strings.Compare(a.String(), b.String()) })
	for _, c := range counts {
		fmt.Fprintf(&b, "%10d  %s\n", g.Counts[c], c)
	}
	return b.String()
}

// String names a kind and phase.
func (c Count) String() string {
	name := strings.TrimSpace(string(c.Kind) + " " + string(c.Phase))
	if c.Stuck {
		name += ", stuck"
	}
	return name
}
