package explore

import (
	"runtime"
	"sync"
	"testing"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostclaim/claimtest"
)

// Bounds say how much is explored.
type Bounds struct {
	Boxes  int
	Faults int // how many things go wrong on one path, at most
	States int // after how many the search stops; 0: when there are no more
}

// Graph is everything that was reached.
type Graph struct {
	Bounds  Bounds
	Depth   int           // in moves, from nothing on
	Counts  map[Count]int // of states
	Failure *Failure      // what broke a rule; nil: nothing

	nodes    []node
	edges    []uint32 // of all nodes, one after the other
	ids      map[key]uint32
	complete bool // there is no more within the bounds
}

// node is a state that was reached, as far as it is remembered: how it was
// reached, and what it is good for.
type node struct {
	parent uint32
	move   uint16
	kind   standing
	first  uint32 // of its edges; they end where the next node's begin
}

// costs is the bit of an edge that takes a fault.
const costs = 1 << 31

// standing says what a state counts as in the question where all lead.
type standing uint8

const (
	underway standing = iota
	serving           // on a box that lives
	stuck             // an operator is waited for
	free
	hopeless // no box is left that could take the host
)

// Count is a kind and phase of operation, as far as states are counted by it.
type Count struct {
	Kind  hostclaim.Kind
	Phase hostclaim.Phase
	Stuck bool
}

// successor is a state that a move leads to.
type successor struct {
	state *State
	key   key
	move  uint16
	cost  bool
	rule  string // what the move breaks
}

// Explore reaches every state within the bounds, breadth first, and checks each.
// It stops at the first move that breaks a rule. The test lends its proofs.
func Explore(tb testing.TB, b Bounds) *Graph {
	x := newExplorer(tb, b)
	layer := []*State{x.root}
	x.visit(successor{state: x.root, key: canon(x.root)}, 0)
	for ; len(layer) > 0 && x.Failure == nil && (b.States == 0 || len(x.nodes) < b.States); x.Depth++ {
		layer = x.expand(layer)
	}
	x.complete = len(layer) == 0 && x.Failure == nil
	x.finish()
	return x.Graph
}

func newExplorer(tb testing.TB, b Bounds) *explorer {
	root := first(claimtest.NewProofs(tb), b.Boxes, b.Faults)
	return &explorer{Graph: &Graph{Bounds: b, ids: map[key]uint32{}, Counts: map[Count]int{}},
		root: root, forgeries: newForgeries(tb, root.World)}
}

type explorer struct {
	*Graph
	forgeries *forgeries
	root      *State
	expanded  uint32 // how many nodes have their edges
}

// visit remembers a state; false: it was reached before.
func (x *explorer) visit(s successor, parent uint32) (uint32, bool) {
	if id, ok := x.ids[s.key]; ok {
		return id, false
	}
	id := uint32(len(x.nodes))
	x.ids[s.key] = id
	x.nodes = append(x.nodes, node{parent: parent, move: s.move, kind: s.state.standing()})
	x.Counts[s.state.count()]++
	return id, true
}

func (s *State) count() Count {
	if s.Claim == nil {
		return Count{Kind: "none"}
	}
	return Count{s.Claim.Op.Kind, s.Claim.Op.Phase, s.Claim.Op.Journal.Stuck != nil}
}

// expand makes the next layer of the search. The states of a layer are expanded
// at once and taken in their order, so every run finds the same paths.
func (x *explorer) expand(layer []*State) []*State {
	const chunk = 64
	results := make([]chan [][]successor, (len(layer)+chunk-1)/chunk)
	for i := range results {
		results[i] = make(chan [][]successor, 1)
	}
	var wg sync.WaitGroup
	work := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range work {
				var out [][]successor
				for _, s := range layer[i*chunk : min(len(layer), (i+1)*chunk)] {
					out = append(out, x.successors(s))
				}
				results[i] <- out
			}
		})
	}
	go func() {
		for i := range results {
			work <- i
		}
		close(work)
	}()
	var next []*State
	for _, r := range results {
		for _, list := range <-r {
			next = append(next, x.connect(list)...)
		}
	}
	wg.Wait()
	return next
}

// connect gives the next node its edges, and returns what was not reached before.
func (x *explorer) connect(list []successor) []*State {
	var fresh []*State
	from := x.expanded
	x.expanded++
	x.nodes[from].first = uint32(len(x.edges))
	for _, s := range list {
		if s.rule != "" {
			if x.Failure == nil {
				x.Failure = &Failure{Rule: s.rule, at: from, move: s.move}
			}
			continue
		}
		id, isNew := x.visit(s, from)
		if isNew {
			fresh = append(fresh, s.state)
		}
		if s.cost {
			id |= costs
		}
		x.edges = append(x.edges, id)
	}
	return fresh
}

// successors are all states that one move leads to.
func (x *explorer) successors(s *State) []successor {
	var out []successor
	scratch := s.scratch()
	for i, m := range moves(s, x.forgeries) {
		if m.cost > s.Faults {
			continue
		}
		if m.wrong != "" && m.step.Transition(scratch) != nil {
			continue // refused before it changed anything
		}
		next, err := s.apply(m)
		if err != nil {
			continue
		}
		if next.Faults < 0 {
			continue
		}
		out = append(out, successor{state: next, key: canon(next), move: uint16(i), cost: next.Faults < s.Faults, rule: edge{s, next, m}.broken()})
	}
	return out
}

// scratch is a claim for steps that are refused.
func (s *State) scratch() *hostclaim.Claim {
	if s.Claim == nil {
		return nil
	}
	c := s.Claim.Clone()
	c.Gen++
	return c
}

func (s *State) standing() standing {
	c := s.Claim
	switch {
	case c != nil && c.Op.Journal.Stuck != nil && s.anyLeft():
		return stuck
	case c != nil && c.Op.Kind == hostclaim.Serving && !s.gone(c.Op.Exec):
		return serving
	case !s.anyLeft():
		return hopeless
	case c == nil || c.Op.Kind == hostclaim.Free:
		return free
	}
	return underway
}

// anyLeft reports whether a live box could still take the host.
func (s *State) anyLeft() bool {
	for _, b := range s.World.Boxes {
		if b.Condition == claimtest.Live && (s.Claim == nil || !s.Claim.IsLost(b.Ref)) {
			return true
		}
	}
	return false
}
