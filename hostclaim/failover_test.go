package hostclaim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/termfence"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

func TestAFailoverNeedsEvidenceAboutExactlyItsSource(t *testing.T) {
	o := upTo(t, "serving")
	for name, row := range map[string]struct {
		evidence termfence.Evidence
		want     string
	}{
		"none":               {termfence.Evidence{}, "no evidence"},
		"another box":        {fencetest.Evidence(t, target.Box, source.Enrollment, testRegion, epoch), "is about box-2"},
		"another enrollment": {fencetest.Evidence(t, source.Box, "enr-9", testRegion, epoch), "enr-9"},
		"another region":     {fencetest.Evidence(t, source.Box, source.Enrollment, "de", epoch), "region"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, o, hostclaim.StartFailover(relocation, gone(row.evidence)), hostclaim.ErrWrongState, row.want)
		})
	}
}

func TestAFailoverRefusesAnUnfitTarget(t *testing.T) {
	e := sourceGone(t)
	with := func(change func(*hostclaim.Relocation)) hostclaim.Transition {
		r := relocation
		r.Op = "op-5"
		change(&r)
		return hostclaim.StartFailover(r, gone(e))
	}
	o := upTo(t, "serving")
	refused(t, o, with(func(r *hostclaim.Relocation) { r.Target = r.Source }), hostclaim.ErrWrongState, "both box-1")
	refused(t, o, with(func(r *hostclaim.Relocation) { r.Source = spare }), hostclaim.ErrWrongState, "not the executor")
	refused(t, o, with(func(r *hostclaim.Relocation) { r.PinDelay = -time.Second }), hostclaim.ErrWrongState, "pin delay")
	refused(t, upTo(t, "creating"), hostclaim.StartFailover(relocation, gone(e)), hostclaim.ErrWrongState, "creating")

	// After the failover the old box is lost and owes its local copy.
	done := upTo(t, "relocated")
	r := hostclaim.Relocation{Op: "op-6", By: "w", Now: epoch, Source: target, Target: source}
	proof := fencetest.Evidence(t, target.Box, target.Enrollment, testRegion, epoch)
	refused(t, done, hostclaim.StartFailover(r, gone(proof)), hostclaim.ErrWrongState, "is lost")
	done.Claim.Lost = nil
	refused(t, done, hostclaim.StartFailover(r, gone(proof)), hostclaim.ErrPendingChore, "park-local")
}

func TestConsumedEvidenceIsRetainedOnceAndPassesRegionalChores(t *testing.T) {
	o := upTo(t, "serving")
	o.Claim.Obligations = []hostclaim.Obligation{
		{ID: "a", Kind: hostclaim.ParkGeneration, Region: "de", Owner: "box:box-1"},
		{ID: "b", Kind: hostclaim.ParkGeneration, Region: testRegion, Owner: "box:box-3"},
		{ID: "c", Kind: hostclaim.ParkLocal, Box: "box-1", Owner: "box:box-1"},
	}
	o = then(t, o, hostclaim.StartFailover(relocation, gone(sourceGone(t))))
	c := o.Claim
	require.Equal(t, []string{"region:de", "box:box-3", "box:box-1"},
		[]string{c.Obligations[0].Owner, c.Obligations[1].Owner, c.Obligations[2].Owner})
	require.Equal(t, hostclaim.None, c.Op.Exec)
	require.Equal(t, []string{"box-1"}, c.Lost)
	require.Len(t, c.EvidenceRefs, 1)
	require.Equal(t, uint64(2), c.EvidenceRefs[0].Session)
	require.Equal(t, "g-1", c.EvidenceRefs[0].Admission.Generation)
	require.Equal(t, c.LossRefs, []string{c.EvidenceRefs[0].ID})
	refused(t, o, hostclaim.StartFailover(relocation, gone(sourceGone(t))), hostclaim.ErrAlreadyRecorded, "")

	homeless := upTo(t, "serving")
	homeless.Claim.Obligations = []hostclaim.Obligation{{ID: "a", Kind: hostclaim.ParkGeneration, Owner: "box:box-1"}}
	refused(t, homeless, hostclaim.StartFailover(relocation, gone(sourceGone(t))), hostclaim.ErrWrongState, "no region")
}

func TestOnlyTheTargetUnderItsEnrollmentAcknowledges(t *testing.T) {
	o := upTo(t, "starting")
	refused(t, o, hostclaim.PinFailover("op-2", epoch), hostclaim.ErrWrongState, "acknowledged")
	refused(t, o, hostclaim.Acknowledge("op-2", source.Box, source.Enrollment), hostclaim.ErrWrongState, "takes no part")
	refused(t, o, hostclaim.Acknowledge("op-2", target.Box, "enr-9"), hostclaim.ErrWrongState, "not enr-9")
	refused(t, o, hostclaim.Acknowledge("op-3", target.Box, target.Enrollment), hostclaim.ErrStaleOp, "")
	o = upTo(t, "acknowledged")
	refused(t, o, hostclaim.Acknowledge("op-2", target.Box, target.Enrollment), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.Acknowledge("op-2", target.Box, "enr-9"), hostclaim.ErrWrongState, "not enr-9")
}

func TestAFailoverDeclaresItsPredecessor(t *testing.T) {
	o := upTo(t, "opened")
	r := o.Claim.Holder.Admissions[1]
	require.Equal(t, &hostclaim.WritesLost{ID: r.WritesLost.ID, Box: "box-1", Session: 2, Generation: "g-1", RemoteMaxTXID: 41}, r.WritesLost)
	require.Equal(t, r.Session, o.Claim.Holder.Stamp)
	require.Equal(t, "p-1", o.Claim.Op.Journal.PreparedOpened)
	again := opening(o.Claim)
	refused(t, o, hostclaim.AdmitWriter(again), hostclaim.ErrAlreadyRecorded, "")
}
