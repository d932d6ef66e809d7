package hostclaim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

// diedAt is when the boxes of these tests were seen to be gone.
var diedAt = epoch.Add(5 * time.Minute)

func fenceSource(t *testing.T) hostclaim.Transition {
	t.Helper()
	return hostclaim.FenceSource("op-2", lostAt(t, source, diedAt), diedAt)
}

// TestASourceThatDiesBeforeItReleasedMakesAFailoverInPlace also says where it
// goes on: starting waits for the target, releasing has it already.
func TestASourceThatDiesBeforeItReleasedMakesAFailoverInPlace(t *testing.T) {
	for stage, next := range map[string]hostclaim.Phase{
		"starting": hostclaim.Starting, "source ready": hostclaim.Starting, "acknowledged": hostclaim.Starting,
		"releasing": hostclaim.Pinning,
	} {
		t.Run(stage, func(t *testing.T) {
			o := drainUpTo(t, stage)
			before, c := o.Claim, then(t, o, fenceSource(t)).Claim
			require.Equal(t, next, c.Op.Phase)
			require.Equal(t, hostclaim.Failover, c.Op.Reason())
			require.Equal(t, before.Op.Intent, c.Op.Intent)
			require.Equal(t, hostclaim.None, c.Op.Exec)
			require.Equal(t, []string{target.Box}, c.Op.Participants)
			require.NotContains(t, c.Op.Journal.Acks, source.Box)
			require.Equal(t, before.Op.Journal.Acks[target.Box], c.Op.Journal.Acks[target.Box])
			require.Equal(t, before.Holder, c.Holder)
			require.Equal(t, []string{source.Box}, c.Lost)
			want := before.Op.Journal.PhaseSince
			if next == hostclaim.Pinning {
				want = diedAt
			}
			require.Equal(t, want, c.Op.Journal.PhaseSince)
			_, found := stored(t, hostclaim.Observed{Claim: c})
			require.Equal(t, c, found.Claim, "as whoever reads it finds it")
		})
	}
}

func TestAFailoverInPlaceDeclaresItsSourceAndCoversNothing(t *testing.T) {
	o := then(t, drainUpTo(t, "starting"), fenceSource(t))
	refused(t, o, hostclaim.AdmitWriter(readmission(o.Claim, "g-2")), hostclaim.ErrWrongState, "nobody is admitted")
	refused(t, o, hostclaim.PinFailover("op-2", diedAt), hostclaim.ErrWrongState, "acknowledged")
	refused(t, o, ack(source), hostclaim.ErrWrongState, "takes no part")
	refused(t, o, hostclaim.ToReleasing("op-2", diedAt), hostclaim.ErrWrongState, "a failover has no source")
	o = then(t, o, ack(target), hostclaim.PinFailover("op-2", diedAt))
	p := pinOf(o.Claim)
	p.ListedAt = diedAt.Add(relocation.PinDelay - time.Second)
	refused(t, o, hostclaim.JournalPin("op-2", p), hostclaim.ErrWrongState, "before")
	p.ListedAt = diedAt.Add(relocation.PinDelay)
	o = then(t, o, hostclaim.JournalPin("op-2", p), hostclaim.ToInstalling("op-2", "p-1", diedAt), hostclaim.ToInstalled("op-2", built, diedAt))
	o = then(t, o, hostclaim.RecordLocalInstall("op-2", installOf(o.Claim)), hostclaim.ToProbing("op-2", diedAt), hostclaim.BeginProbeAttempt("op-2", 1))
	refused(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Released)), hostclaim.ErrWrongState, "no release is journaled")
	o = then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Uncovered)))
	require.Equal(t, source.Box, o.Claim.PendingLosses()[0].Box)
}

