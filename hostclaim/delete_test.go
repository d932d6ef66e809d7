package hostclaim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/resolution"
	"github.com/carlosframework/regionha/resolution/resolutiontest"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

var finalOfSource = hostclaim.Position{Generation: "g-1", TXID: 41, FilesGeneration: "g-1", FilesSeq: 6}

// deleting is a served host whose delete has begun.
func deleting(tb testing.TB) hostclaim.Observed {
	return then(tb, upTo(tb, "serving"), hostclaim.BeginDelete("op-9", "console", source, epoch))
}

// stopped is the release of a box's current session, with the receipt behind it.
func stopped(tb testing.TB, c *hostclaim.Claim, m hostclaim.Member, final hostclaim.Position) (hostclaim.Release, stopevidence.Receipt) {
	tb.Helper()
	r := stoptest.Receipt(tb, stopevidence.Record{Host: c.Host, Op: c.Op.ID, Box: m.Box, Enrollment: m.Enrollment,
		Incarnation: c.Holder.Incarnation, Stamp: c.Holder.Stamp, Session: c.Holder.Session})
	return hostclaim.Release{Box: m.Box, Enrollment: m.Enrollment, Session: c.Holder.Session, Final: final,
		Receipt: r.Ref().Key, ReceiptSHA256: r.Ref().SHA256}, r
}

func TestADeleteBeginsOnTheExecutorAndAdmitsNobody(t *testing.T) {
	served := upTo(t, "serving")
	refused(t, served, hostclaim.BeginDelete("op-9", "console", target, epoch), hostclaim.ErrWrongState, "not the executor")
	refused(t, upTo(t, "starting"), hostclaim.BeginDelete("op-9", "console", source, epoch), hostclaim.ErrWrongState, "relocating")
	o := deleting(t)
	require.Equal(t, source.Box, o.Claim.Op.Exec)
	refused(t, o, hostclaim.BeginDelete("op-9", "console", source, epoch), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.BeginDelete("op-8", "console", source, epoch), hostclaim.ErrWrongState, "deleting")
	refused(t, o, hostclaim.StartRelocation(relocation, hostclaim.Drain), hostclaim.ErrWrongState, "deleting")
	refused(t, o, hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-9", Session: 2, Generation: "g-1", Box: source.Box,
		NewGeneration: "g-2", Baseline: finalOfSource}), hostclaim.ErrWrongState, "nobody is admitted in deleting")
	refused(t, o, hostclaim.PublishGeneration(source.Box, 2), hostclaim.ErrAlreadyRecorded, "")
	unpublished := then(t, upTo(t, "admitted"), hostclaim.BeginDelete("op-9", "console", source, epoch))
	refused(t, unpublished, hostclaim.PublishGeneration(source.Box, 2), hostclaim.ErrWrongState, "no generation is published in deleting")
	refused(t, o, hostclaim.EndSession(source.Box, 2, finalOfSource), hostclaim.ErrWrongState, "no session of box-1")
}

func TestADeletedHostIsParkedOnItsReceiptAndFreedWhenNothingIsLeft(t *testing.T) {
	o := deleting(t)
	release, receipt := stopped(t, o.Claim, source, finalOfSource)
	refused(t, o, hostclaim.ParkAfterRelease("op-9", receipt), hostclaim.ErrWrongState, "has not released")
	o = then(t, o, hostclaim.JournalRelease("op-9", release))
	_, foreign := stopped(t, o.Claim, target, finalOfSource)
	refused(t, o, hostclaim.ParkAfterRelease("op-9", foreign), hostclaim.ErrWrongState, "the release cites")
	refused(t, o, hostclaim.ParkAfterRelease("op-9", stopevidence.Receipt{}), hostclaim.ErrWrongState, "the release cites")
	o = then(t, o, hostclaim.ParkAfterRelease("op-9", receipt))

	c := o.Claim
	require.Equal(t, hostclaim.Parking, c.Op.Kind)
	require.Equal(t, hostclaim.None, c.Op.Exec)
	require.Empty(t, c.Op.Participants)
	require.Equal(t, []string{hostclaim.ParkLocal, hostclaim.ParkReplica}, kinds(c))
	refused(t, o, hostclaim.ParkAfterRelease("op-9", receipt), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.FreeHost("op-9"), hostclaim.ErrWrongState, "2 chores are open")
	refused(t, o, hostclaim.BeginCreate(newHost, "op-10", "console", epoch, source), hostclaim.ErrWrongState, "parking")

	o = complete(t, o)
	require.Equal(t, hostclaim.Parking, o.Claim.Op.Kind, "a holder goes by FreeHost alone")
	o = then(t, o, hostclaim.FreeHost("op-9"))
	require.Nil(t, o.Claim.Holder)
	require.Equal(t, []string{"inc-1"}, o.Claim.RetiredIncarnations)
	refused(t, o, hostclaim.FreeHost("op-9"), hostclaim.ErrStaleOp, "")

	again := newHost
	again.Incarnation = "inc-2"
	o = then(t, o, hostclaim.BeginCreate(again, "op-10", "console", epoch, source), hostclaim.CompleteCreate("op-10", source.Box, source.Enrollment))
	require.Greater(t, o.Claim.Holder.Stamp, c.Holder.Stamp)
	require.Equal(t, []string{source.Box}, o.Claim.Touched)
}

