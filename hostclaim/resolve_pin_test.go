package hostclaim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/resolution/resolutiontest"
)

// accepting is a decision by an operator who accepts that no data is left.
func accepting(t *testing.T, o hostclaim.Observed, m hostclaim.Member) hostclaim.Transition {
	t.Helper()
	rec := decision(o, m)
	rec.AcceptEmpty = true
	return hostclaim.Resolve("op-2", resolutiontest.Resolution(t, rec), hostclaim.Proof{}, decidedAt)
}

// emptyPin carries nothing over.
func emptyPin(c *hostclaim.Claim) hostclaim.Transition {
	p := pinOf(c)
	p.ListedAt, p.Position, p.FilesSHA256 = decidedAt, hostclaim.Position{}, ""
	return hostclaim.JournalPin(c.Op.ID, p)
}

// TestADamagedPinIsNotKeptForEver: what nobody can build from is chosen afresh,
// or given up.
func TestADamagedPinIsNotKeptForEver(t *testing.T) {
	for _, stage := range []string{"installing", "installed"} {
		t.Run(stage, func(t *testing.T) {
			o := plant(upTo(t, stage), hostclaim.InstallOverdue)
			plain := then(t, o, resolve(t, o, target, hostclaim.Proof{}))
			require.Equal(t, []any{hostclaim.Pinning, hostclaim.None}, []any{plain.Claim.Op.Phase, plain.Claim.Op.Exec})
			require.Nil(t, plain.Claim.Op.Journal.Pin)
			require.Equal(t, []string{"p-1"}, plain.Claim.Op.Journal.Abandoned)
			refused(t, plain, emptyPin(plain.Claim), hostclaim.ErrWrongState, "an empty baseline needs")
			require.Equal(t, target.Box, carriedOn(t, plain).Op.Exec, "from another pin")

			o = then(t, o, accepting(t, o, target))
			o = then(t, o, emptyPin(o.Claim))
			served := carriedOn(t, o)
			require.Equal(t, target.Box, served.Op.Exec)
			require.Equal(t, uint64(0), served.PendingLosses()[0].RemoteMaxTXID)
		})
	}
}

// TestAReleaseOutlivesADecisionThatIsNotAboutIt: that nothing is left is
// believed only once the pin was found not to reach it.
func TestAReleaseOutlivesADecisionThatIsNotAboutIt(t *testing.T) {
	o := plant(drainUpTo(t, "installing"), hostclaim.InstallOverdue)
	o = then(t, o, accepting(t, o, target))
	require.NotNil(t, o.Claim.Op.Journal.Release)
	require.NotNil(t, o.Claim.Holder.Ended)
	refused(t, o, emptyPin(o.Claim), hostclaim.ErrWrongState, "does not reach what session 2 of box-1 ended at")
	o = then(t, o, hostclaim.MarkStuck("op-2", hostclaim.PinUncovered, decidedAt))
	o = then(t, o, resolve(t, o, target, hostclaim.Proof{}))
	require.Nil(t, o.Claim.Op.Journal.Release)
	require.Nil(t, o.Claim.Holder.Ended)
	o = then(t, o, emptyPin(o.Claim))
	require.Equal(t, target.Box, carriedOn(t, o).Op.Exec)
}

// TestThatNothingIsLeftIsNotAcceptedOfALaterSession: the store was whole again,
// and what the target wrote since is not given up by that decision.
func TestThatNothingIsLeftIsNotAcceptedOfALaterSession(t *testing.T) {
	o := then(t, drainUpTo(t, "pinning"), hostclaim.MarkStuck("op-2", hostclaim.PinUncovered, phaseAt))
	o = then(t, o, accepting(t, o, target))
	open := func(pin hostclaim.Transition, build hostclaim.PreparedAuthority) hostclaim.Observed {
		o := then(t, o, pin, hostclaim.ToInstalling("op-2", "p-1", phaseAt), hostclaim.ToInstalled("op-2", build, phaseAt))
		o = then(t, o, hostclaim.RecordLocalInstall("op-2", installOf(o.Claim)), hostclaim.ToProbing("op-2", phaseAt), hostclaim.BeginProbeAttempt("op-2", 1))
		return then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Uncovered)), hostclaim.BeginProbeAttempt("op-2", 2))
	}
	again := func(c *hostclaim.Claim) hostclaim.Transition {
		a := fresh(c, "g-2")
		a.Baseline = hostclaim.Position{}
		return hostclaim.AdmitWriter(a)
	}
	whole := open(hostclaim.JournalPin("op-2", pinOf(o.Claim)), built)
	require.False(t, whole.Claim.Op.Journal.AcceptEmpty)
	refused(t, whole, again(whole.Claim), hostclaim.ErrWrongState, "an empty baseline needs")

	empty := built
	empty.SnapshotTXID, empty.SourceFilesSeq = 0, 0
	nothing := open(emptyPin(o.Claim), empty)
	require.True(t, nothing.Claim.Op.Journal.AcceptEmpty)
	then(t, nothing, again(nothing.Claim))
}

