package hostclaim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/termfence"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

func kinds(c *hostclaim.Claim) (kinds []string) {
	for _, o := range c.Obligations {
		kinds = append(kinds, o.Kind)
	}
	return kinds
}

func scopeOf(o hostclaim.Obligation) hostclaim.Park {
	return hostclaim.Park{Location: hostclaim.LocationOf(testHost, o.Incarnation), Incarnation: o.Incarnation,
		EvidenceAt: epoch, RequestLimit: 2 * time.Minute}
}

func goneTarget(tb testing.TB) termfence.Evidence {
	return fencetest.Evidence(tb, target.Box, target.Enrollment, testRegion, epoch)
}

func discharge(tb testing.TB, m hostclaim.Member) hostclaim.Transition {
	return hostclaim.DischargeDestroyed(fencetest.Destroyed(tb, m.Box, m.Enrollment, testRegion))
}

// complete does every chore that is open.
func complete(tb testing.TB, o hostclaim.Observed) hostclaim.Observed {
	for len(o.Claim.Obligations) > 0 {
		chore := o.Claim.Obligations[0]
		if chore.Kind != hostclaim.ParkLocal {
			o = then(tb, o, hostclaim.BindScope(chore.Op, chore.ID, scopeOf(chore)))
		}
		o = then(tb, o, hostclaim.CompleteObligation(chore.Op, chore.ID))
	}
	return o
}

func chore(tb testing.TB, c *hostclaim.Claim, kind string) hostclaim.Obligation {
	for _, o := range c.Obligations {
		if o.Kind == kind {
			return o
		}
	}
	tb.Fatalf("no %s in %v", kind, c.Obligations)
	return hostclaim.Obligation{}
}

func TestAScopeIsBoundOnceAndIsOfItsChore(t *testing.T) {
	o := upTo(t, "relocated")
	dead, local := chore(t, o.Claim, hostclaim.ParkGeneration), chore(t, o.Claim, hostclaim.ParkLocal)
	bind := func(id string, change func(*hostclaim.Park)) hostclaim.Transition {
		p := scopeOf(dead)
		change(&p)
		return hostclaim.BindScope(dead.Op, id, p)
	}
	as := func(*hostclaim.Park) {}
	refused(t, o, bind("park-generation.none", as), hostclaim.ErrWrongState, "no chore")
	refused(t, o, hostclaim.BindScope("op-7", dead.ID, scopeOf(dead)), hostclaim.ErrWrongState, "of op-7 is open")
	refused(t, o, bind(local.ID, as), hostclaim.ErrWrongState, "has no scope")
	refused(t, o, bind(dead.ID, func(p *hostclaim.Park) { p.Incarnation = "inc-0" }), hostclaim.ErrWrongState, "inc-0")
	refused(t, o, bind(dead.ID, func(p *hostclaim.Park) { p.Location = "instances" }), hostclaim.ErrWrongState, "want \"inc-1\" at")
	refused(t, o, bind(dead.ID, func(p *hostclaim.Park) { p.EvidenceAt = time.Time{} }), hostclaim.ErrWrongState, "want both")
	refused(t, o, bind(dead.ID, func(p *hostclaim.Park) { p.RequestLimit = 0 }), hostclaim.ErrWrongState, "want both")
	o = then(t, o, bind(dead.ID, as))
	refused(t, o, bind(dead.ID, as), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, bind(dead.ID, func(p *hostclaim.Park) { p.EvidenceAt = epoch.Add(time.Hour) }), hostclaim.ErrWrongState, "is bound to")
}

func TestAChoreOverObjectsIsDoneOnlyUnderItsScope(t *testing.T) {
	o := upTo(t, "relocated")
	dead := chore(t, o.Claim, hostclaim.ParkGeneration)
	refused(t, o, hostclaim.CompleteObligation(dead.Op, dead.ID), hostclaim.ErrWrongState, "not bound")
	o = then(t, o, hostclaim.BindScope(dead.Op, dead.ID, scopeOf(dead)), hostclaim.CompleteObligation(dead.Op, dead.ID))
	require.Equal(t, []string{hostclaim.ParkLocal}, kinds(o.Claim))
	refused(t, o, hostclaim.CompleteObligation(dead.Op, dead.ID), hostclaim.ErrAlreadyRecorded, "")
}

func TestABoxThatPutItsStateAwayHoldsNone(t *testing.T) {
	o := upTo(t, "relocated")
	require.Equal(t, []string{source.Box, target.Box}, o.Claim.Touched)
	local := chore(t, o.Claim, hostclaim.ParkLocal)
	o = then(t, o, hostclaim.CompleteObligation(local.Op, local.ID))
	require.Equal(t, []string{target.Box}, o.Claim.Touched)
	require.False(t, o.Claim.Owes(source.Box, hostclaim.ParkLocal))

	// A chore of the box that executes would put live state away.
	o.Claim.Obligations = append(o.Claim.Obligations, hostclaim.Obligation{ID: "x", Op: "op-2", Kind: hostclaim.ParkLocal,
		Box: target.Box, Owner: "box:box-2"})
	refused(t, o, hostclaim.CompleteObligation("op-2", "x"), hostclaim.ErrWrongState, "is live")
}

