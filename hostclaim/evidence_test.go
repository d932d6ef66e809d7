package hostclaim_test

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxvolumes/volumestest"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

// discharged is a box that is gone with its disks.
func discharged(t *testing.T, m hostclaim.Member) hostclaim.Gone {
	t.Helper()
	g := lostAt(t, m, diedAt)
	g.Volumes = volumestest.Discharged(t, m.Box, m.Enrollment)
	return g
}

func declared(t *testing.T, m hostclaim.Member) hostclaim.Gone {
	t.Helper()
	return gone(fencetest.Declared(t, m.Box, m.Enrollment, testRegion, diedAt))
}

func TestOnlyATerminationWithItsOwnDisksDischargesLocalChores(t *testing.T) {
	foreign, claimed := lostAt(t, source, diedAt), declared(t, source)
	foreign.Volumes = volumestest.Discharged(t, source.Box, "enr-9")
	claimed.Volumes = volumestest.Discharged(t, source.Box, source.Enrollment)
	for name, row := range map[string]struct {
		gone  hostclaim.Gone
		clear bool
	}{
		"terminated with its disks":               {discharged(t, source), true},
		"nothing known of its disks":              {lostAt(t, source, diedAt), false},
		"disks of another enrollment":             {foreign, false},
		"declared, whatever is said of its disks": {claimed, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := drainUpTo(t, "starting")
			o.Claim.Obligations = []hostclaim.Obligation{
				{ID: "own", Kind: hostclaim.ParkLocal, Box: source.Box, Region: testRegion, Owner: "box:box-1"},
				{ID: "here", Kind: hostclaim.ParkGeneration, Region: testRegion, Owner: "box:box-1"},
				{ID: "there", Kind: hostclaim.ParkReplica, Region: "de", Incarnation: "inc-0", Owner: "box:box-1"},
				{ID: "other", Kind: hostclaim.ParkGeneration, Region: testRegion, Owner: "box:box-3"},
				{ID: "local", Kind: hostclaim.ParkLocal, Box: spare.Box, Owner: "box:box-3"},
				{ID: "region", Kind: hostclaim.ParkGeneration, Region: "de", Owner: "region:fr"},
			}
			want := []hostclaim.Obligation{o.Claim.Obligations[0], o.Claim.Obligations[1], o.Claim.Obligations[2],
				o.Claim.Obligations[3], o.Claim.Obligations[4], o.Claim.Obligations[5]}
			want[1].Owner, want[2].Owner = "region:ie", "region:de"
			if row.clear {
				want = want[1:]
			}
			c := then(t, o, hostclaim.FenceSource("op-2", row.gone, diedAt)).Claim
			require.Equal(t, want, c.Obligations, "nothing but the owner changes")
			require.Equal(t, !row.clear, len(c.Touched) == 1, c.Touched)
			require.Equal(t, row.clear, c.EvidenceRefs[0].Discharge != "", "a person is told")
		})
	}
}

func TestAChoreThatHasNoRegionToPassToRefusesTheEvidence(t *testing.T) {
	o := drainUpTo(t, "installing")
	o.Claim.Obligations = []hostclaim.Obligation{{ID: "a", Kind: hostclaim.ParkGeneration, Owner: "box:box-2"}}
	refused(t, o, hostclaim.ReplaceTarget("op-2", lostAt(t, target, diedAt), spare, "p-2", diedAt), hostclaim.ErrWrongState, "has no region")
}

func TestADischargedBoxOwesNothingAtCompletion(t *testing.T) {
	for _, g := range []hostclaim.Gone{discharged(t, target), lostAt(t, target, diedAt)} {
		o := then(t, drainUpTo(t, "installed"), hostclaim.ReplaceTarget("op-2", g, spare, "", diedAt), ack(spare))
		o = then(t, o, hostclaim.RecordLocalInstall("op-2", installOf(o.Claim)), hostclaim.ToProbing("op-2", diedAt), hostclaim.BeginProbeAttempt("op-2", 1))
		o = then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Released)))
		o = then(t, o, hostclaim.RecordProbe("op-2", spare.Box, o.Claim.Holder.Session), hostclaim.CompleteRelocation("op-2"))
		require.Equal(t, !g.Volumes.Discharged(), o.Claim.Owes(target.Box, hostclaim.ParkLocal))
		require.True(t, o.Claim.Owes(source.Box, hostclaim.ParkLocal))
	}
}

