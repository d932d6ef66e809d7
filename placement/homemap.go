package placement

import (
	"slices"
	"strings"
	"time"
)

// TransitFor is how long a name that lost its home counts as in transit.
const TransitFor = 15 * time.Minute

// Home is where a name is served.
type Home struct {
	Box      string
	Host     string // the primary name; other than the name asked for, an alias
	Stamp    uint64 // 0: the box has not read the claim yet
	Address  string // its ingress
	Internal string
}

// Status is what a [HomeMap] knows of a name.
type Status int

const (
	Unknown   Status = iota // no file names it, nor did lately
	Known                   // it has a home
	InTransit               // it had one within [TransitFor], and has none now
)

// Conflict is a name that several boxes claim under one positive stamp. The
// smallest reference is taken for its home.
type Conflict struct {
	Name  string
	Stamp uint64
	Boxes []string // sorted
}

// HomeMap says where every name lives, as of one [Fold]. It does not change and
// is safe for concurrent use. The nil map knows no name.
type HomeMap struct {
	homes     map[string]Home
	transit   map[string]time.Time // when a name without a home last had one
	conflicts []Conflict
	at        time.Time
}

// Fold makes the map of files at now. prev, which may be nil, is the map before:
// it remembers the names that have lost their home since. A file of any age
// counts, because a box that is cut off from the store still serves.
func Fold(files []Published, prev *HomeMap, now time.Time) *HomeMap {
	m := &HomeMap{homes: make(map[string]Home, prev.size()), at: now}
	ties := map[string]Conflict{}
	for _, f := range files {
		for host, h := range f.Edges.Hosts {
			home := Home{Box: f.Edges.Box, Host: host, Stamp: h.Stamp, Address: f.Edges.Address, Internal: f.Edges.Internal}
			m.claim(host, home, ties)
			for _, alias := range h.Aliases {
				m.claim(alias, home, ties)
			}
		}
	}
	m.conflicts = sorted(ties)
	m.transit = prev.departed(m.homes, now)
	return m
}

// claim gives name to home if it wins.
func (m *HomeMap) claim(name string, home Home, ties map[string]Conflict) {
	old, taken := m.homes[name]
	switch {
	case !taken:
	case home.Stamp > old.Stamp:
		delete(ties, name)
	case home.Stamp < old.Stamp:
		return
	default:
		if home.Stamp > 0 && home.Box != old.Box {
			tie := ties[name]
			tie.Name, tie.Stamp = name, home.Stamp
			tie.Boxes = append(tie.Boxes, old.Box, home.Box)
			ties[name] = tie
		}
		if home.Box > old.Box || home.Box == old.Box && home.Host >= old.Host {
			return
		}
	}
	m.homes[name] = home
}

func sorted(ties map[string]Conflict) []Conflict {
	var list []Conflict
	for _, c := range ties {
		slices.Sort(c.Boxes)
		c.Boxes = slices.Compact(c.Boxes)
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Conflict) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (m *HomeMap) size() int {
	if m == nil {
		return 0
	}
	return len(m.homes)
}

// departed returns the names of m that homes does not have, and those that were
// in transit before, as long as they count.
func (m *HomeMap) departed(homes map[string]Home, now time.Time) map[string]time.Time {
	gone := map[string]time.Time{}
	if m == nil {
		return gone
	}
	for name, last := range m.transit {
		if now.Sub(last) <= TransitFor {
			gone[name] = last
		}
	}
	for name := range m.homes {
		if _, still := homes[name]; !still {
			gone[name] = m.at
		}
	}
	return gone
}

// Lookup says where name lives, or that it is in transit at now.
func (m *HomeMap) Lookup(name string, now time.Time) (Home, Status) {
	if m == nil {
		return Home{}, Unknown
	}
	if home, ok := m.homes[name]; ok {
		return home, Known
	}
	if last, ok := m.transit[name]; ok && now.Sub(last) <= TransitFor {
		return Home{}, InTransit
	}
	return Home{}, Unknown
}

// Conflicts lists the names that several boxes claim under one positive stamp,
// by name. Each is an alert.
func (m *HomeMap) Conflicts() []Conflict {
	if m == nil {
		return nil
	}
	return slices.Clone(m.conflicts)
}