// TestASourceThatDiesAfterItWasLeftIsOnlyLost, in every later phase, before and
// after the target's admission.
func TestASourceThatDiesAfterItWasLeftIsOnlyLost(t *testing.T) {
	later := map[string]hostclaim.Observed{"probe-failed unopened": failedProbe(t, "attempt"), "probe-failed": failedProbe(t, "opened"),
		"target released": targetReleased(t)}
	for _, stage := range []string{"pinning", "pinned", "installing", "installed", "received", "probing", "attempt", "opened", "probed"} {
		later[stage] = drainUpTo(t, stage)
	}
	for stage, o := range later {
		t.Run(stage, func(t *testing.T) {
			before, after := o.Claim, then(t, o, fenceSource(t))
			c := after.Claim
			require.Equal(t, []string{source.Box}, c.Lost)
			require.Equal(t, diedAt, c.Op.Journal.Fences[source.Box].ObservedAt)
			loss := c.EvidenceRefs[0]
			require.Equal(t, []any{"source", uint64(2), "g-1"}, []any{loss.Role, loss.Session, loss.Admission.Generation},
				"the source's own session, also after the target's admission")

			// Nothing else differs.
			rest := c.Clone()
			rest.Gen, rest.Lost, rest.EvidenceRefs, rest.LossRefs, rest.Op.Journal.Fences = before.Gen, nil, nil, nil, nil
			require.Equal(t, before.Clone(), rest)
			refused(t, after, fenceSource(t), hostclaim.ErrAlreadyRecorded, "")
		})
	}
}

// TestAReleasedDrainGoesOnWhenItsSourceDies as a failover in pinning: nobody
// needs the receipt of a box that is gone, and the release still vouches.
func TestAReleasedDrainGoesOnWhenItsSourceDies(t *testing.T) {
	released := drainUpTo(t, "released")
	o := then(t, released, fenceSource(t))
	c, j := o.Claim, o.Claim.Op.Journal
	require.Equal(t, []any{hostclaim.Pinning, hostclaim.None, ""}, []any{c.Op.Phase, c.Op.Exec, c.Op.ExecEnrollment})
	require.Equal(t, hostclaim.Failover, c.Op.Reason())
	require.Equal(t, diedAt, j.PhaseSince)
	require.Equal(t, []string{target.Box}, c.Op.Participants)
	require.Equal(t, released.Claim.Op.Journal.Release, j.Release, "it stays")
	require.Equal(t, released.Claim.Holder, c.Holder)
	refused(t, o, fenceSource(t), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.PinAfterRelease("op-2", stopOf(t, released.Claim), hostclaim.Member{}, diedAt), hostclaim.ErrAlreadyRecorded, "")
	p := pinOf(o.Claim)
	refused(t, o, hostclaim.JournalPin("op-2", p), hostclaim.ErrWrongState, "before")
	p.ListedAt = diedAt.Add(relocation.PinDelay)
	o = then(t, o, hostclaim.JournalPin("op-2", p), hostclaim.ToInstalling("op-2", "p-1", diedAt), hostclaim.ToInstalled("op-2", built, diedAt))
	o = then(t, o, hostclaim.RecordLocalInstall("op-2", installOf(o.Claim)), hostclaim.ToProbing("op-2", diedAt), hostclaim.BeginProbeAttempt("op-2", 1))
	o = then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Released)))
	require.Empty(t, o.Claim.PendingLosses(), "nothing is declared that was released")
}

// TestOfAReleaseAndAFenceInTheSameInstantTheFirstDecides: released first, the
// failover is vouched for; fenced first, the release comes too late.
func TestOfAReleaseAndAFenceInTheSameInstantTheFirstDecides(t *testing.T) {
	s, seen := stored(t, drainUpTo(t, "releasing"))
	release, fence := hostclaim.JournalRelease("op-2", releaseOf(t, seen.Claim, pinned)), fenceSource(t)
	first, err := hostclaim.Update(ctx, s, seen, release)
	require.NoError(t, err)
	_, err = hostclaim.Update(ctx, s, seen, fence)
	require.ErrorIs(t, err, hostclaim.ErrConflict)
	both, err := hostclaim.Update(ctx, s, first, fence)
	require.NoError(t, err)
	require.Equal(t, hostclaim.Pinning, both.Claim.Op.Phase)
	require.Equal(t, hostclaim.Failover, both.Claim.Op.Reason())
	require.NotNil(t, both.Claim.Op.Journal.Release)
	require.Equal(t, []string{source.Box}, both.Claim.Lost)

	s, seen = stored(t, drainUpTo(t, "releasing"))
	first, err = hostclaim.Update(ctx, s, seen, fence)
	require.NoError(t, err)
	_, err = hostclaim.Update(ctx, s, seen, release)
	require.ErrorIs(t, err, hostclaim.ErrConflict)
	_, err = hostclaim.Update(ctx, s, first, release)
	require.ErrorIs(t, err, hostclaim.ErrWrongState)
	refused(t, first, hostclaim.EndSession(source.Box, 2, pinned), hostclaim.ErrWrongState, "no session of box-1")
	require.Nil(t, first.Claim.Op.Journal.Release)
	require.Nil(t, first.Claim.Holder.Ended)

	// In one write it is the same.
	one := then(t, drainUpTo(t, "releasing"), hostclaim.Then(release, fence)).Claim
	require.Equal(t, both.Claim.Op, one.Op)
	refused(t, drainUpTo(t, "releasing"), hostclaim.Then(fence, release), hostclaim.ErrWrongState, "nothing is released")
}

