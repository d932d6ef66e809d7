package hostrelocate_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/record/recordtest"
)

// lossless checks that nothing was declared, and that the last words of the
// source are on the box that serves.
func (w *world) lossless() {
	w.tb.Helper()
	c := w.claim().Claim
	opened := map[string]int{}
	for _, r := range c.Holder.Admissions {
		require.Nil(w.tb, r.WritesLost, "session %d", r.Session)
		opened[r.Generation]++
		require.Equal(w.tb, 1, opened[r.Generation])
	}
	last, err := os.ReadFile(filepath.Join(w.disks[c.Op.Exec].root, "files", "last"))
	require.NoError(w.tb, err)
	require.Equal(w.tb, "words", string(last))
	require.Equal(w.tb, 1, w.disks[source.Box].flushes)
}

func TestADrainIsTenClaimWritesAndLosesNothing(t *testing.T) {
	w := served(t)
	before := len(w.claimWrites())
	require.True(t, w.run(50))
	w.lossless()
	var phases []hostclaim.Phase
	for _, c := range w.claimWrites()[before:] {
		phases = append(phases, c.Op.Phase)
	}
	require.Equal(t, []hostclaim.Phase{hostclaim.Starting, hostclaim.Starting, hostclaim.Starting, hostclaim.Releasing, hostclaim.Releasing,
		hostclaim.Installing, hostclaim.Installed, hostclaim.Probing, hostclaim.Probing, ""}, phases)
	c := w.claim().Claim
	require.Equal(t, hostclaim.Released, c.Holder.Admissions[1].Coverage)
	require.True(t, c.Owes(source.Box, hostclaim.ParkLocal))

	require.Equal(t, c.Op.ID, w.disks[source.Box].entered)
	turn, err := w.participantOn(source).Step(ctx, w.claim())
	require.NoError(t, err)
	require.True(t, turn.Done())
	require.Empty(t, w.disks[source.Box].entered, "it left the operation that is over")
}

// TestAnyRequestOfADrainMayFailAndAnyDriverTakesOver loses each request of a
// drain in turn, before and after its effect. The drivers have no memory, so each
// failure is also a crash right there.
func TestAnyRequestOfADrainMayFailAndAnyDriverTakesOver(t *testing.T) {
	for when, fault := range faults {
		for where, inData := range map[string]bool{"control": false, "data": true} {
			t.Run(when+" "+where, func(t *testing.T) {
				t.Parallel()
				everyRequest(t, served, inData, fault, (*world).lossless)
			})
		}
	}
}

func TestADrainStartsOnlyBetweenActiveBoxesOfTheRegion(t *testing.T) {
	w := served(t)
	w.quarantine(spare)
	for want, m := range map[string]hostclaim.Member{
		"target box-7: it is not enrolled":            {Box: "box-7", Enrollment: "enr-7"},
		"target box-2: it is enrolled as enr-2":       {Box: target.Box, Enrollment: "enr-0"},
		"target box-3: it is quarantined, not an act": spare,
		"source and target are both box-1":            source,
	} {
		_, err := w.worker().Drain(ctx, w.claim(), hostclaim.Drain, m)
		require.ErrorContains(t, err, want)
	}
	_, err := w.worker().Drain(ctx, w.claim(), hostclaim.Failover, target)
	require.ErrorIs(t, err, hostclaim.ErrWrongState)
	w.quarantine(source)
	_, err = w.worker().Drain(ctx, w.claim(), hostclaim.Drain, target)
	require.ErrorIs(t, err, hostrelocate.ErrRefused)
	require.Equal(t, hostclaim.Serving, w.claim().Claim.Op.Kind)

	worker := w.worker()
	worker.Self.Enrollment = "enr-0"
	_, err = worker.Drain(ctx, w.claim(), hostclaim.Drain, target)
	require.ErrorContains(t, err, "worker box-9")
}

func TestWarmRecordIsStoredAsItStands(t *testing.T) {
	recordtest.Golden(t, "warm", hostrelocate.WarmRecord{V: 1, Host: host, Op: "op-2", Box: target.Box, Enrollment: target.Enrollment,
		Generation: "g-1", TXID: 41, Bytes: 4096, At: time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)})
}

func FuzzDecodeWarmRecord(f *testing.F) {
	recordtest.Fuzz(f, hostrelocate.WarmRecord{V: 1, Host: host}, hostrelocate.WarmRecord{})
}
