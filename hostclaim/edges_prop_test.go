package hostclaim_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostclaim/claimtest"
)

// beyond are the edges that the walks are not held to. Each has a test of its
// own.
var beyond = []edge{
	{"pinning", "pinning", "NameTarget"},           // a move that lost its target
	{"probing", "probing", "RecordLocalInstall"},   // an install that its box made again, otherwise
	{"starting", "serving", "Resolve"},             // a drain that is stuck before it began: rare
	{"probe-failed", "installed", "ReplaceTarget"}, // a target that never opened and dies once it failed: rare
}

// walked is what the first sequences did.
type walked struct {
	report claimtest.Report
	taken  map[edge]int // by steps of one transition
}

// walkedSequences is how many the tests look at that want to know what happens.
const walkedSequences = 5000

var walkOnce struct {
	sync.Once
	walked
}

// walk drives them, once for all tests.
func walk(t *testing.T) walked {
	t.Helper()
	walkOnce.Do(func() {
		taken := map[edge]int{}
		walkOnce.report = drive(t, 0, walkedSequences, claimtest.Options{
			Proofs: claimtest.NewProofs(t),
			Wrote: func(s claimtest.Step, before, after *hostclaim.Claim) {
				if calls := s.Calls(); len(calls) == 1 {
					taken[edge{at(before), at(after), calls[0]}]++
				}
			},
		})
		walkOnce.taken = taken
	})
	require.NotEmpty(t, walkOnce.taken, "the walk failed, in another test")
	return walkOnce.walked
}

// TestEveryStepTakenIsAnEdgeAndEveryEdgeIsTaken walks claims at random: each
// write is an edge of the table, and each edge is a write of some walk.
func TestEveryStepTakenIsAnEdgeAndEveryEdgeIsTaken(t *testing.T) {
	taken := walk(t).taken
	for e := range taken {
		assert.True(t, legal(e.from, e.by, e.to), "%s took a claim from %s to %s, which is not in the table", e.by, e.from, e.to)
	}
	for _, e := range edges {
		for _, by := range strings.Fields(e.by) {
			one := edge{e.from, e.to, by}
			assert.True(t, taken[one] > 0 || slices.Contains(beyond, one), "no walk took %s from %s to %s", by, e.from, e.to)
		}
	}
}

// at is the state of a claim as the table names it: its phase, or its kind.
func at(c *hostclaim.Claim) string {
	switch {
	case c == nil:
		return string(hostclaim.Free)
	case c.Op.Phase != "":
		return string(c.Op.Phase)
	}
	return string(c.Op.Kind)
}
