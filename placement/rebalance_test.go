package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/placement"
)

// loaded is the edges file of box with these hosts, each of an app of its own
// unless it is named "<app>/<n>".
func loaded(box string, hosts ...string) placement.Published {
	f := file(box, nil)
	for _, h := range hosts {
		f.Edges.Hosts[h] = placement.Host{Role: placement.RoleHome, App: h[:1]}
	}
	return f
}

func TestNothingMovesWithinTheSpread(t *testing.T) {
	files := []placement.Published{loaded("box-1", "a", "b", "c"), loaded("box-2")}
	require.Empty(t, placement.Rebalance(files, nil, 3, 10))
	require.Empty(t, placement.Rebalance(nil, nil, 1, 10))
	require.Empty(t, placement.Rebalance(files, nil, 1, 0))
	require.Empty(t, placement.Rebalance([]placement.Published{loaded("box-1", "a"), loaded("box-2")}, nil, 0, 10), "a difference of one is none")
}

func TestTheFullestBoxGivesToTheEmptiest(t *testing.T) {
	files := []placement.Published{loaded("box-1", "a", "b", "c", "d"), loaded("box-2", "e", "f", "g"), loaded("box-3")}
	require.Equal(t, []placement.Move{
		{Host: "a", From: "box-1", To: "box-3"}, {Host: "b", From: "box-1", To: "box-3"},
	}, placement.Rebalance(files, nil, 1, 10))
	require.Len(t, placement.Rebalance(files, nil, 1, 1), 1, "at most most")
	require.Len(t, files[0].Edges.Hosts, 4, "it changes nothing")

	fixed := func(host string) bool { return host == "a" || host == "b" || host == "c" }
	require.Equal(t, []placement.Move{{Host: "d", From: "box-1", To: "box-3"}, {Host: "e", From: "box-2", To: "box-3"}},
		placement.Rebalance(files, fixed, 1, 10), "what must stay stays, and the next fullest gives")
	require.Empty(t, placement.Rebalance(files, func(string) bool { return true }, 1, 10))
}

func TestAHostWhoseAppIsNotThereYetGoesFirst(t *testing.T) {
	files := []placement.Published{loaded("box-1", "a1", "a2", "b1", "b2"), loaded("box-2", "a3")}
	require.Equal(t, "b1", placement.Rebalance(files, nil, 1, 1)[0].Host)
	require.Equal(t, []placement.Move{{Host: "a1", From: "box-1", To: "box-2"}},
		placement.Rebalance([]placement.Published{loaded("box-1", "a1", "a2", "a4"), loaded("box-2", "a3")}, nil, 1, 1), "though spread is never a refusal")
	files = []placement.Published{loaded("box-1", "a1", "a2", "b1", "b2"), loaded("box-2", "a3"), loaded("box-3", "c1")}
	require.Equal(t, placement.Move{Host: "a1", From: "box-1", To: "box-3"}, placement.Rebalance(files, nil, 1, 1)[0], "of the emptiest Choose picks")
}

// TestRebalancingEndsAndMovesNoHostTwice applies what Rebalance says again and
// again.
func TestRebalancingEndsAndMovesNoHostTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := map[string]map[string]placement.Host{}
		total := 0
		for i := range rapid.IntRange(1, 6).Draw(t, "boxes") {
			box := fmt.Sprint("box-", i)
			hosts[box] = map[string]placement.Host{}
			for range rapid.IntRange(0, 12).Draw(t, "hosts") {
				total++
				hosts[box][fmt.Sprint("host-", total)] = placement.Host{App: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "app")}
			}
		}
		spread, most := rapid.IntRange(0, 4).Draw(t, "spread"), rapid.IntRange(1, 3).Draw(t, "most")
		moved := map[string]bool{}
		for range total + 1 {
			var files []placement.Published
			for box, h := range hosts {
				files = append(files, placement.Published{Edges: placement.Edges{Box: box, Hosts: maps.Clone(h)}})
			}
			moves := placement.Rebalance(rapid.Permutation(files).Draw(t, "order"), nil, spread, most)
			require.Equal(t, moves, placement.Rebalance(files, nil, spread, most), "independent of order")
			if len(moves) == 0 {
				break
			}
			require.LessOrEqual(t, len(moves), most)
			for _, m := range moves {
				require.False(t, moved[m.Host], "%s moves twice", m.Host)
				moved[m.Host] = true
				h, there := hosts[m.From][m.Host]
				require.True(t, there)
				delete(hosts[m.From], m.Host)
				hosts[m.To][m.Host] = h
			}
		}
		var counts []int
		for _, h := range hosts {
			counts = append(counts, len(h))
		}
		require.LessOrEqual(t, slices.Max(counts)-slices.Min(counts), max(spread, 1), "it ends within the spread")
	})
}
