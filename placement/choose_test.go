package placement_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/placement"
)

func choose(t *testing.T, host string, boxes ...placement.Box) string {
	t.Helper()
	ref, ok := placement.Choose(host, "demo/notes", boxes)
	require.True(t, ok)
	return ref
}

func TestAnAppIsSpreadBeforeHostsAreCounted(t *testing.T) {
	busy := placement.Box{Ref: "box-1", Hosts: 100}
	has := placement.Box{Ref: "box-2", Hosts: 1, Apps: map[string]int{"demo/notes": 1}}
	more := placement.Box{Ref: "box-3", Hosts: 3, Apps: map[string]int{"demo/notes": 3}}
	require.Equal(t, "box-1", choose(t, "h", has, busy, more))
	require.Equal(t, "box-2", choose(t, "h", more, has), "spread is never a refusal; then the fewest hosts")
	two := placement.Box{Ref: "box-5", Hosts: 2, Apps: map[string]int{"demo/notes": 2}}
	one := placement.Box{Ref: "box-6", Hosts: 3, Apps: map[string]int{"demo/notes": 1}}
	require.Equal(t, "box-5", choose(t, "h", one, two), "how many instances does not matter")
	other := placement.Box{Ref: "box-4", Hosts: 3, Apps: map[string]int{"demo/shop": 3}}
	require.Equal(t, "box-4", choose(t, "h", busy, other))
	_, ok := placement.Choose("h", "demo/notes", nil)
	require.False(t, ok)
}

func TestWhatIsGivenAwayInAPassCounts(t *testing.T) {
	boxes := []placement.Box{placement.Load(full), {Ref: "box-2"}}
	require.Equal(t, placement.Box{Ref: "box-1", Hosts: 2, Apps: map[string]int{"demo/notes": 1, "demo/shop": 1}}, boxes[0])
	require.Equal(t, "box-2", choose(t, "h", boxes...))
	for range 3 {
		boxes[1].Add("demo/notes")
	}
	require.Equal(t, "box-1", choose(t, "h", boxes...))
}

// The winners were computed with sha256sum: printf 'c\0box-2' | sha256sum.
var winners = map[string]string{"notes.demo.example": "box-1", "a": "box-1", "c": "box-2", "f": "box-2"}

func TestTheGreatestHashDecidesBetweenEquals(t *testing.T) {
	a, b := placement.Box{Ref: "box-1"}, placement.Box{Ref: "box-2"}
	for host, want := range winners {
		require.Equal(t, want, choose(t, host, a, b), host)
		require.Equal(t, want, choose(t, host, b, a), host)
	}
	require.Equal(t, "box-1", choose(t, "h", a, a))
}

func TestAChoiceIsIndependentOfOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var boxes []placement.Box
		for i := range rapid.IntRange(1, 6).Draw(t, "boxes") {
			n := rapid.IntRange(0, 2).Draw(t, "hosts")
			boxes = append(boxes, placement.Box{Ref: fmt.Sprint("box-", i), Hosts: n,
				Apps: map[string]int{"demo/notes": rapid.IntRange(0, n).Draw(t, "instances")}})
		}
		host := rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "host")
		got, ok := placement.Choose(host, "demo/notes", rapid.Permutation(boxes).Draw(t, "order"))
		require.True(t, ok)
		var best string
		for _, b := range boxes { // the greatest of strings that spell the rule
			sum := sha256.Sum256([]byte(host + "\x00" + b.Ref))
			spread := 1
			if b.Apps["demo/notes"] > 0 {
				spread = 0
			}
			if key := fmt.Sprintf("%d %d %s %s", spread, 9-b.Hosts, hex.EncodeToString(sum[:]), b.Ref); key > best {
				best = key
			}
		}
		require.Contains(t, best, " "+got)
	})
}
