package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// owing is a bench whose host was served here and now is elsewhere: its claim
// names the box for nothing but its chore.
func owing(t *testing.T) *bench {
	b := newBench(t)
	b.until(served(0))
	require.NoError(t, b.abandon(context.Background()))
	b.rewrite(func(c *hostclaim.Claim) {
		c.Op.Exec, c.Op.ExecEnrollment = "box-2", "enr-2"
		c.Op.Participants = []string{"box-2"}
		c.Obligations = []hostclaim.Obligation{{ID: "park-local.x", Op: c.Op.ID, Kind: hostclaim.ParkLocal,
			Incarnation: c.Holder.Incarnation, Region: c.Holder.Region, Box: "box-1", Owner: "box:box-1"}}
		c.Touched = append(c.Touched, "box-2")
	})
	return b
}

// rewrite puts a claim of another's making in place.
func (b *bench) rewrite(change func(*hostclaim.Claim)) {
	b.t.Helper()
	o, err := hostclaim.Read(b.t.Context(), b.control, testHost)
	require.NoError(b.t, err)
	_, err = hostclaim.Update(b.t.Context(), b.control, o, func(c *hostclaim.Claim) error { change(c); return nil })
	require.NoError(b.t, err)
}

func (b *bench) left() []string {
	var list []string
	for _, name := range []string{"db", "files", "platform", "meta"} {
		if _, err := os.Lstat(filepath.Join(b.dir(), name)); err == nil {
			list = append(list, name)
		}
	}
	return list
}

// TestABoxThatAHostLeftPutsItsCopyAwayAtOnce, so that the next drain may come back.
func TestABoxThatAHostLeftPutsItsCopyAwayAtOnce(t *testing.T) {
	b := owing(t)
	require.NotEmpty(t, b.left())
	require.True(t, names(b.claim(), "box-1"), "it has a supervisor for that")
	turn, err := b.step(t.Context())
	require.NoError(t, err)
	require.Contains(t, turn.Did, "away")
	require.Empty(t, b.left())
	require.False(t, b.claim().Owes("box-1", hostclaim.ParkLocal))
	require.FileExists(t, filepath.Join(b.agent.parked(), testHost+"_park-local.x", "db", "app.db"))
	active, err := b.guard.Active()
	require.NoError(t, err)
	require.Positive(t, active.Stamp, "the stamp does not go back")

	turn, err = b.step(t.Context())
	require.NoError(t, err)
	require.True(t, turn.Done())
	require.True(t, b.unneeded())
	b.poke()
	require.False(t, b.agent.dismiss(b.host), "somebody made it look")
	<-b.wake
	require.True(t, b.agent.dismiss(b.host))
	require.False(t, b.agent.poke(testHost))
}

// TestAChoreThatFailedAnywhereIsDoneAgain: it counts as done only once the files
// are moved.
func TestAChoreThatFailedAnywhereIsDoneAgain(t *testing.T) {
	for name, fault := range map[string]memstore.Fault{"lost": memstore.Lose, "lost answer": memstore.LoseAnswer} {
		t.Run(name, func(t *testing.T) {
			b := owing(t)
			b.control.Inject(memstore.Once(memstore.OpPut, hostclaim.Key(testHost), fault))
			for b.claim().Owes("box-1", hostclaim.ParkLocal) {
				_, _ = b.step(t.Context())
				require.Empty(t, b.left())
				b.restart(b.agent.set.DataDir)
			}
		})
	}
	t.Run("in the way", func(t *testing.T) {
		b := owing(t)
		require.NoError(t, os.WriteFile(b.agent.parked(), nil, 0o600))
		_, err := b.step(t.Context())
		require.Error(t, err)
		require.True(t, b.claim().Owes("box-1", hostclaim.ParkLocal))
	})
}

func TestAChoreWaitsWhileTheBoxIsInvolved(t *testing.T) {
	owed := []hostclaim.Obligation{{Kind: hostclaim.ParkLocal, Box: "box-1", Owner: "box:box-1", ID: "x"}}
	for name, tc := range map[string]struct {
		op   hostclaim.Op
		open bool
	}{
		"serving elsewhere":      {hostclaim.Op{Kind: hostclaim.Serving, Exec: "box-2", Participants: []string{"box-2"}}, true},
		"moving elsewhere":       {hostclaim.Op{Kind: hostclaim.Relocating, Exec: "box-2", Participants: []string{"box-2", "box-3"}}, true},
		"deleted":                {hostclaim.Op{Kind: hostclaim.Parking}, true},
		"serving here":           {hostclaim.Op{Kind: hostclaim.Serving, Exec: "box-1"}, false},
		"taking part":            {hostclaim.Op{Kind: hostclaim.Relocating, Participants: []string{"box-1"}}, false},
		"the source":             {hostclaim.Op{Kind: hostclaim.Relocating, Intent: hostclaim.Intent{Source: hostclaim.Member{Box: "box-1"}}}, false},
		"the target":             {hostclaim.Op{Kind: hostclaim.Relocating, Intent: hostclaim.Intent{Target: hostclaim.Member{Box: "box-1"}}}, false},
		"selected for a create":  {hostclaim.Op{Kind: hostclaim.Creating, Intent: hostclaim.Intent{Selected: hostclaim.Member{Box: "box-1"}}}, false},
		"the source once served": {hostclaim.Op{Kind: hostclaim.Serving, Exec: "box-2", Intent: hostclaim.Intent{Source: hostclaim.Member{Box: "box-1"}}}, true},
	} {
		_, open := choreOf(&hostclaim.Claim{Op: tc.op, Obligations: owed}, "box-1")
		require.Equal(t, tc.open, open, name)
	}
	owed[0].Owner = "region:ie"
	_, open := choreOf(&hostclaim.Claim{Obligations: owed}, "box-1")
	require.False(t, open, "a fenced box's chore is the region's")
}

func TestACopyIsNotPutAwayWhileASessionRuns(t *testing.T) {
	b := owing(t)
	b.run = &session{number: 1}
	_, err := b.clear(t.Context(), hostclaim.Observed{Host: testHost, Claim: b.claim()}, b.claim().Obligations[0])
	require.ErrorContains(t, err, "runs")
	b.run = nil
	require.NotEmpty(t, b.left())
}

func TestWhatWasMovedAsideIsRemovedAfterAWeek(t *testing.T) {
	data := t.TempDir()
	dir, outside := filepath.Join(data, ".parked"), filepath.Join(data, "outside")
	require.NoError(t, removeParked(t.Context(), dir, time.Now()), "nothing was")
	for _, path := range []string{filepath.Join(dir, "old", "files", "a"), filepath.Join(dir, "young", "files", "a"), outside} {
		require.NoError(t, os.MkdirAll(path, 0o700))
	}
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "old", "link")))
	now := time.Now()
	require.NoError(t, os.Chtimes(filepath.Join(dir, "old"), now, now.Add(-parkedFor-time.Hour)))
	require.NoError(t, os.Chtimes(filepath.Join(dir, "young", "files"), now, now.Add(-parkedFor-time.Hour)))
	require.NoError(t, removeParked(t.Context(), dir, now.Add(-parkedFor)))
	require.NoDirExists(t, filepath.Join(dir, "old"))
	require.DirExists(t, filepath.Join(dir, "young", "files", "a"), "the time is that of the move")
	require.DirExists(t, outside)
}