func TestADeleteGoesOnWithoutItsDeadExecutor(t *testing.T) {
	o := deleting(t)
	refused(t, o, hostclaim.FenceSource("op-9", gone(goneTarget(t)), epoch), hostclaim.ErrWrongState, "is about box-2")
	o = then(t, o, hostclaim.FenceSource("op-9", gone(sourceGone(t)), epoch))
	require.Equal(t, hostclaim.Parking, o.Claim.Op.Kind)
	require.Equal(t, []string{source.Box}, o.Claim.Lost)
	require.Len(t, o.Claim.EvidenceRefs, 1)
	require.True(t, o.Claim.Owes(source.Box, hostclaim.ParkLocal), "a fence says nothing about disks")
}

func TestADeleteWhoseReleaseIsOverdueIsStuckUntilAnOperatorOrAFact(t *testing.T) {
	o := deleting(t)
	due := epoch.Add(hostclaim.ReleaseDeadline)
	refused(t, o, hostclaim.MarkStuck("op-9", hostclaim.ReleaseOverdue, due.Add(-time.Second)), hostclaim.ErrWrongState, "applies from")
	refused(t, o, hostclaim.MarkStuck("op-9", hostclaim.NoSpare, due), hostclaim.ErrWrongState, "does not apply")
	release, receipt := stopped(t, o.Claim, source, finalOfSource)
	stuck := then(t, o, hostclaim.MarkStuck("op-9", hostclaim.ReleaseOverdue, due))
	refused(t, stuck, hostclaim.ParkAfterRelease("op-9", receipt), hostclaim.ErrWrongState, "stuck")

	released := then(t, stuck, hostclaim.JournalRelease("op-9", release))
	require.Nil(t, released.Claim.Op.Journal.Stuck)
	then(t, released, hostclaim.ParkAfterRelease("op-9", receipt))
	require.Equal(t, hostclaim.Parking, then(t, stuck, hostclaim.FenceSource("op-9", gone(sourceGone(t)), due)).Claim.Op.Kind)

	decided := func(m hostclaim.Member) resolution.Resolution {
		return resolutiontest.Resolution(t, resolution.Record{Host: testHost, Op: "op-9", Gen: stuck.Claim.Gen, Box: m.Box, Enrollment: m.Enrollment})
	}
	refused(t, stuck, hostclaim.Resolve("op-9", decided(target), hostclaim.Proof{}, due), hostclaim.ErrWrongState, "no other box")
	again := then(t, stuck, hostclaim.Resolve("op-9", decided(source), hostclaim.Proof{}, due))
	require.Nil(t, again.Claim.Op.Journal.Stuck)
	refused(t, again, hostclaim.MarkStuck("op-9", hostclaim.ReleaseOverdue, due), hostclaim.ErrWrongState, "applies from")
}

// TestADeletedHostIsNotForgottenBeforeItsLossesWereReported: freeing it drops
// the admissions that declare them.
func TestADeletedHostIsNotForgottenBeforeItsLossesWereReported(t *testing.T) {
	o := then(t, upTo(t, "relocated"), hostclaim.BeginDelete("op-9", "console", target, epoch),
		hostclaim.FenceSource("op-9", gone(goneTarget(t)), epoch))
	o = complete(t, then(t, o, discharge(t, source), discharge(t, target)))
	pending := o.Claim.PendingLosses()
	require.Len(t, pending, 1)
	refused(t, o, hostclaim.FreeHost("op-9"), hostclaim.ErrWrongState, "not reported")
	o = then(t, o, hostclaim.ReportLoss(pending[0].ID), hostclaim.FreeHost("op-9"))
	require.Len(t, o.Claim.EvidenceRefs, 2, "evidence is reported by itself")
	require.Contains(t, o.Claim.LossRefs, pending[0].ID)
	require.Equal(t, []string{source.Box, target.Box}, o.Claim.Lost)
	again := newHost
	again.Incarnation = "inc-2"
	refused(t, o, hostclaim.BeginCreate(again, "op-10", "console", epoch, target), hostclaim.ErrWrongState, "is lost")
}

