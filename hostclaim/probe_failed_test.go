package hostclaim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

func TestAnAttemptIsGivenUpOnlyOnceItIsDue(t *testing.T) {
	for _, stage := range []string{"probing", "opened"} {
		o := drainUpTo(t, stage)
		early := hostclaim.ToProbeFailed("op-2", probeFailedAt.Add(-time.Second))
		refused(t, o, early, hostclaim.ErrWrongState, "more may until")
		then(t, o, hostclaim.ToProbeFailed("op-2", probeFailedAt))
		o = then(t, o, hostclaim.Then(hostclaim.BeginProbeAttempt("op-2", 1), hostclaim.BeginProbeAttempt("op-2", 2), hostclaim.BeginProbeAttempt("op-2", 3)))
		refused(t, o, early, hostclaim.ErrWrongState, "more may until")
		then(t, o, hostclaim.ToProbeFailed("op-2", probeFailedAt))
		a := openingOf(o.Claim, hostclaim.Released)
		if stage == "opened" {
			a = fresh(o.Claim, "g-2")
		}
		o = then(t, o, hostclaim.AdmitWriter(a))
		require.Equal(t, hostclaim.MaxProbeAttempts, o.Claim.Op.Journal.ProbeAdmission)
		then(t, o, hostclaim.ToProbeFailed("op-2", phaseAt.Add(time.Second)))
	}
	refused(t, drainUpTo(t, "probed"), hostclaim.ToProbeFailed("op-2", probeFailedAt), hostclaim.ErrWrongState, "has passed its probe")
	refused(t, drainUpTo(t, "received"), hostclaim.ToProbeFailed("op-2", probeFailedAt), hostclaim.ErrWrongState, "phase is \"installed\"")
	refused(t, failedProbe(t, "opened"), hostclaim.ToProbeFailed("op-2", probeFailedAt), hostclaim.ErrAlreadyRecorded, "")
	refused(t, drainUpTo(t, "probing"), hostclaim.ToProbeFailed("op-1", probeFailedAt), hostclaim.ErrStaleOp, "")
}

func TestAFailedProbeKeepsTheSourcesReleaseOnlyWhileNothingWasOpened(t *testing.T) {
	opened, unopened := failedProbe(t, "opened").Claim, failedProbe(t, "attempt").Claim
	require.Nil(t, opened.Op.Journal.Release, "the target has a session of its own to release")
	require.Equal(t, drainUpTo(t, "attempt").Claim.Op.Journal.Release, unopened.Op.Journal.Release)
	for _, c := range []*hostclaim.Claim{opened, unopened} {
		require.Equal(t, hostclaim.ProbeFailed, c.Op.Phase)
		require.Equal(t, probeFailedAt, c.Op.Journal.PhaseSince)
		require.Equal(t, target.Box, c.Op.Exec)
		require.Equal(t, "p-1", c.Op.Journal.Prepared)
		require.NotNil(t, c.Op.Journal.Pin)
	}
	refused(t, failedProbe(t, "attempt"), hostclaim.JournalRelease("op-2", releaseOf(t, unopened, pinned)), hostclaim.ErrWrongState, "nothing is released")
}

func TestAFailedTargetHandsOverOnItsOwnRelease(t *testing.T) {
	o := targetReleased(t)
	pin := func(next hostclaim.Member) hostclaim.Transition {
		return hostclaim.PinAfterRelease("op-2", stopOf(t, o.Claim), next, probeFailedAt)
	}
	refused(t, o, pin(hostclaim.Member{}), hostclaim.ErrWrongState, "next")
	refused(t, o, pin(target), hostclaim.ErrWrongState, "is the target already")
	refused(t, o, pin(source), hostclaim.ErrWrongState, "is the source")
	early := failedProbe(t, "opened")
	refused(t, early, hostclaim.PinAfterRelease("op-2", stopOf(t, early.Claim), spare, probeFailedAt), hostclaim.ErrWrongState, "has not released")
	unopened := failedProbe(t, "attempt")
	refused(t, unopened, hostclaim.PinAfterRelease("op-2", stopOf(t, unopened.Claim), spare, probeFailedAt), hostclaim.ErrWrongState, "has not released")

	before, c := o.Claim, then(t, o, pin(spare)).Claim
	require.Equal(t, hostclaim.None, c.Op.Exec)
	require.Equal(t, hostclaim.Pinning, c.Op.Phase)
	require.Equal(t, before.Holder, c.Holder)
	require.Equal(t, before.Touched, c.Touched)
	require.Equal(t, []string{source.Box, spare.Box}, c.Op.Participants)
	require.Equal(t, hostclaim.Journal{PhaseSince: probeFailedAt, TargetSince: probeFailedAt, Target: spare, Replaced: []string{target.Box},
		Replacements: 1, Acks: map[string]string{source.Box: source.Enrollment}, Release: before.Op.Journal.Release, PreparedOpened: "p-1"},
		c.Op.Journal)
}