func TestASourceIsFencedOnlyOnEvidenceAboutIt(t *testing.T) {
	o := drainUpTo(t, "acknowledged")
	fence := func(g hostclaim.Gone) hostclaim.Transition { return hostclaim.FenceSource("op-2", g, diedAt) }
	refused(t, o, fence(hostclaim.Gone{}), hostclaim.ErrWrongState, "no evidence that box-1")
	refused(t, o, fence(lostAt(t, target, diedAt)), hostclaim.ErrWrongState, "is about box-2")
	refused(t, o, fence(lostAt(t, spare, diedAt)), hostclaim.ErrWrongState, "is about box-3")
	refused(t, o, fence(lostAt(t, hostclaim.Member{Box: source.Box, Enrollment: "enr-9"}, diedAt)), hostclaim.ErrWrongState, "enr-9")
	refused(t, o, hostclaim.FenceSource("op-1", lostAt(t, source, diedAt), diedAt), hostclaim.ErrStaleOp, "")
	refused(t, upTo(t, "starting"), fence(lostAt(t, source, diedAt)), hostclaim.ErrAlreadyRecorded, "")
	refused(t, drainUpTo(t, "relocated"), fence(lostAt(t, source, diedAt)), hostclaim.ErrWrongState, "serving")
	refused(t, upTo(t, "serving"), hostclaim.FenceSource("op-1", lostAt(t, source, diedAt), diedAt), hostclaim.ErrWrongState, "serving")
}

func TestASourceThatAnOperatorMadeTheTargetDiesAsTheTarget(t *testing.T) {
	o := plant(drainUpTo(t, "installing"), hostclaim.InstallOverdue)
	o = then(t, o, resolve(t, o, source, hostclaim.Proof{}))
	refused(t, o, fenceSource(t), hostclaim.ErrWrongState, "box-1 is the target now: replace it")
	o = then(t, o, hostclaim.ReplaceTarget("op-2", lostAt(t, source, diedAt), spare, "", diedAt))
	require.Equal(t, spare, o.Claim.Op.Target())
	require.Equal(t, "target", o.Claim.EvidenceRefs[0].Role)
	require.Equal(t, spare.Box, carriedOn(t, o).Op.Exec)
}

func TestASourceThatDiesWhileItsHostIsDeletedIsParked(t *testing.T) {
	o := then(t, upTo(t, "serving"), hostclaim.BeginDelete("op-3", "console", source, diedAt))
	c := then(t, o, hostclaim.FenceSource("op-3", lostAt(t, source, diedAt), diedAt)).Claim
	require.Equal(t, hostclaim.Parking, c.Op.Kind)
	require.Equal(t, hostclaim.None, c.Op.Exec)
	require.Equal(t, []string{source.Box}, c.Lost)
	require.Equal(t, "source", c.EvidenceRefs[0].Role)
	require.True(t, c.Owes(source.Box, hostclaim.ParkLocal))
	require.True(t, c.Owes("", hostclaim.ParkReplica))
	refused(t, hostclaim.Observed{Host: testHost, Claim: c}, hostclaim.FenceSource("op-3", lostAt(t, source, diedAt), diedAt), hostclaim.ErrAlreadyRecorded, "")
}

// exhausted is a drain at a stage, with no replacement left.
func exhausted(t *testing.T, stage string) hostclaim.Observed {
	t.Helper()
	o := drainUpTo(t, stage)
	o.Claim.Op.Journal.Replaced, o.Claim.Op.Journal.Replacements = []string{"box-8", "box-9"}, hostclaim.MaxReplacements
	return o
}

