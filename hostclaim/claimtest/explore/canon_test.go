package explore

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim/claimtest"
)

// TestOneFormOneFuture: two states with one canonical form have the same
// futures. Whenever the search comes to a form again, from the other side, the
// state that it met first and the one that it meets now must lead to the same
// forms, for the same cost.
func TestOneFormOneFuture(t *testing.T) {
	x := newExplorer(t, Bounds{Boxes: 3, Faults: 1})
	met := map[key]*State{canon(x.root): x.root}
	compared, again := 0, 0
	for queue := []*State{x.root}; len(queue) > 0 && compared < 300; queue = queue[1:] {
		for _, s := range x.successors(queue[0]) {
			was, ok := met[s.key]
			if !ok {
				met[s.key] = s.state
				queue = append(queue, s.state)
				continue
			}
			if again++; again%20 == 0 {
				compared++
				require.Equal(t, x.futures(was), x.futures(s.state), "\n%s\n%s", was, s.state)
			}
		}
	}
	require.Equal(t, 300, compared)
}

// future is a form that a state leads to.
type future struct {
	key  key
	cost bool
}

func (x *explorer) futures(s *State) []future {
	var list []future
	for _, next := range x.successors(s) {
		list = append(list, future{next.key, next.cost})
	}
	slices.SortFunc(list, func(a, b future) int { return bytes.Compare(a.key[:], b.key[:]) })
	return slices.Compact(list)
}

// TestBoxesAreAlike: a state and the same with its boxes in another order have
// one form, and one that differs in a box has another.
func TestBoxesAreAlike(t *testing.T) {
	p := claimtest.NewProofs(t)
	a, b, c := first(p, 3, 1), first(p, 3, 1), first(p, 3, 1)
	a.World.Boxes[0].Condition = claimtest.Wedged
	b.World.Boxes[2].Condition = claimtest.Wedged
	require.Equal(t, canon(a), canon(b))
	require.NotEqual(t, canon(a), canon(c))
}
