package placement

import (
	"cmp"
	"slices"

	"github.com/carlosframework/regionha/internal/record"
)

// Box is an eligible box with what it already has. A caller that places many
// hosts in one pass calls [Box.Add] for each that it gives away.
type Box struct {
	Ref   string
	Hosts int
	Apps  map[string]int // hosts by <account>/<app>
}

// Load is what the box of an edges file has.
func Load(e Edges) Box {
	b := Box{Ref: e.Box}
	for _, h := range e.Hosts {
		b.Add(h.App)
	}
	return b
}

// Add counts one more host of app in.
func (b *Box) Add(app string) {
	if b.Apps == nil {
		b.Apps = map[string]int{}
	}
	b.Hosts++
	b.Apps[app]++
}

// Choose picks the box for host, an instance of app: one without an instance of
// app if there is any, then the fewest hosts, then the greatest hex SHA-256 of
// host, a zero byte and the reference, then the smallest reference. ok is false
// only without boxes. It is pure, and independent of their order.
func Choose(host, app string, boxes []Box) (ref string, ok bool) {
	if len(boxes) == 0 {
		return "", false
	}
	best := slices.MinFunc(boxes, func(a, b Box) int {
		return cmp.Or(
			cmp.Compare(min(a.Apps[app], 1), min(b.Apps[app], 1)),
			cmp.Compare(a.Hosts, b.Hosts),
			cmp.Compare(rank(host, b.Ref), rank(host, a.Ref)),
			cmp.Compare(a.Ref, b.Ref),
		)
	})
	return best.Ref, true
}

func rank(host, ref string) string { return record.Digest([]byte(host + "\x00" + ref)) }