func TestATargetThatDiesWithNobodyToFollowLeavesALiveSourceAlone(t *testing.T) {
	dead := lostAt(t, target, diedAt)
	for _, stage := range []string{"starting", "acknowledged", "releasing", "released"} {
		for why, row := range map[hostclaim.StuckReason]struct {
			o     hostclaim.Observed
			fence hostclaim.Transition
			now   time.Time
		}{
			hostclaim.ReplacementsUsedUp: {exhausted(t, stage), hostclaim.FenceExhaustedTarget("op-2", dead, diedAt), diedAt},
			hostclaim.NoSpare: {drainUpTo(t, stage), hostclaim.FenceTargetWithoutSpare("op-2", dead, diedAt.Add(hostclaim.SpareDeadline)),
				diedAt.Add(hostclaim.SpareDeadline)},
		} {
			t.Run(stage+" "+string(why), func(t *testing.T) {
				before, after := row.o.Claim, then(t, row.o, row.fence)
				c := after.Claim
				require.Equal(t, &hostclaim.Stuck{Reason: why, Gen: c.Gen, Since: row.now}, c.Op.Journal.Stuck)
				require.Equal(t, []string{target.Box}, c.Lost)
				require.Equal(t, "target", c.EvidenceRefs[0].Role)
				require.Equal(t, before.Holder, c.Holder)
				require.Equal(t, before.Op.Exec, c.Op.Exec)
				require.Equal(t, before.Op.Phase, c.Op.Phase)
				require.Equal(t, before.Op.Journal.PhaseSince, c.Op.Journal.PhaseSince)
				require.Equal(t, before.Op.Journal.Acks, c.Op.Journal.Acks)
				require.Equal(t, before.Op.Journal.Release, c.Op.Journal.Release)
				require.Equal(t, before.Op.Participants, c.Op.Participants)
				refused(t, after, row.fence, hostclaim.ErrAlreadyRecorded, "")
			})
		}
	}
}

// TestATargetThatDiesWithNobodyToFollowLeavesNobodyExecuting: what was prepared
// is kept until somebody opened it.
func TestATargetThatDiesWithNobodyToFollowLeavesNobodyExecuting(t *testing.T) {
	dead := lostAt(t, target, diedAt)
	for _, stage := range []string{"pinning", "pinned", "installing", "installed", "received", "attempt", "opened"} {
		t.Run(stage, func(t *testing.T) {
			for _, o := range []hostclaim.Observed{
				then(t, exhausted(t, stage), hostclaim.FenceExhaustedTarget("op-2", dead, diedAt)),
				then(t, drainUpTo(t, stage), hostclaim.FenceTargetWithoutSpare("op-2", dead, diedAt.Add(hostclaim.SpareDeadline))),
			} {
				before, c := drainUpTo(t, stage).Claim, o.Claim
				was, j := before.Op.Journal, c.Op.Journal
				require.Equal(t, hostclaim.None, c.Op.Exec)
				require.Equal(t, hostclaim.Pinning, c.Op.Phase)
				require.Equal(t, before.Holder, c.Holder)
				require.Equal(t, before.Touched, c.Touched)
				require.NotNil(t, j.Stuck)
				require.Zero(t, j.InstallStamp)
				require.Nil(t, j.LocalInstall)
				require.Zero(t, j.ProbeAttempts)
				if stage == "opened" {
					require.Nil(t, j.Pin)
					require.Empty(t, j.Prepared)
					require.Nil(t, j.PreparedAuthority)
					require.Nil(t, j.Release, "what the source released is not of the newest writer")
					continue
				}
				require.Equal(t, was.Pin, j.Pin)
				require.Equal(t, was.Prepared, j.Prepared)
				require.Equal(t, was.PreparedStamp, j.PreparedStamp)
				require.Equal(t, was.PreparedAuthority, j.PreparedAuthority)
				require.Equal(t, was.Release, j.Release)
			}
		})
	}
}

func TestWhichWayATargetIsFencedIntoStuckFollowsFromWhatIsLeft(t *testing.T) {
	dead, due := lostAt(t, target, diedAt), diedAt.Add(hostclaim.SpareDeadline)
	left := drainUpTo(t, "installing")
	refused(t, left, hostclaim.FenceExhaustedTarget("op-2", dead, due), hostclaim.ErrWrongState, "0 of 2 replacements are used")
	refused(t, left, hostclaim.FenceTargetWithoutSpare("op-2", dead, due.Add(-time.Second)), hostclaim.ErrWrongState, "a spare is sought for 10m")
	none := exhausted(t, "installing")
	refused(t, none, hostclaim.FenceTargetWithoutSpare("op-2", dead, due), hostclaim.ErrWrongState, "no replacement is left")
	refused(t, none, hostclaim.FenceExhaustedTarget("op-2", lostAt(t, source, diedAt), due), hostclaim.ErrWrongState, "is about box-1")
	refused(t, left, hostclaim.FenceTargetWithoutSpare("op-2", hostclaim.Gone{}, due), hostclaim.ErrWrongState, "no evidence")
	refused(t, none, hostclaim.FenceExhaustedTarget("op-1", dead, due), hostclaim.ErrStaleOp, "")
	refused(t, drainUpTo(t, "relocated"), hostclaim.FenceExhaustedTarget("op-2", dead, due), hostclaim.ErrWrongState, "serving")
}

