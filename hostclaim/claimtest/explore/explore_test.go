package explore_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim/claimtest/explore"
)

var (
	full   = flag.Bool("full", false, "explore for minutes")
	boxes  = flag.Int("boxes", 3, "how many boxes a variant is explored with")
	faults = flag.Int("faults", 0, "how many faults a variant is explored with")
)

// TestExhaustive explores everything within bounds. With -args -full the bounds
// are those that docs/claim.md tells of, and testdata/explored.txt holds what
// was found.
func TestExhaustive(t *testing.T) {
	bounds := []explore.Bounds{{Boxes: 3}, {Boxes: 2, Faults: 1}}
	if *full {
		bounds = []explore.Bounds{{Boxes: 3, Faults: 1}, {Boxes: 2, Faults: 2}}
	}
	var found strings.Builder
	for _, b := range bounds {
		began := time.Now()
		g := explore.Explore(t, b)
		require.Nil(t, g.Failure, "\n%s", g.Failure)
		t.Logf("%s\nin %s", g.Report(), time.Since(began).Round(time.Second))
		found.WriteString(g.Report() + "\n")
	}
	if *full {
		golden(t, "explored.txt", found.String())
	}
}