func TestABoxIsDischargedByItsDestroyedDiskOnceTheHostHasLeftIt(t *testing.T) {
	o := upTo(t, "relocated")
	refused(t, o, hostclaim.DischargeDestroyed(termfence.Destroyed{}), hostclaim.ErrWrongState, "no declaration")
	refused(t, o, discharge(t, target), hostclaim.ErrWrongState, "executes")
	o = then(t, o, discharge(t, source))
	require.Equal(t, []string{hostclaim.ParkGeneration}, kinds(o.Claim))
	require.Equal(t, []string{target.Box}, o.Claim.Touched)
	require.Equal(t, []string{source.Box}, o.Claim.Lost, "a fence's entry never goes")
	refused(t, o, discharge(t, source), hostclaim.ErrAlreadyRecorded, "")
}

// TestALateAcknowledgementDoesNotCompleteALaterChore: the box was handed the host
// again since, so its chore is another.
func TestALateAcknowledgementDoesNotCompleteALaterChore(t *testing.T) {
	o := upTo(t, "relocated")
	local := chore(t, o.Claim, hostclaim.ParkLocal)
	o = then(t, o, hostclaim.CompleteObligation(local.Op, local.ID))
	o.Claim.Lost, o.Claim.EvidenceRefs, o.Claim.LossRefs = nil, nil, nil
	back := hostclaim.Relocation{Op: local.Op + "-b", By: "w", Now: epoch, Source: target, Target: source}
	o = then(t, o, hostclaim.StartFailover(back, gone(goneTarget(t))))
	o = then(t, o, hostclaim.Acknowledge(back.Op, source.Box, source.Enrollment), hostclaim.PinFailover(back.Op, epoch))
	require.False(t, o.Claim.Owes(source.Box, hostclaim.ParkLocal))
	refused(t, o, hostclaim.CompleteObligation(local.Op, local.ID), hostclaim.ErrAlreadyRecorded, "")
}

// republish admits and publishes another session on the executor.
func republish(tb testing.TB, o hostclaim.Observed, generation string) hostclaim.Observed {
	h := o.Claim.Holder
	at := hostclaim.Position{Generation: h.Generation, TXID: 1, FilesGeneration: h.Generation, FilesSeq: 1}
	o = then(tb, o, hostclaim.EndSession(o.Claim.Op.Exec, h.Session, at), hostclaim.AdmitWriter(hostclaim.Admission{Op: o.Claim.Op.ID,
		Session: h.Session, Generation: h.Generation, Box: o.Claim.Op.Exec, NewGeneration: generation, Coverage: hostclaim.CleanReturn, Baseline: at}))
	return then(tb, o, hostclaim.PublishGeneration(o.Claim.Op.Exec, o.Claim.Holder.Session))
}

// TestTooManyDeadGenerationsBecomeOneChore: beyond a size one chore stands for
// all that the claim does not name, and what is bound keeps its own.
func TestTooManyDeadGenerationsBecomeOneChore(t *testing.T) {
	o := upTo(t, "serving")
	o = republish(t, o, "h-0")
	bound := o.Claim.Obligations[0]
	o = then(t, o, hostclaim.BindScope(bound.Op, bound.ID, scopeOf(bound)))
	for n := 1; n < 32; n++ {
		o = republish(t, o, fmt.Sprintf("h-%d", n))
	}
	require.Len(t, o.Claim.Obligations, 32)
	o = republish(t, o, "h-32")
	require.Equal(t, []string{"g-1", ""}, deadGenerations(o.Claim))
	o = republish(t, o, "h-33")
	require.Equal(t, []string{"g-1", ""}, deadGenerations(o.Claim), "the one chore covers what dies after it, until it is bound")

	all := o.Claim.Obligations[1]
	o = then(t, o, hostclaim.BindScope(all.Op, all.ID, scopeOf(all)))
	for n := 34; n < 100; n++ {
		o = republish(t, o, fmt.Sprintf("h-%d", n))
	}
	require.LessOrEqual(t, len(o.Claim.Obligations), 34)
	last := o.Claim.Obligations[len(o.Claim.Obligations)-1]
	require.Empty(t, last.Generation)
	refused(t, o, hostclaim.BindScope(last.Op, last.ID, scopeOf(last)), hostclaim.ErrWrongState, "comes first")
	then(t, o, hostclaim.CompleteObligation(all.Op, all.ID), hostclaim.BindScope(last.Op, last.ID, scopeOf(last)))
}