// TestAnOperationWithoutATargetTakesOneFromAnOperator.
func TestAnOperationWithoutATargetTakesOneFromAnOperator(t *testing.T) {
	o := then(t, withoutTarget(t), hostclaim.MarkStuck("op-2", hostclaim.NoSpare, epoch.Add(hostclaim.SpareDeadline)))
	refused(t, o, resolve(t, o, source, hostclaim.Proof{}), hostclaim.ErrWrongState, "box-1 is lost")
	o = then(t, o, resolve(t, o, spare, hostclaim.Proof{}))
	require.Equal(t, spare, o.Claim.Op.Target())
	require.Empty(t, o.Claim.Op.Journal.Replaced)
	require.Zero(t, o.Claim.Op.Journal.Replacements, "nobody was replaced")
	require.Equal(t, spare.Box, carriedOn(t, o).Op.Exec)
}

// TestAnOperatorCorrectsTheEnrollmentOfABoxThatHasNotAcknowledged: a typing
// error would otherwise shut the box out of the operation.
func TestAnOperatorCorrectsTheEnrollmentOfABoxThatHasNotAcknowledged(t *testing.T) {
	typo := hostclaim.Member{Box: spare.Box, Enrollment: "enr-8"}
	o := plant(drainUpTo(t, "installing"), hostclaim.NoSpare)
	o = then(t, o, resolve(t, o, typo, hostclaim.Proof{}))
	refused(t, o, ack(spare), hostclaim.ErrWrongState, "is enrolled as enr-8")
	o = plant(o, hostclaim.NoSpare)
	o = then(t, o, resolve(t, o, spare, hostclaim.Proof{}))
	require.Equal(t, spare, o.Claim.Op.Target())
	require.Equal(t, 1, o.Claim.Op.Journal.Replacements, "the same box costs none")

	o = plant(then(t, o, ack(spare)), hostclaim.NoSpare)
	refused(t, o, resolve(t, o, typo, hostclaim.Proof{}), hostclaim.ErrWrongState, "box-3 is enrolled as enr-3 in this operation")
	other := hostclaim.Member{Box: source.Box, Enrollment: "enr-9"}
	starting := plant(drainUpTo(t, "starting"), hostclaim.NoSpare)
	refused(t, starting, resolve(t, starting, other, hostclaim.Proof{}), hostclaim.ErrWrongState, "box-1 is enrolled as enr-1 in this operation")
	refused(t, o, resolve(t, o, other, hostclaim.Proof{}), hostclaim.ErrWrongState, "box-1 is enrolled as enr-1 in this operation")
}

// TestThatNothingIsLeftIsNotAcceptedOfWhatWasPublishedSince: a target that began
// from nothing, by an operator's word, and was ready has data of its own.
func TestThatNothingIsLeftIsNotAcceptedOfWhatWasPublishedSince(t *testing.T) {
	o := then(t, drainUpTo(t, "pinning"), hostclaim.MarkStuck("op-2", hostclaim.PinUncovered, phaseAt))
	o = then(t, o, accepting(t, o, target))
	o = then(t, o, emptyPin(o.Claim), hostclaim.ToInstalling("op-2", "p-1", phaseAt))
	empty := built
	empty.SnapshotTXID, empty.SourceFilesSeq = 0, 0
	o = then(t, o, hostclaim.ToInstalled("op-2", empty, phaseAt))
	o = then(t, o, hostclaim.RecordLocalInstall("op-2", installOf(o.Claim)), hostclaim.ToProbing("op-2", phaseAt), hostclaim.BeginProbeAttempt("op-2", 1))
	o = then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Uncovered)))
	o = then(t, o, hostclaim.PublishGeneration(target.Box, o.Claim.Holder.Session))
	o = then(t, o, hostclaim.ReplaceTarget("op-2", lostAt(t, target, diedAt), spare, "", diedAt))
	refused(t, o, emptyPin(o.Claim), hostclaim.ErrWrongState, "an empty baseline needs")
}

func TestNobodyIsAbandonedWhereThereIsNoTarget(t *testing.T) {
	refused(t, withoutTarget(t), hostclaim.AbandonTarget("op-2", spare, "", epoch), hostclaim.ErrWrongState, "owes no progress")
}
