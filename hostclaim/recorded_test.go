package hostclaim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

// TestAStepIsRecordedInItsOwnOperationAlone: for any other it is refused, so that
// a late caller never takes another's step for its own.
func TestAStepIsRecordedInItsOwnOperationAlone(t *testing.T) {
	residue := []hostclaim.Residue{{Incarnation: "inc-1", Region: testRegion}}
	swept := then(t, freed(t), hostclaim.BeginSweep("op-9", "worker", residue, epoch))
	refused(t, swept, hostclaim.BeginSweep("op-8", "worker", residue, epoch), hostclaim.ErrWrongState, "parking is not swept")
	refused(t, upTo(t, "serving"), hostclaim.BeginSweep("op-1", "worker", residue, epoch), hostclaim.ErrWrongState, "serving is not swept")

	refused(t, upTo(t, "created"), hostclaim.CompleteCreate("op-1", target.Box, target.Enrollment), hostclaim.ErrWrongState, "serving cannot be completed")
	refused(t, upTo(t, "created"), hostclaim.CompleteCreate("op-1", source.Box, "enr-9"), hostclaim.ErrWrongState, "serving cannot be completed")
	refused(t, upTo(t, "creating"), hostclaim.CompleteCreate("op-1", "", ""), hostclaim.ErrWrongState, "was not selected")

	installing := drainUpTo(t, "installing")
	refused(t, installing, hostclaim.ToInstalling("op-2", "p-1", phaseAt), hostclaim.ErrAlreadyRecorded, "")
	refused(t, installing, hostclaim.ToInstalling("op-1", "p-1", phaseAt), hostclaim.ErrStaleOp, "op-1")
	refused(t, installing, hostclaim.ToInstalling("op-2", "p-9", phaseAt), hostclaim.ErrWrongState, "phase is")
	refused(t, drainUpTo(t, "starting"), hostclaim.ToInstalling("op-2", "", phaseAt), hostclaim.ErrWrongState, "phase is")
	kept := then(t, installing, hostclaim.FenceTargetWithoutSpare("op-2", lostAt(t, target, diedAt), diedAt.Add(hostclaim.SpareDeadline)))
	require.Equal(t, "p-1", kept.Claim.Op.Journal.Prepared)
	refused(t, kept, hostclaim.ToInstalling("op-2", "p-1", phaseAt), hostclaim.ErrWrongState, "stuck")

	refused(t, drainUpTo(t, "starting"), hostclaim.AbandonTarget("op-2", target, "", decidedAt), hostclaim.ErrWrongState, "is the target already")
}

// TestAFenceOfADeletedHostsExecutorIsRecordedWhereItParkedTheHost: not where the
// executor had released it, nor for another operation.
func TestAFenceOfADeletedHostsExecutorIsRecordedWhereItParkedTheHost(t *testing.T) {
	fence := func(op string, m hostclaim.Member) hostclaim.Transition {
		return hostclaim.FenceSource(op, lostAt(t, m, epoch), epoch)
	}
	fenced := parked(t)
	refused(t, fenced, fence("op-9", source), hostclaim.ErrAlreadyRecorded, "")
	refused(t, fenced, fence("op-8", source), hostclaim.ErrStaleOp, "op-8")
	refused(t, fenced, fence("op-9", target), hostclaim.ErrWrongState, "parking")

	o := deleting(t)
	release, receipt := stopped(t, o.Claim, source, finalOfSource)
	o = then(t, o, hostclaim.JournalRelease("op-9", release), hostclaim.ParkAfterRelease("op-9", receipt))
	refused(t, o, fence("op-9", source), hostclaim.ErrWrongState, "parking")
	refused(t, drainUpTo(t, "starting"), fence("op-1", source), hostclaim.ErrStaleOp, "op-1")
}

func TestOnlyTheCurrentSessionOnItsExecutorPublishes(t *testing.T) {
	for _, row := range []struct {
		o       hostclaim.Observed
		box     string
		session uint64
	}{
		{freed(t), source.Box, 2},
		{freed(t), "", 0},
		{upTo(t, "creating"), "", 0},
		{upTo(t, "created"), source.Box, 0},
		{upTo(t, "serving"), source.Box, 1},
		{upTo(t, "serving"), source.Box, 3},
		{upTo(t, "serving"), target.Box, 2},
		{upTo(t, "starting"), source.Box, 2},
	} {
		refused(t, row.o, hostclaim.PublishGeneration(row.box, row.session), hostclaim.ErrWrongState, "is not the current one")
	}
	for _, o := range []hostclaim.Observed{freed(t), upTo(t, "creating")} {
		refused(t, o, hostclaim.EndSession("", 0, hostclaim.Position{}), hostclaim.ErrWrongState, "is not the current one")
		refused(t, o, hostclaim.EndSession(source.Box, 2, hostclaim.Position{}), hostclaim.ErrWrongState, "is not the current one")
	}
}