// TestADrainedBoxThatIsDestroyedLaterOwesNothing: it is not lost for this host,
// and no operation is about it any more.
func TestADrainedBoxThatIsDestroyedLaterOwesNothing(t *testing.T) {
	o := then(t, drainUpTo(t, "relocated"), hostclaim.DischargeDestroyed(fencetest.Destroyed(t, source.Box, source.Enrollment, testRegion)))
	require.False(t, o.Claim.Owes(source.Box, hostclaim.ParkLocal))
	require.Equal(t, []string{target.Box}, o.Claim.Touched)
}

func TestALossSaysWhatIsKnownOfItsBox(t *testing.T) {
	c := then(t, drainUpTo(t, "opened"), hostclaim.FenceSource("op-2", lostAt(t, source, diedAt), diedAt),
		hostclaim.ReplaceTarget("op-2", declared(t, target), spare, "", diedAt)).Claim
	require.Len(t, c.EvidenceRefs, 2)
	fenced, lost := c.EvidenceRefs[0], c.EvidenceRefs[1]
	require.Equal(t, []any{"op-2", source.Box, "source", uint64(2), "as published", false},
		[]any{fenced.Op, fenced.Box, fenced.Role, fenced.Session, fenced.Timers, fenced.Fence.Declared})
	require.Equal(t, &c.Holder.Admissions[0], fenced.Admission)
	require.Equal(t, []any{"op-2", target.Box, "target", c.Holder.Session, "unknown", true},
		[]any{lost.Op, lost.Box, lost.Role, lost.Session, lost.Timers, lost.Fence.Declared})
	require.Equal(t, &c.Holder.Admissions[1], lost.Admission)
	require.Empty(t, fenced.Discharge)
	require.Equal(t, []string{fenced.ID, lost.ID}, c.LossRefs)
	require.Equal(t, c.Op.Journal.Fences[target.Box], lost.Fence)

	unwritten := then(t, drainUpTo(t, "attempt"), hostclaim.ReplaceTarget("op-2", lostAt(t, target, diedAt), spare, "", diedAt)).Claim
	require.Zero(t, unwritten.EvidenceRefs[0].Session)
	require.Nil(t, unwritten.EvidenceRefs[0].Admission)
}

func TestRetainedLossesSurviveCompletionAndReporting(t *testing.T) {
	o := then(t, drainUpTo(t, "probed"), hostclaim.FenceSource("op-2", lostAt(t, source, diedAt), diedAt))
	kept := o.Claim.EvidenceRefs
	o = then(t, o, hostclaim.CompleteRelocation("op-2"))
	require.Equal(t, kept, o.Claim.EvidenceRefs)
	o = then(t, o, hostclaim.ReportLoss(kept[0].ID))
	require.Empty(t, o.Claim.EvidenceRefs)
	require.Equal(t, []string{kept[0].ID}, o.Claim.LossRefs)
	refused(t, o, hostclaim.ReportLoss(kept[0].ID), hostclaim.ErrAlreadyRecorded, "")
	require.Equal(t, []string{source.Box}, o.Claim.Lost)
}

func TestEvidenceThatWasReportedIsNotRetainedAgain(t *testing.T) {
	dead, due := lostAt(t, target, diedAt), diedAt.Add(hostclaim.SpareDeadline)
	o := then(t, drainUpTo(t, "installing"), hostclaim.FenceTargetWithoutSpare("op-2", dead, due))
	id := o.Claim.EvidenceRefs[0].ID
	o = then(t, o, hostclaim.ReportLoss(id), hostclaim.ReplaceTarget("op-2", dead, spare, "p-2", due))
	require.Empty(t, o.Claim.EvidenceRefs)
	require.Equal(t, []string{id}, o.Claim.LossRefs)
}