// TestASpareThatTurnsUpCuresATargetWithoutOne, and takes over what was kept.
func TestASpareThatTurnsUpCuresATargetWithoutOne(t *testing.T) {
	dead, due := lostAt(t, target, diedAt), diedAt.Add(hostclaim.SpareDeadline)
	for stage, phase := range map[string]hostclaim.Phase{
		"starting": hostclaim.Starting, "released": hostclaim.Releasing, "pinned": hostclaim.Pinning,
		"installing": hostclaim.Installing, "installed": hostclaim.Installed, "attempt": hostclaim.Installed, "opened": hostclaim.Pinning,
	} {
		t.Run(stage, func(t *testing.T) {
			o := then(t, drainUpTo(t, stage), hostclaim.FenceTargetWithoutSpare("op-2", dead, due))
			o = then(t, o, hostclaim.ReplaceTarget("op-2", dead, spare, "p-2", due))
			require.Nil(t, o.Claim.Op.Journal.Stuck)
			require.Equal(t, phase, o.Claim.Op.Phase)
			require.Equal(t, spare, o.Claim.Op.Target())
			require.Len(t, o.Claim.EvidenceRefs, 1, "the fence is not consumed twice")
			exec := o.Claim.Op.Exec
			require.Equal(t, slices.Contains([]string{"installing", "installed", "attempt"}, stage), exec == spare.Box, exec)
		})
	}
}

// TestAFenceIntoStuckKeepsAPinThatIsNotCovered: what an operator was to decide
// about the data is still to be decided, and a spare does not take it away.
func TestAFenceIntoStuckKeepsAPinThatIsNotCovered(t *testing.T) {
	o := then(t, drainUpTo(t, "pinning"), hostclaim.MarkStuck("op-2", hostclaim.PinUncovered, phaseAt))
	before := o.Claim.Op.Journal.Stuck
	o = then(t, o, hostclaim.FenceTargetWithoutSpare("op-2", lostAt(t, target, diedAt), diedAt.Add(hostclaim.SpareDeadline)))
	require.Equal(t, before, o.Claim.Op.Journal.Stuck)
	o = then(t, o, hostclaim.ReplaceTarget("op-2", lostAt(t, target, diedAt), spare, "", decidedAt))
	require.Equal(t, before, o.Claim.Op.Journal.Stuck)
	o = then(t, o, resolve(t, o, spare, hostclaim.Proof{}))
	require.Nil(t, o.Claim.Op.Journal.Release, "the decision was about what it does not hold")
}

// TestAFenceIntoStuckReplacesWhatItsTargetOwed: a box that is gone owes no
// release and no install, and the next one goes on by itself.
func TestAFenceIntoStuckReplacesWhatItsTargetOwed(t *testing.T) {
	dead, late := lostAt(t, target, diedAt), diedAt.Add(hostclaim.SpareDeadline)
	for why, o := range map[hostclaim.StuckReason]hostclaim.Observed{
		hostclaim.ReleaseOverdue: failedProbe(t, "opened"), hostclaim.InstallOverdue: drainUpTo(t, "installing"), hostclaim.ReceiptLost: failedProbe(t, "opened"),
	} {
		o = then(t, plant(o, why), hostclaim.FenceTargetWithoutSpare("op-2", dead, late))
		require.Equal(t, hostclaim.NoSpare, o.Claim.Op.Journal.Stuck.Reason, why)
		o = then(t, o, hostclaim.ReplaceTarget("op-2", dead, spare, "p-2", late))
		require.Nil(t, o.Claim.Op.Journal.Stuck, why)
		require.Equal(t, spare.Box, carriedOn(t, o).Op.Exec, why)
	}

	// The source's release does not hand the host to a target that is gone.
	o := then(t, plant(drainUpTo(t, "releasing"), hostclaim.ReleaseOverdue), hostclaim.FenceTargetWithoutSpare("op-2", dead, late))
	o = then(t, o, hostclaim.JournalRelease("op-2", releaseOf(t, o.Claim, pinned)))
	require.Equal(t, hostclaim.NoSpare, o.Claim.Op.Journal.Stuck.Reason)
}
