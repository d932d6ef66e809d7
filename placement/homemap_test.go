package placement_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/placement"
)

// file is the edges file of box with one stamp per host.
func file(box string, hosts map[string]uint64) placement.Published {
	e := placement.Edges{Box: box, Address: box + ":80", Internal: box + ":81", Hosts: map[string]placement.Host{}}
	for name, stamp := range hosts {
		e.Hosts[name] = placement.Host{Role: placement.RoleHome, Stamp: stamp}
	}
	return placement.Published{Edges: e, ModTime: now}
}

// aliased is the edges file of box with one host that has an alias.
func aliased(box, host string, stamp uint64, alias string) placement.Published {
	f := file(box, nil)
	f.Edges.Hosts[host] = placement.Host{Role: placement.RoleHome, Stamp: stamp, Aliases: []string{alias}}
	return f
}

func home(t *testing.T, m *placement.HomeMap, name string) placement.Home {
	t.Helper()
	h, status := m.Lookup(name, now)
	require.Equal(t, placement.Known, status)
	return h
}

func TestTheHigherStampWins(t *testing.T) {
	files := []placement.Published{file("box-1", map[string]uint64{"a": 7, "b": 9, "c": 0}), file("box-2", map[string]uint64{"a": 8, "b": 8, "c": 1})}
	for range 2 {
		m := placement.Fold(files, nil, now)
		require.Equal(t, placement.Home{Box: "box-2", Host: "a", Stamp: 8, Address: "box-2:80", Internal: "box-2:81"}, home(t, m, "a"))
		require.Equal(t, "box-1", home(t, m, "b").Box)
		require.Equal(t, "box-2", home(t, m, "c").Box, "an unstamped entry loses to a stamped one")
		require.Empty(t, m.Conflicts())
		slices.Reverse(files)
	}
}

func TestTwoBoxesAtOnePositiveStampAreReported(t *testing.T) {
	m := placement.Fold([]placement.Published{
		file("box-3", map[string]uint64{"a": 7, "b": 7, "c": 0}),
		file("box-1", map[string]uint64{"a": 7, "b": 7, "c": 0}),
		file("box-2", map[string]uint64{"a": 7, "b": 8, "c": 0}),
	}, nil, now)
	require.Equal(t, []placement.Conflict{{Name: "a", Stamp: 7, Boxes: []string{"box-1", "box-2", "box-3"}}}, m.Conflicts())
	require.Equal(t, "box-1", home(t, m, "a").Box)
	require.Equal(t, "box-1", home(t, m, "c").Box)
}

func TestADeadBoxesAliasLosesToTheSuccessorsStampedAlias(t *testing.T) {
	m := placement.Fold([]placement.Published{
		aliased("box-1", "notes", 7, "aaa"), // sorts first, and never changes again
		aliased("box-2", "notes", 8, "aaa"),
	}, nil, now)
	require.Equal(t, placement.Home{Box: "box-2", Host: "notes", Stamp: 8, Address: "box-2:80", Internal: "box-2:81"}, home(t, m, "aaa"))
}

func TestAWithheldHostsAliasIsWithheld(t *testing.T) {
	m := placement.Fold([]placement.Published{aliased("box-1", "notes", 7, "www")}, nil, now)
	m = placement.Fold([]placement.Published{file("box-1", nil)}, m, now)
	for _, name := range []string{"notes", "www"} {
		_, status := m.Lookup(name, now)
		require.Equal(t, placement.InTransit, status, name)
	}
}

