package agent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

func TestEachPreparedGenerationOfAnOperationIsOpened(t *testing.T) {
	for name, row := range map[string]struct {
		journal hostclaim.Journal
		opens   bool
	}{
		"nothing prepared":              {hostclaim.Journal{}, false},
		"the first":                     {hostclaim.Journal{Prepared: "p-1"}, true},
		"the first, opened":             {hostclaim.Journal{Prepared: "p-1", PreparedOpened: "p-1"}, false},
		"the next, after a dead target": {hostclaim.Journal{Prepared: "p-2", PreparedOpened: "p-1"}, true},
		"nothing, after a dead target":  {hostclaim.Journal{PreparedOpened: "p-1"}, false},
	} {
		require.Equal(t, row.opens, opens(&hostclaim.Claim{Op: hostclaim.Op{Journal: row.journal}}), name)
	}
}

// TestASessionWhoseEndTheStoreLostIsDeclared: to ask for a clean return would be
// refused for ever.
func TestASessionWhoseEndTheStoreLostIsDeclared(t *testing.T) {
	end := hostclaim.Position{Generation: "g-1", TXID: 9, FilesGeneration: "g-1", FilesSeq: 3}
	short := end
	short.TXID = 8
	c := &hostclaim.Claim{Holder: &hostclaim.Holder{Session: 2, Generation: "g-1"}}
	require.Equal(t, hostclaim.Uncovered, coverage(c, end), "it recorded no end")
	c.Holder.Ended = &hostclaim.SessionEnd{Box: "box-1", Session: 2, Final: end}
	require.Equal(t, hostclaim.CleanReturn, coverage(c, end))
	require.Equal(t, hostclaim.Uncovered, coverage(c, short))
}