// TestAFirstCitationStands: a box that was declared lost may be terminated
// afterwards. What the operation relied on already is not cited anew.
func TestAFirstCitationStands(t *testing.T) {
	due := diedAt.Add(hostclaim.SpareDeadline)
	o := then(t, drainUpTo(t, "installing"), hostclaim.FenceTargetWithoutSpare("op-2", declared(t, target), due))
	before := o.Claim
	c := then(t, o, hostclaim.ReplaceTarget("op-2", discharged(t, target), spare, "p-2", due)).Claim
	require.Equal(t, before.Op.Journal.Fences, c.Op.Journal.Fences)
	require.Equal(t, before.EvidenceRefs, c.EvidenceRefs)
	require.Equal(t, before.LossRefs, c.LossRefs)
}

// control is a control bucket with a signed roster.
type control struct {
	*memstore.Store
	reader termfence.Reader
	box    roster.Box
	worker roster.Box
}

func newControl(t *testing.T, dead hostclaim.Member) control {
	t.Helper()
	entry := func(enrollment, instance string) roster.Box {
		return roster.Box{Enrollment: enrollment, EnrolledAt: epoch, Region: testRegion, Pool: "default", State: roster.Active,
			Cloud: boxid.Cloud{Provider: boxid.AWS, Account: "000000000001", Region: "test-1", InstanceID: instance}}
	}
	s, private := memstore.New(), ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	snap, err := roster.Create(ctx, s, private, roster.Roster{DeploymentBucket: "memory",
		Regions: map[string]roster.Region{testRegion: {Account: "000000000001", AWSRegion: "test-1"}},
		Boxes:   map[string]roster.Box{dead.Box: entry(dead.Enrollment, "i-dead"), "box-9": entry("enr-9", "i-live")}})
	require.NoError(t, err)
	c := control{Store: s, reader: termfence.Reader{Store: s,
		Roster: roster.Open(s, private.Public().(ed25519.PublicKey), "memory")}}
	c.box, _ = snap.Box(dead.Box)
	c.worker, _ = snap.Box("box-9")
	return c
}

func (c control) fence(t *testing.T, at time.Time) termfence.Record {
	t.Helper()
	rec, err := termfence.Verify(c.box, c.worker, termfence.Observation{Via: termfence.ViaDescribe, Found: true,
		State: termfence.Terminated, RequestID: "request-1", InstanceID: c.box.Cloud.InstanceID, Account: c.box.Cloud.Account,
		Region: c.box.Cloud.Region}, at)
	require.NoError(t, err)
	return rec
}

// TestAFenceThatIsReplacedUnderItsKeyIsRefusedAndTheCitationStays: the claim
// cites bytes, not a key.
func TestAFenceThatIsReplacedUnderItsKeyIsRefusedAndTheCitationStays(t *testing.T) {
	c := newControl(t, source)
	evidence, err := termfence.Publish(ctx, c, c.reader, c.fence(t, diedAt))
	require.NoError(t, err)
	o := then(t, drainUpTo(t, "installing"), hostclaim.FenceSource("op-2", gone(evidence), diedAt))
	cited := o.Claim.Op.Journal.Fences[source.Box]
	ref := termfence.Ref{Enrollment: cited.Enrollment, Key: cited.Key, SHA256: cited.SHA256}
	_, err = c.reader.Read(ctx, ref)
	require.NoError(t, err)

	other, err := record.Encode(c.fence(t, diedAt.Add(-time.Minute)))
	require.NoError(t, err)
	stored, err := c.Get(ctx, cited.Key)
	require.NoError(t, err)
	_, err = c.Put(ctx, cited.Key, other, objstore.IfMatch(stored.ETag))
	require.NoError(t, err)
	_, err = c.reader.Read(ctx, ref)
	require.ErrorIs(t, err, termfence.ErrUnverified, "also where the other bytes are a fence that holds")
	found, fenced, err := c.reader.Fenced(ctx, source.Enrollment)
	require.NoError(t, err)
	require.True(t, fenced)
	refused(t, o, hostclaim.FenceSource("op-2", gone(found), diedAt), hostclaim.ErrAlreadyRecorded, "")
	o = then(t, o, hostclaim.ReplaceTarget("op-2", lostAt(t, target, diedAt), spare, "p-2", diedAt))
	require.Equal(t, cited, o.Claim.Op.Journal.Fences[source.Box])
	require.Equal(t, cited, o.Claim.EvidenceRefs[0].Fence)
}