func TestANameThatHadAHomeLatelyIsInTransit(t *testing.T) {
	with, without := []placement.Published{file("box-1", map[string]uint64{"a": 7})}, []placement.Published{file("box-1", nil)}
	status := func(m *placement.HomeMap, at time.Time) placement.Status {
		_, s := m.Lookup("a", at)
		return s
	}
	var none *placement.HomeMap
	require.Equal(t, placement.Unknown, status(none, now))
	require.Empty(t, none.Conflicts())
	require.Equal(t, placement.Unknown, status(placement.Fold(without, nil, now), now))

	m := placement.Fold(without, placement.Fold(with, nil, now), now.Add(time.Minute))
	end := now.Add(placement.TransitFor)
	require.Equal(t, placement.InTransit, status(m, end), "counted from when the home was last seen")
	require.Equal(t, placement.Unknown, status(m, end.Add(1)))
	for at := now.Add(2 * time.Minute); !at.After(end); at = at.Add(time.Minute) {
		m = placement.Fold(without, m, at)
		require.Equal(t, placement.InTransit, status(m, at))
	}
	require.Equal(t, placement.Unknown, status(placement.Fold(without, m, end.Add(1)), end.Add(1)))

	m = placement.Fold(with, m, end)
	require.Equal(t, placement.Known, status(m, end.Add(time.Hour)))
	m = placement.Fold(without, m, end.Add(time.Minute))
	require.Equal(t, placement.InTransit, status(m, end.Add(placement.TransitFor)))
	require.Equal(t, placement.Unknown, status(placement.Fold(without, placement.Fold(with, nil, now), end.Add(1)), end.Add(1)))
}

// TestAFoldIsIndependentOfOrder compares the fold of shuffled files with the
// rule, applied to every entry at once.
func TestAFoldIsIndependentOfOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var files []placement.Published
		for i := range rapid.IntRange(1, 5).Draw(t, "boxes") {
			f := file(fmt.Sprint("box-", i), nil)
			for host, stamp := range rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.Uint64Range(0, 3)).Draw(t, "hosts") {
				aliases := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "x"})).Draw(t, "aliases")
				f.Edges.Hosts[host] = placement.Host{Role: placement.RoleHome, Stamp: stamp, Aliases: aliases}
			}
			files = append(files, f)
		}
		m := placement.Fold(rapid.Permutation(files).Draw(t, "order"), nil, now)
		var conflicts []placement.Conflict
		for _, name := range []string{"a", "b", "c", "x"} {
			claims := claimsOf(files, name)
			got, status := m.Lookup(name, now)
			if len(claims) == 0 {
				require.Equal(t, placement.Unknown, status)
				continue
			}
			require.Equal(t, claims[0], got)
			if boxes := tied(claims); len(boxes) > 1 && got.Stamp > 0 {
				conflicts = append(conflicts, placement.Conflict{Name: name, Stamp: got.Stamp, Boxes: boxes})
			}
		}
		require.Equal(t, conflicts, m.Conflicts())
	})
}

// claimsOf lists who claims name, the winner first.
func claimsOf(files []placement.Published, name string) (claims []placement.Home) {
	for _, f := range files {
		for host, h := range f.Edges.Hosts {
			if host == name || slices.Contains(h.Aliases, name) {
				claims = append(claims, placement.Home{Box: f.Edges.Box, Host: host, Stamp: h.Stamp, Address: f.Edges.Address, Internal: f.Edges.Internal})
			}
		}
	}
	slices.SortFunc(claims, func(a, b placement.Home) int {
		return cmp.Or(cmp.Compare(b.Stamp, a.Stamp), cmp.Compare(a.Box, b.Box), cmp.Compare(a.Host, b.Host))
	})
	return claims
}

func tied(claims []placement.Home) (boxes []string) {
	for _, c := range claims {
		if c.Stamp == claims[0].Stamp {
			boxes = append(boxes, c.Box)
		}
	}
	return slices.Compact(boxes)
}

func BenchmarkFold100000NamesOver200Boxes(b *testing.B) {
	var files []placement.Published
	for i := range 200 {
		f := file(fmt.Sprint("box-", i), nil)
		for j := range 500 {
			f.Edges.Hosts[fmt.Sprintf("host-%d-%d.demo.example", i, j)] = placement.Host{Role: placement.RoleHome, Stamp: uint64(j)}
		}
		files = append(files, f)
	}
	prev := placement.Fold(files, nil, now)
	for b.Loop() {
		prev = placement.Fold(files, prev, now)
	}
}