func TestWhatAFailedTargetReleasedIsCarriedOver(t *testing.T) {
	o := targetReleased(t)
	o = then(t, o, hostclaim.PinAfterRelease("op-2", stopOf(t, o.Claim), spare, probeFailedAt))
	p := pinOf(o.Claim)
	p.Position = written
	p.Position.TXID--
	refused(t, o, hostclaim.JournalPin("op-2", p), hostclaim.ErrWrongState, "does not reach what session 12 of box-2 ended at")
	p.Position = written
	o = then(t, o, hostclaim.JournalPin("op-2", p))
	refused(t, o, hostclaim.ToInstalling("op-2", "p-2", probeFailedAt), hostclaim.ErrWrongState, "acknowledged")
	o = then(t, o, ack(spare), hostclaim.ToInstalling("op-2", "p-2", probeFailedAt))
	require.Equal(t, spare.Box, o.Claim.Op.Exec)
	require.Equal(t, o.Claim.Gen, o.Claim.Holder.Stamp)
	a := built
	a.Generation, a.SnapshotTXID, a.SourceFilesSeq = "p-2", written.TXID, written.FilesSeq
	o = then(t, o, hostclaim.ToInstalled("op-2", a, probeFailedAt))
	o = then(t, o, hostclaim.RecordLocalInstall("op-2", installOf(o.Claim)), hostclaim.ToProbing("op-2", probeFailedAt), hostclaim.BeginProbeAttempt("op-2", 1))
	o = then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Released)))
	session := o.Claim.Holder.Session
	o = then(t, o, hostclaim.PublishGeneration(spare.Box, session), hostclaim.RecordProbe("op-2", spare.Box, session), hostclaim.CompleteRelocation("op-2"))
	require.Empty(t, o.Claim.PendingLosses())
	require.ElementsMatch(t, []string{"g-1", "p-1"}, deadGenerations(o.Claim))
	require.True(t, o.Claim.Owes(source.Box, hostclaim.ParkLocal))
	require.True(t, o.Claim.Owes(target.Box, hostclaim.ParkLocal))
	require.False(t, o.Claim.Owes(spare.Box, hostclaim.ParkLocal))
}

func TestAProbeAdmissionThatComesAfterProbeFailedAdmitsNobody(t *testing.T) {
	s, box := stored(t, drainUpTo(t, "attempt"))
	admit := hostclaim.AdmitWriter(openingOf(box.Claim, hostclaim.Released))
	worker, err := hostclaim.Update(ctx, s, box, hostclaim.ToProbeFailed("op-2", probeFailedAt))
	require.NoError(t, err)
	_, err = hostclaim.Update(ctx, s, box, admit)
	require.ErrorIs(t, err, hostclaim.ErrConflict)
	refused(t, worker, admit, hostclaim.ErrWrongState, "nobody is admitted in relocating probe-failed")

	// Had it come first, the worker would have found a session to release.
	s, worker = stored(t, drainUpTo(t, "attempt"))
	box, err = hostclaim.Update(ctx, s, worker, admit)
	require.NoError(t, err)
	_, err = hostclaim.Update(ctx, s, worker, hostclaim.ToProbeFailed("op-2", probeFailedAt))
	require.ErrorIs(t, err, hostclaim.ErrConflict)
	box = then(t, box, hostclaim.ToProbeFailed("op-2", probeFailedAt))
	then(t, box, hostclaim.JournalRelease("op-2", releaseOf(t, box.Claim, written)))
}
