package explore_test

import (
	"flag"
	"os"
	"regexp"
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

// TestTheDocsTellWhatWasExplored keeps the table of docs/claim.md to what the
// full exploration found.
func TestTheDocsTellWhatWasExplored(t *testing.T) {
	found, err := os.ReadFile("testdata/explored.txt")
	require.NoError(t, err)
	doc, err := os.ReadFile("../../../docs/claim.md")
	require.NoError(t, err)
	heads := regexp.MustCompile(`(?m)^boxes: .*$`).FindAllString(string(found), -1)
	require.NotEmpty(t, heads)
	for _, head := range heads {
		row := "| " + strings.Join(regexp.MustCompile(`\d+`).FindAllString(head, -1), " | ")
		require.Contains(t, strings.ReplaceAll(string(doc), ",", ""), row+" steps |")
	}
}
