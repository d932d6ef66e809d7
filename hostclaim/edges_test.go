package hostclaim_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// edge is one legal step: from a kind, or a phase of a relocation, to another.
// Several transitions may take it.
type edge struct {
	from, to string
	by       string
}

// edges are all that there are. What is not here is refused.
var edges = []edge{
	{"free", "creating", "BeginCreate"},
	{"free", "parking", "BeginSweep"},
	{"creating", "serving", "CompleteCreate"},
	{"creating", "free", "CancelCreate CancelLostCreate"},

	{"serving", "serving", "AdmitWriter EndSession PublishGeneration"},
	{"serving", "starting", "StartRelocation StartFailover"},
	{"serving", "deleting", "BeginDelete"},

	{"starting", "starting", "Acknowledge AdmitWriter EndSession PublishGeneration FenceSource FenceExhaustedTarget FenceTargetWithoutSpare ReplaceTarget AbandonTarget MarkStuck Resolve"},
	{"starting", "releasing", "ToReleasing"},
	{"starting", "pinning", "PinFailover FenceExhaustedTarget FenceTargetWithoutSpare"},
	{"starting", "serving", "CancelDrain Resolve"},

	{"releasing", "releasing", "Acknowledge AdmitWriter EndSession PublishGeneration JournalRelease FenceExhaustedTarget FenceTargetWithoutSpare ReplaceTarget AbandonTarget MarkStuck Resolve"},
	{"releasing", "pinning", "PinAfterRelease FenceSource"},
	{"releasing", "serving", "Resolve"},

	{"pinning", "pinning", "Acknowledge JournalPin NameTarget FenceSource FenceExhaustedTarget FenceTargetWithoutSpare ReplaceTarget AbandonTarget MarkStuck Resolve"},
	{"pinning", "installing", "ToInstalling ReplaceTarget"},
	{"pinning", "installed", "ReplaceTarget"},

	{"installing", "installing", "Acknowledge FenceSource ReplaceTarget AbandonTarget MarkStuck"},
	{"installing", "installed", "ToInstalled"},
	{"installing", "pinning", "FenceExhaustedTarget FenceTargetWithoutSpare Resolve"},

	{"installed", "installed", "Acknowledge RecordLocalInstall FenceSource ReplaceTarget AbandonTarget MarkStuck"},
	{"installed", "probing", "ToProbing"},
	{"installed", "pinning", "FenceExhaustedTarget FenceTargetWithoutSpare Resolve"},

	{"probing", "probing", "RecordLocalInstall BeginProbeAttempt AdmitWriter EndSession PublishGeneration RecordProbe FenceSource"},
	{"probing", "probe-failed", "ToProbeFailed MarkStuck"},
	{"probing", "installed", "ReplaceTarget AbandonTarget"},
	{"probing", "pinning", "ReplaceTarget FenceExhaustedTarget FenceTargetWithoutSpare"},
	{"probing", "serving", "CompleteRelocation"},

	{"probe-failed", "probe-failed", "EndSession JournalRelease FenceSource MarkStuck"},
	{"probe-failed", "installed", "ReplaceTarget AbandonTarget"},
	{"probe-failed", "pinning", "PinAfterRelease ReplaceTarget FenceExhaustedTarget FenceTargetWithoutSpare Resolve"},

	{"deleting", "deleting", "JournalRelease MarkStuck Resolve"},
	{"deleting", "parking", "ParkAfterRelease FenceSource"},
	{"parking", "free", "FreeHost CompleteObligation"},
}

// anywhere are the transitions that change no kind and no phase in any state
// that has what they are about.
const anywhere = "BindScope CompleteObligation DischargeDestroyed ReportLoss"

var updateDocs = flag.Bool("update-docs", false, "rewrite the diagram in docs/claim.md")

const (
	diagramBegins = "<!-- the diagram is made by hostclaim's TestTheDiagramIsTheTable -->\n"
	diagramEnds   = "<!-- end of the diagram -->\n"
)

// TestTheDiagramIsTheTable keeps docs/claim.md to the table of edges. go test
// ./hostclaim -run Diagram -args -update-docs writes it.
func TestTheDiagramIsTheTable(t *testing.T) {
	const path = "../docs/claim.md"
	doc, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(doc), diagramBegins)
	require.True(t, ok, "docs/claim.md has no place for the diagram")
	got, after, ok := strings.Cut(rest, diagramEnds)
	require.True(t, ok, "docs/claim.md has no end of the diagram")
	if *updateDocs {
		require.NoError(t, os.WriteFile(path, []byte(before+diagramBegins+diagram()+diagramEnds+after), 0o644))
		return
	}
	require.Equal(t, diagram(), got, "run go test ./hostclaim -run Diagram -args -update-docs")
}

// diagram draws the edges between states, and lists those within one.
func diagram() string {
	var b strings.Builder
	b.WriteString("\n```mermaid\nstateDiagram-v2\n")
	for _, e := range edges {
		if e.from != e.to {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", state(e.from), state(e.to), strings.ReplaceAll(e.by, " ", ", "))
		}
	}
	b.WriteString("```\n\nWithin one state:\n\n| in | steps |\n|---|---|\n")
	for _, e := range edges {
		if e.from == e.to {
			fmt.Fprintf(&b, "| %s | %s |\n", e.from, strings.ReplaceAll(e.by, " ", ", "))
		}
	}
	fmt.Fprintf(&b, "| any | %s |\n\n", strings.ReplaceAll(anywhere, " ", ", "))
	return b.String()
}

// state is a name that the diagram language takes.
func state(name string) string { return strings.ReplaceAll(name, "-", "_") }

// legal reports whether the table has the edge.
func legal(from, by, to string) bool {
	if from == to && slices.Contains(strings.Fields(anywhere), by) {
		return true
	}
	return slices.ContainsFunc(edges, func(e edge) bool {
		return e.from == from && e.to == to && slices.Contains(strings.Fields(e.by), by)
	})
}
