package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

func claimOf(kind hostclaim.Kind, exec string, participants ...string) *hostclaim.Claim {
	return &hostclaim.Claim{Host: "notes.example", Holder: &hostclaim.Holder{Session: 7, WriterBox: exec},
		Op: hostclaim.Op{Kind: kind, Exec: exec, Participants: participants}}
}

func TestARowIsReadyOnlyForTheExecutorThatServes(t *testing.T) {
	selected := claimOf(hostclaim.Creating, "")
	selected.Op.Intent.Selected.Box = "box-1"
	for name, c := range map[string]struct {
		claim *hostclaim.Claim
		want  row
	}{
		"no claim":                {nil, none},
		"a free host":             {&hostclaim.Claim{Op: hostclaim.Op{Kind: hostclaim.Free}}, none},
		"serving here":            {claimOf(hostclaim.Serving, "box-1", "box-1"), ready},
		"serving elsewhere":       {claimOf(hostclaim.Serving, "box-2", "box-2"), none},
		"created here":            {selected, held},
		"the target of a move":    {claimOf(hostclaim.Relocating, hostclaim.None, "box-1"), held},
		"executing a move":        {claimOf(hostclaim.Relocating, "box-1", "box-1"), held},
		"a fenced source":         {claimOf(hostclaim.Relocating, hostclaim.None, "box-2"), none},
		"somebody else's install": {claimOf(hostclaim.Relocating, "box-2", "box-2"), none},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, rowOf(c.claim, "box-1")) })
	}
}

func TestOnlyTheNamedSessionOfTheExecutorRuns(t *testing.T) {
	c := claimOf(hostclaim.Serving, "box-1", "box-1")
	require.True(t, runs(c, "box-1", 7))
	require.False(t, runs(c, "box-1", 6))
	require.False(t, runs(c, "box-2", 7))
	require.False(t, runs(nil, "box-1", 7))
	ended := *c.Holder
	ended.Ended = &hostclaim.SessionEnd{}
	require.False(t, runs(&hostclaim.Claim{Holder: &ended, Op: c.Op}, "box-1", 7))
	moved := claimOf(hostclaim.Relocating, hostclaim.None, "box-2")
	moved.Holder.WriterBox = "box-1"
	require.False(t, runs(moved, "box-1", 7), "the executor was taken away")
}

func TestAProcessThatStoodStillTakesNoWrites(t *testing.T) {
	var b heartbeat
	now := time.Now()
	b.start(now)
	require.NoError(t, b.check(now.Add(suspendedAfter)))
	require.ErrorIs(t, b.check(now.Add(suspendedAfter+1)), errSuspended)
	b.start(now.Add(time.Minute))
	require.NoError(t, b.check(now.Add(time.Minute)))
}