// TestATransitionChangesNothingThatUpdateOwns: each by itself, also of a free
// host, whose claim names it once only.
func TestATransitionChangesNothingThatUpdateOwns(t *testing.T) {
	for name, rewrite := range map[string]hostclaim.Transition{
		"v":     func(c *hostclaim.Claim) error { c.V = 2; return nil },
		"host":  func(c *hostclaim.Claim) error { c.Host = "other.example"; return nil },
		"gen":   func(c *hostclaim.Claim) error { c.Gen++; return nil },
		"write": func(c *hostclaim.Claim) error { c.Write = "mine"; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, freed(t), rewrite, hostclaim.ErrMalformed, "may not change v, host, gen or write")
		})
	}
}

// TestNeitherAStampNorASessionGoesBack: each by itself, in a claim that is valid
// otherwise.
func TestNeitherAStampNorASessionGoesBack(t *testing.T) {
	refused(t, upTo(t, "created"), func(c *hostclaim.Claim) error { c.Holder.Stamp--; return nil }, hostclaim.ErrMalformed, "stamp 2 to 1")
	refused(t, restored(t), func(c *hostclaim.Claim) error {
		h := c.Holder
		h.Admissions = h.Admissions[:1]
		h.Session, h.Generation = 2, "g-1"
		return nil
	}, hostclaim.ErrMalformed, "session 5 to 2")
}

// TestABuildWithoutADatabaseNeedsNoInstallManifest, and one with a database does.
func TestABuildWithoutADatabaseNeedsNoInstallManifest(t *testing.T) {
	bare := built
	bare.InstallManifest, bare.SHA256 = "", ""
	refused(t, upTo(t, "installing"), hostclaim.ToInstalled("op-2", bare, epoch), hostclaim.ErrWrongState, "no install manifest")

	o := then(t, upTo(t, "created"), hostclaim.StartFailover(relocation, gone(sourceGone(t))), ack(target), hostclaim.PinFailover("op-2", epoch))
	p := pinOf(o.Claim)
	p.Position, p.FilesSHA256 = hostclaim.Position{}, ""
	o = then(t, o, hostclaim.JournalPin("op-2", p), hostclaim.ToInstalling("op-2", "p-1", epoch))
	bare.SnapshotTXID, bare.SourceFilesSeq = 0, 0
	require.Equal(t, hostclaim.Installed, then(t, o, hostclaim.ToInstalled("op-2", bare, epoch)).Claim.Op.Phase)
}

// TestAnInstallIsReceivedFromItsExecutorOnceItAcknowledged: not from another box
// that did, nor from one that is not ready.
func TestAnInstallIsReceivedFromItsExecutorOnceItAcknowledged(t *testing.T) {
	o := drainUpTo(t, "installed")
	require.Equal(t, source.Enrollment, o.Claim.Op.Journal.Acks[source.Box])
	l := installOf(o.Claim)
	l.Box, l.Enrollment = source.Box, source.Enrollment
	refused(t, o, hostclaim.RecordLocalInstall("op-2", l), hostclaim.ErrWrongState, "the executor is box-2")

	o.Claim = replaced(t, o)
	require.Equal(t, spare.Box, o.Claim.Op.Exec)
	require.NotContains(t, o.Claim.Op.Journal.Acks, spare.Box)
	l = installOf(o.Claim)
	refused(t, o, hostclaim.RecordLocalInstall("op-2", l), hostclaim.ErrWrongState, "the executor is box-3")
	l.Enrollment = ""
	refused(t, o, hostclaim.RecordLocalInstall("op-2", l), hostclaim.ErrWrongState, "the executor is box-3")
}

// TestASourceThatTookItsHostBackExecutesAsTheTarget: where it dies with nobody to
// follow, nobody executes.
func TestASourceThatTookItsHostBackExecutesAsTheTarget(t *testing.T) {
	o := plant(drainUpTo(t, "installing"), hostclaim.InstallOverdue)
	o = then(t, o, resolve(t, o, source, hostclaim.Proof{}))
	o = then(t, o, hostclaim.JournalPin("op-2", pinOf(o.Claim)), hostclaim.ToInstalling("op-2", "p-2", decidedAt))
	require.Equal(t, source.Box, o.Claim.Op.Exec)
	o = then(t, o, hostclaim.FenceTargetWithoutSpare("op-2", lostAt(t, source, decidedAt), decidedAt.Add(hostclaim.SpareDeadline)))
	require.Equal(t, hostclaim.None, o.Claim.Op.Exec)
	require.Equal(t, hostclaim.Pinning, o.Claim.Op.Phase)
}
