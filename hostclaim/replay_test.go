package hostclaim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/resolution"
	"github.com/carlosframework/regionha/resolution/resolutiontest"
)

// TestARelocationThatRunsIsRecordedOnlyAsItWasStarted: whoever started another
// one under the same id is told so.
func TestARelocationThatRunsIsRecordedOnlyAsItWasStarted(t *testing.T) {
	drain, failover := drainUpTo(t, "starting"), upTo(t, "starting")
	refused(t, drain, hostclaim.StartRelocation(relocation, hostclaim.Drain), hostclaim.ErrAlreadyRecorded, "")
	refused(t, failover, hostclaim.StartFailover(relocation, hostclaim.Gone{}), hostclaim.ErrAlreadyRecorded, "")
	refused(t, drain, hostclaim.StartRelocation(relocation, hostclaim.Rebalance), hostclaim.ErrWrongState, "cannot be relocated")
	refused(t, drain, hostclaim.StartFailover(relocation, hostclaim.Gone{}), hostclaim.ErrWrongState, "cannot be relocated")
	refused(t, failover, hostclaim.StartRelocation(relocation, hostclaim.Drain), hostclaim.ErrWrongState, "cannot be relocated")
	source, target := relocation, relocation
	source.Source.Enrollment, target.Target = "enr-9", spare
	for _, r := range []hostclaim.Relocation{source, target} {
		refused(t, drain, hostclaim.StartRelocation(r, hostclaim.Drain), hostclaim.ErrWrongState, "cannot be relocated")
		refused(t, failover, hostclaim.StartFailover(r, hostclaim.Gone{}), hostclaim.ErrWrongState, "cannot be relocated")
	}

	// It stays what it was started as, whatever became of it.
	refused(t, then(t, drain, fenceSource(t)), hostclaim.StartRelocation(relocation, hostclaim.Drain), hostclaim.ErrAlreadyRecorded, "")
	refused(t, upTo(t, "relocated"), hostclaim.StartFailover(relocation, hostclaim.Gone{}), hostclaim.ErrWrongState, "operation op-2 is over")

	free := then(t, upTo(t, "creating"), hostclaim.CancelCreate("op-1", "late"))
	refused(t, free, hostclaim.StartRelocation(hostclaim.Relocation{}, ""), hostclaim.ErrWrongState, "free cannot be relocated")
}

// TestHowAnOperationEndedAnswersForItsOwnStepAlone: its journal is gone, its
// outcome stays.
func TestHowAnOperationEndedAnswersForItsOwnStepAlone(t *testing.T) {
	stuck := plant(drainUpTo(t, "starting"), hostclaim.NoSpare)
	decided := resolve(t, stuck, source, hostclaim.Proof{})
	late := relocation.Now.Add(hostclaim.DrainDeadline)
	steps := map[hostclaim.Outcome]hostclaim.Transition{
		hostclaim.Completed: hostclaim.CompleteRelocation("op-2"),
		hostclaim.Cancelled: hostclaim.CancelDrain("op-2", late),
		hostclaim.Resolved:  decided,
	}
	for how, o := range map[hostclaim.Outcome]hostclaim.Observed{
		hostclaim.Completed: drainUpTo(t, "relocated"),
		hostclaim.Cancelled: then(t, drainUpTo(t, "starting"), steps[hostclaim.Cancelled]),
		hostclaim.Resolved:  then(t, stuck, decided),
	} {
		require.Equal(t, how, o.Claim.Op.Outcome)
		for other, s := range steps {
			if other == how {
				refused(t, o, s, hostclaim.ErrAlreadyRecorded, "")
				continue
			}
			refused(t, o, s, hostclaim.ErrWrongState, "serving has no such step")
		}
		for _, s := range []hostclaim.Transition{hostclaim.CompleteRelocation("op-3"), hostclaim.CancelDrain("op-3", late),
			hostclaim.Resolve("op-3", resolution.Resolution{}, hostclaim.Proof{}, late)} {
			refused(t, o, s, hostclaim.ErrStaleOp, "")
		}
	}
	require.Empty(t, upTo(t, "serving").Claim.Op.Outcome, "a create has none")

	// The next operation has none until it ends.
	next := hostclaim.BeginDelete("op-9", "console", target, decidedAt)
	require.Empty(t, then(t, drainUpTo(t, "relocated"), next).Claim.Op.Outcome)
}