// TestABoxDeclaredLostIsConsumedByEachHostInItsOwnRole: one declaration, about a
// box that is the target of one host and the source of another.
func TestABoxDeclaredLostIsConsumedByEachHostInItsOwnRole(t *testing.T) {
	evidence := declared(t, target)
	asTarget := drainUpTo(t, "installing")
	asSource := upTo(t, "relocated")
	back := hostclaim.Relocation{Op: "op-3", By: "box-9", Now: diedAt, Source: target, Target: spare, PinDelay: time.Second}
	started := then(t, asSource, hostclaim.StartRelocation(back, hostclaim.Drain))

	one := then(t, asTarget, hostclaim.ReplaceTarget("op-2", evidence, spare, "p-2", diedAt)).Claim
	two := then(t, started, hostclaim.FenceSource("op-3", evidence, diedAt)).Claim
	three := then(t, asSource, hostclaim.StartFailover(back, evidence)).Claim
	require.Equal(t, spare.Box, one.Op.Exec, "the target is replaced")
	for _, c := range []*hostclaim.Claim{two, three} {
		require.Equal(t, hostclaim.None, c.Op.Exec, "the source is failed over")
		require.Equal(t, hostclaim.Failover, c.Op.Reason())
		require.Equal(t, []string{spare.Box}, c.Op.Participants)
	}
	for role, c := range map[string]*hostclaim.Claim{"target": one, "source": two} {
		loss := c.EvidenceRefs[len(c.EvidenceRefs)-1]
		require.Equal(t, []any{role, target.Box, "unknown", true}, []any{loss.Role, loss.Box, loss.Timers, loss.Fence.Declared})
		require.Equal(t, evidence.Evidence.Ref().SHA256, loss.Fence.SHA256)
		require.Contains(t, c.Lost, target.Box)
		require.Contains(t, c.Touched, target.Box, "a declaration discharges nothing")
	}
	refused(t, asTarget, hostclaim.FenceSource("op-2", evidence, diedAt), hostclaim.ErrWrongState, "is about box-2")
	refused(t, started, hostclaim.ReplaceTarget("op-3", evidence, fourth, "", diedAt), hostclaim.ErrWrongState, "not box-3")
}

// TestAVerdictThatComesWithALaterCitationDischarges: disks are often known of
// only after the box was seen to be gone.
func TestAVerdictThatComesWithALaterCitationDischarges(t *testing.T) {
	late := diedAt.Add(hostclaim.SpareDeadline)
	o := then(t, drainUpTo(t, "installing"), hostclaim.FenceTargetWithoutSpare("op-2", lostAt(t, target, diedAt), late))
	require.Contains(t, o.Claim.Touched, target.Box)
	o = then(t, o, hostclaim.ReplaceTarget("op-2", discharged(t, target), spare, "p-2", late))
	require.NotContains(t, o.Claim.Touched, target.Box)
	require.Len(t, o.Claim.EvidenceRefs, 1, "it is lost once")
	require.False(t, carriedOn(t, o).Owes(target.Box, hostclaim.ParkLocal))
}