func TestResidueOfAFreeHostIsParkedWithoutAHolder(t *testing.T) {
	o := then(t, upTo(t, "creating"), hostclaim.CancelCreate("op-1", "late"))
	residue := []hostclaim.Residue{{Incarnation: "inc-1", Region: "ie"}, {Incarnation: "inc-0", Region: "de"}}
	refused(t, upTo(t, "serving"), hostclaim.BeginSweep("op-9", "worker", residue, epoch), hostclaim.ErrWrongState, "serving")
	refused(t, o, hostclaim.BeginSweep("op-9", "worker", nil, epoch), hostclaim.ErrWrongState, "0 places")
	refused(t, o, hostclaim.BeginSweep("op-9", "worker", make([]hostclaim.Residue, 33), epoch), hostclaim.ErrWrongState, "33 places")
	o = then(t, o, hostclaim.BeginSweep("op-9", "worker", residue, epoch))
	require.Nil(t, o.Claim.Holder)
	refused(t, o, hostclaim.BeginSweep("op-9", "worker", residue, epoch), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.FreeHost("op-9"), hostclaim.ErrWrongState, "last chore frees it")
	again := newHost
	again.Incarnation = "inc-2"
	refused(t, o, hostclaim.BeginCreate(again, "op-10", "console", epoch, source), hostclaim.ErrWrongState, "parking")

	first, second := o.Claim.Obligations[0], o.Claim.Obligations[1]
	o = then(t, o, hostclaim.BindScope("op-9", first.ID, scopeOf(first)), hostclaim.CompleteObligation("op-9", first.ID))
	require.Equal(t, hostclaim.Parking, o.Claim.Op.Kind)
	o = then(t, o, hostclaim.BindScope("op-9", second.ID, scopeOf(second)), hostclaim.CompleteObligation("op-9", second.ID))
	require.Equal(t, hostclaim.Op{Kind: hostclaim.Free}, o.Claim.Op)
	then(t, o, hostclaim.BeginCreate(again, "op-10", "console", epoch, source))
}

func TestADeleteIsOfItsExecutorInItsEnrollment(t *testing.T) {
	served := upTo(t, "serving")
	for _, enrollment := range []string{"", "enr-9"} {
		other := hostclaim.Member{Box: source.Box, Enrollment: enrollment}
		refused(t, served, hostclaim.BeginDelete("op-9", "console", other, epoch), hostclaim.ErrWrongState, "is not the executor, box-1 as enr-1 is")
		refused(t, deleting(t), hostclaim.BeginDelete("op-9", "console", other, epoch), hostclaim.ErrWrongState, "deleting cannot be deleted")
	}
	foreign := deleting(t)
	foreign.Claim.Op.Intent.Source.Enrollment = "enr-9"
	require.ErrorContains(t, foreign.Claim.Validate(), "op.intent.source is {box-1 enr-9}")
}

func TestOnlyAPlaceThatCanBeIsSweptAndOnce(t *testing.T) {
	free := then(t, upTo(t, "creating"), hostclaim.CancelCreate("op-1", "late"))
	for text, residue := range map[string][]hostclaim.Residue{
		"incarnation is \"\"":     {{Incarnation: "", Region: testRegion}},
		"incarnation is \"../x\"": {{Incarnation: "inc-0", Region: testRegion}, {Incarnation: "../x", Region: testRegion}},
		"region is \"a/b\"":       {{Incarnation: "inc-0", Region: "a/b"}},
		"swept twice":             {{Incarnation: "inc-0", Region: testRegion}, {Incarnation: "inc-0", Region: testRegion}},
	} {
		refused(t, free, hostclaim.BeginSweep("op-3", "console", residue, epoch), hostclaim.ErrWrongState, text)
	}
	o := then(t, free, hostclaim.BeginSweep("op-3", "console",
		[]hostclaim.Residue{{Incarnation: "inc-0", Region: testRegion}, {Incarnation: "inc-0", Region: "de"}}, epoch))
	require.Len(t, o.Claim.Obligations, 2)
}