func TestOnlyAFailoverWasPinnedAsOne(t *testing.T) {
	pin := hostclaim.PinFailover("op-2", diedAt)
	refused(t, upTo(t, "pinning"), pin, hostclaim.ErrAlreadyRecorded, "")
	refused(t, then(t, drainUpTo(t, "releasing"), fenceSource(t)), pin, hostclaim.ErrAlreadyRecorded, "")
	refused(t, drainUpTo(t, "pinning"), pin, hostclaim.ErrWrongState, "phase is \"pinning\"")
	vacant := drainUpTo(t, "acknowledged")
	vacant.Claim.Op.Exec, vacant.Claim.Op.ExecEnrollment = hostclaim.None, ""
	refused(t, vacant, pin, hostclaim.ErrWrongState, "a drain is pinned after its release")
}

func TestATargetThatWasReplacedWasNotAbandoned(t *testing.T) {
	o := then(t, drainUpTo(t, "installing"), hostclaim.ReplaceTarget("op-2", lostAt(t, target, diedAt), spare, "p-2", diedAt))
	refused(t, o, hostclaim.AbandonTarget("op-2", spare, "p-9", diedAt), hostclaim.ErrWrongState, "may make progress until")
	refused(t, drainUpTo(t, "installing"), hostclaim.AbandonTarget("op-2", target, "p-9", decidedAt), hostclaim.ErrWrongState, "is the target already")
}

// TestAFenceIsRecordedOnlyForWhoeverHoldsItsEvidence, in each step that relies
// on one.
func TestAFenceIsRecordedOnlyForWhoeverHoldsItsEvidence(t *testing.T) {
	late := diedAt.Add(hostclaim.SpareDeadline)
	dead := lostAt(t, target, diedAt)
	for name, row := range map[string]struct {
		o    hostclaim.Observed
		step func(hostclaim.Gone) hostclaim.Transition
		own  hostclaim.Gone
	}{
		"a target without spare": {then(t, drainUpTo(t, "acknowledged"), hostclaim.FenceTargetWithoutSpare("op-2", dead, late)),
			func(g hostclaim.Gone) hostclaim.Transition { return hostclaim.FenceTargetWithoutSpare("op-2", g, late) }, dead},
		"an exhausted target": {then(t, exhausted(t, "pinning"), hostclaim.FenceExhaustedTarget("op-2", dead, diedAt)),
			func(g hostclaim.Gone) hostclaim.Transition { return hostclaim.FenceExhaustedTarget("op-2", g, diedAt) }, dead},
		"a source": {then(t, drainUpTo(t, "opened"), fenceSource(t)),
			func(g hostclaim.Gone) hostclaim.Transition { return hostclaim.FenceSource("op-2", g, diedAt) }, lostAt(t, source, diedAt)},
		"a deletion's": {then(t, beingDeleted(t), fenceSource(t)),
			func(g hostclaim.Gone) hostclaim.Transition { return hostclaim.FenceSource("op-2", g, diedAt) }, lostAt(t, source, diedAt)},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, row.o, row.step(row.own), hostclaim.ErrAlreadyRecorded, "")
			refused(t, row.o, row.step(hostclaim.Gone{}), hostclaim.ErrWrongState, "")
			refused(t, row.o, row.step(lostAt(t, spare, diedAt)), hostclaim.ErrWrongState, "")
		})
	}
}

func TestAHandOverOfNoGenerationWasNeverMade(t *testing.T) {
	nothing := hostclaim.ToInstalling("op-2", "", epoch)
	refused(t, drainUpTo(t, "starting"), nothing, hostclaim.ErrWrongState, "phase is \"starting\"")
	refused(t, drainUpTo(t, "pinned"), nothing, hostclaim.ErrWrongState, "generation")
	refused(t, drainUpTo(t, "installing"), hostclaim.ToInstalling("op-2", "p-1", epoch), hostclaim.ErrAlreadyRecorded, "")
	kept := then(t, exhausted(t, "installing"), hostclaim.FenceExhaustedTarget("op-2", lostAt(t, target, diedAt), diedAt))
	refused(t, kept, hostclaim.ToInstalling("op-2", "p-1", epoch), hostclaim.ErrWrongState, "stuck")
	free := then(t, upTo(t, "creating"), hostclaim.CancelCreate("op-1", "late"))
	refused(t, free, hostclaim.ToInstalling("", "", epoch), hostclaim.ErrWrongState, "free has no such step")
}

func TestAResolutionThatWasUsedIsRecorded(t *testing.T) {
	o := plant(drainUpTo(t, "installing"), hostclaim.InstallOverdue)
	decided := hostclaim.Resolve("op-2", resolutiontest.Resolution(t, decision(o, spare)), hostclaim.Proof{}, decidedAt)
	refused(t, then(t, o, decided), decided, hostclaim.ErrAlreadyRecorded, "")
}
