package explore

import (
	"math"
)

// never is the distance of a state from which there is no way.
const never = math.MaxInt32

// ends is where each state can get to without another fault: how many moves it
// takes at least.
type ends struct {
	serving []int32 // to a host that serves on a live box
	settled []int32 // to one that serves, waits for an operator, or is free
}

// lead names the first state from which the host gets nowhere, or stays stuck
// whatever an operator decides.
func (g *Graph) lead() (ends, uint32, string) {
	back := g.reversed()
	e := ends{
		serving: g.distances(back, func(s standing) bool { return s == serving }),
		settled: g.distances(back, func(s standing) bool { return s == serving || s == stuck || s == free }),
	}
	for id, n := range g.nodes {
		switch {
		case n.kind == hopeless:
		case e.settled[id] == never:
			return e, uint32(id), "from here no move leads to a host that serves, is free or waits for an operator"
		case n.kind == stuck && e.serving[id] == never:
			return e, uint32(id), "from here nothing that an operator decides leads to a host that serves"
		}
	}
	return e, 0, ""
}

// backwards are the edges that take no fault, from their ends.
type backwards struct {
	first []uint32 // by node, and one more
	from  []uint32
}

func (g *Graph) out(id int) []uint32 {
	if id+1 < len(g.nodes) && g.nodes[id+1].first > 0 {
		return g.edges[g.nodes[id].first:g.nodes[id+1].first]
	}
	return g.edges[g.nodes[id].first:]
}

func (g *Graph) reversed() backwards {
	b := backwards{first: make([]uint32, len(g.nodes)+1)}
	for _, to := range g.edges {
		if to&costs == 0 {
			b.first[to+1]++
		}
	}
	for i := range g.nodes {
		b.first[i+1] += b.first[i]
	}
	b.from = make([]uint32, b.first[len(g.nodes)])
	at := make([]uint32, len(g.nodes))
	for id := range g.nodes {
		for _, to := range g.out(id) {
			if to&costs == 0 {
				b.from[b.first[to]+at[to]] = uint32(id)
				at[to]++
			}
		}
	}
	return b
}

// distances goes back from every goal, breadth first.
func (g *Graph) distances(b backwards, goal func(standing) bool) []int32 {
	far := make([]int32, len(g.nodes))
	var queue []uint32
	for id, n := range g.nodes {
		far[id] = never
		if goal(n.kind) {
			far[id] = 0
			queue = append(queue, uint32(id))
		}
	}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		for _, from := range b.from[b.first[id]:b.first[id+1]] {
			if far[from] == never {
				far[from] = far[id] + 1
				queue = append(queue, from)
			}
		}
	}
	return far
}

// Longest is the longest of all shortest ways to a host that serves, from any
// state that has one.
func (g *Graph) longest() (steps int32, from uint32) {
	e, _, _ := g.lead()
	for id, d := range e.serving {
		if d != never && d > steps {
			steps, from = d, uint32(id)
		}
	}
	return steps, from
}
