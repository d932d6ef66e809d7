package placement

import (
	"cmp"
	"maps"
	"slices"
)

// Move is one host that [Rebalance] takes from one box and gives to another.
type Move struct{ Host, From, To string }

// Rebalance picks at most most moves that bring the boxes of files closer
// together: boxes of one region and pool that may both give hosts up and be
// given them. While the fullest box has more than spread hosts more than the
// emptiest (a spread below one is one), it takes a host from the fullest and
// gives it to that one of the emptiest which [Choose] picks; a host whose app
// one of those does not run yet goes first, then the smallest name. A host for
// which fixed says so stays where it is; nil: none.
//
// It is pure and independent of the files' order. A box that was given a host
// has at most one more than the emptiest then or later, so it never gives one
// up: applied again and again it ends, and moves no host twice.
func Rebalance(files []Published, fixed func(host string) bool, spread, most int) []Move {
	piles := make([]pile, 0, len(files))
	for _, f := range files {
		piles = append(piles, heap(f.Edges, fixed))
	}
	slices.SortFunc(piles, func(a, b pile) int { return cmp.Compare(a.Ref, b.Ref) })
	var moves []Move
	for len(moves) < most {
		m, ok := step(piles, max(spread, 1))
		if !ok {
			break
		}
		moves = append(moves, m)
	}
	return moves
}

// pile is a box with those of its hosts that may still leave it.
type pile struct {
	Box
	movable []string // sorted
	apps    map[string]Host
}

func heap(e Edges, fixed func(string) bool) pile {
	p := pile{Box: Load(e), apps: e.Hosts}
	for _, host := range slices.Sorted(maps.Keys(e.Hosts)) {
		if fixed == nil || !fixed(host) {
			p.movable = append(p.movable, host)
		}
	}
	return p
}

// step makes one move among piles, which it changes; false where none is left
// to make.
func step(piles []pile, spread int) (Move, bool) {
	takers := emptiest(piles)
	var from *pile
	for i := range piles {
		p := &piles[i]
		if len(p.movable) > 0 && p.Hosts-takers[0].Hosts > spread && (from == nil || p.Hosts > from.Hosts) {
			from = p
		}
	}
	if from == nil {
		return Move{}, false
	}
	at := max(0, slices.IndexFunc(from.movable, func(host string) bool {
		return slices.ContainsFunc(takers, func(b Box) bool { return b.Apps[from.apps[host].App] == 0 })
	}))
	host := from.movable[at]
	app := from.apps[host].App
	to, _ := Choose(host, app, takers)
	from.movable = slices.Delete(from.movable, at, at+1)
	from.Hosts--
	from.Apps[app]--
	piles[slices.IndexFunc(piles, func(p pile) bool { return p.Ref == to })].Add(app)
	return Move{Host: host, From: from.Ref, To: to}, true
}

// emptiest lists the boxes with the fewest hosts, at least one where there are
// piles.
func emptiest(piles []pile) []Box {
	var list []Box
	for _, p := range piles {
		if len(list) > 0 && p.Hosts < list[0].Hosts {
			list = list[:0]
		}
		if len(list) == 0 || p.Hosts == list[0].Hosts {
			list = append(list, p.Box)
		}
	}
	return list
}
