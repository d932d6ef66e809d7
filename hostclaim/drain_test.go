package hostclaim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore/memstore"
)

func TestADrainLeavesItsSourceExecutingUnderItsStamp(t *testing.T) {
	before := upTo(t, "serving").Claim
	c := drainUpTo(t, "starting").Claim
	require.Equal(t, hostclaim.Relocating, c.Op.Kind)
	require.Equal(t, hostclaim.Starting, c.Op.Phase)
	require.Equal(t, source.Box, c.Op.Exec)
	require.Equal(t, []string{source.Box, target.Box}, c.Op.Participants)
	require.Equal(t, hostclaim.Intent{Region: testRegion, Reason: hostclaim.Drain, Source: source, Target: target,
		StampFrom: before.Holder.Stamp, GenerationFrom: "g-1", DirectoryRevision: 7, PinDelay: 2 * time.Second}, c.Op.Intent)
	require.Equal(t, hostclaim.Journal{PhaseSince: relocation.Now, TargetSince: relocation.Now}, c.Op.Journal)
	require.Equal(t, before.Holder, c.Holder)
	require.Equal(t, before.Touched, c.Touched, "a target that was only named holds nothing")
	require.Empty(t, c.Lost)
}

func TestADrainingSourceIsAdmittedUntilItReleased(t *testing.T) {
	for _, stage := range []string{"starting", "acknowledged", "releasing"} {
		o := drainUpTo(t, stage)
		c := then(t, o, hostclaim.AdmitWriter(readmission(o.Claim, "g-2"))).Claim
		require.Equal(t, c.Gen, c.Holder.Session, stage)
		require.Equal(t, o.Claim.Op, c.Op, stage)
	}
	for _, stage := range []string{"released", "pinning", "installing", "installed"} {
		o := drainUpTo(t, stage)
		refused(t, o, hostclaim.AdmitWriter(readmission(o.Claim, "g-2")), hostclaim.ErrWrongState, "nobody is admitted")
	}
}

func TestARelocationIsRefused(t *testing.T) {
	owes := func(chore hostclaim.Obligation) func(*hostclaim.Claim) {
		return func(c *hostclaim.Claim) { c.Obligations = append(c.Obligations, chore) }
	}
	keep := func(*hostclaim.Claim) {}
	same := func(*hostclaim.Relocation) {}
	for name, row := range map[string]struct {
		why    hostclaim.Reason
		claim  func(*hostclaim.Claim)
		change func(*hostclaim.Relocation)
		err    error
		text   string
	}{
		"a failover without evidence": {hostclaim.Failover, keep, same, hostclaim.ErrWrongState, "a failover needs evidence"},
		"no reason":                   {"", keep, same, hostclaim.ErrWrongState, "reason is \"\""},
		"a source that does not execute": {hostclaim.Drain, keep,
			func(r *hostclaim.Relocation) { r.Source = spare }, hostclaim.ErrWrongState, "not the executor"},
		"source and target are one": {hostclaim.Drain, keep,
			func(r *hostclaim.Relocation) { r.Target = r.Source }, hostclaim.ErrWrongState, "both box-1"},
		"a pin delay below 0": {hostclaim.Drain, keep,
			func(r *hostclaim.Relocation) { r.PinDelay = -1 }, hostclaim.ErrWrongState, "pin delay"},
		"a target without enrollment": {hostclaim.Drain, keep,
			func(r *hostclaim.Relocation) { r.Target.Enrollment = "" }, hostclaim.ErrMalformed, "enrollment"},
		"a lost target": {hostclaim.Rebalance, func(c *hostclaim.Claim) { c.Lost = []string{target.Box} },
			same, hostclaim.ErrWrongState, "box-2 is lost"},
		"a target that owes a park-local": {hostclaim.Drain,
			owes(hostclaim.Obligation{ID: "a", Kind: hostclaim.ParkLocal, Box: target.Box, Owner: "box:box-2"}),
			same, hostclaim.ErrPendingChore, "box-2 still owes this host a park-local"},
		"a live source that owes a park-local": {hostclaim.Drain,
			owes(hostclaim.Obligation{ID: "a", Kind: hostclaim.ParkLocal, Box: source.Box, Owner: "box:box-1"}),
			same, hostclaim.ErrPendingChore, "source box-1"},
		"a park-replica of this very place": {hostclaim.Drain,
			owes(hostclaim.Obligation{ID: "a", Kind: hostclaim.ParkReplica, Incarnation: "inc-1", Region: testRegion, Owner: "region:ie"}),
			same, hostclaim.ErrPendingChore, "region ie"},
	} {
		t.Run(name, func(t *testing.T) {
			o, r := upTo(t, "serving"), relocation
			row.claim(o.Claim)
			row.change(&r)
			refused(t, o, hostclaim.StartRelocation(r, row.why), row.err, row.text)
		})
	}
	other := relocation
	other.Op = "op-3"
	for _, o := range []hostclaim.Observed{upTo(t, "creating"), drainUpTo(t, "starting"), {Host: testHost}} {
		refused(t, o, hostclaim.StartRelocation(other, hostclaim.Drain), hostclaim.ErrWrongState, "cannot be relocated")
	}
	refused(t, drainUpTo(t, "starting"), hostclaim.StartRelocation(relocation, hostclaim.Drain), hostclaim.ErrAlreadyRecorded, "")
	refused(t, drainUpTo(t, "relocated"), hostclaim.StartRelocation(relocation, hostclaim.Drain), hostclaim.ErrWrongState, "operation op-2 is over")
}

func TestOnlyWhatARelocationWouldWriteOverStandsInItsWay(t *testing.T) {
	for name, chore := range map[string]hostclaim.Obligation{
		"a park-generation here":                {ID: "a", Kind: hostclaim.ParkGeneration, Region: testRegion, Generation: "g-0", Owner: "region:ie"},
		"a park-replica of another region":      {ID: "a", Kind: hostclaim.ParkReplica, Incarnation: "inc-1", Region: "de", Owner: "region:de"},
		"a park-replica of another incarnation": {ID: "a", Kind: hostclaim.ParkReplica, Incarnation: "inc-0", Region: testRegion, Owner: "region:ie"},
		"a park-local of a third box":           {ID: "a", Kind: hostclaim.ParkLocal, Box: spare.Box, Owner: "box:box-3"},
	} {
		t.Run(name, func(t *testing.T) {
			o := upTo(t, "serving")
			o.Claim.Obligations = []hostclaim.Obligation{chore}
			then(t, o, hostclaim.StartRelocation(relocation, hostclaim.Rebalance))
		})
	}
	dead := upTo(t, "serving")
	dead.Claim.Obligations = []hostclaim.Obligation{{ID: "a", Kind: hostclaim.ParkLocal, Box: source.Box, Owner: "box:box-1"}}
	then(t, dead, hostclaim.StartFailover(relocation, gone(sourceGone(t))))
}

func TestEachParticipantAcknowledgesOnceUnderItsOwnEnrollment(t *testing.T) {
	o := drainUpTo(t, "starting")
	refused(t, o, hostclaim.Acknowledge("op-2", source.Box, target.Enrollment), hostclaim.ErrWrongState, "box-1 is enrolled as enr-1")
	refused(t, o, hostclaim.Acknowledge("op-2", target.Box, source.Enrollment), hostclaim.ErrWrongState, "box-2 is enrolled as enr-2")
	refused(t, o, ack(spare), hostclaim.ErrWrongState, "takes no part")
	refused(t, o, hostclaim.Acknowledge("op-1", source.Box, source.Enrollment), hostclaim.ErrStaleOp, "not op-1")
	o = then(t, o, ack(source))
	refused(t, o, ack(source), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.Acknowledge("op-2", source.Box, "enr-9"), hostclaim.ErrWrongState, "acknowledged as enr-1")
	o = then(t, o, ack(target))
	require.Equal(t, map[string]string{source.Box: source.Enrollment, target.Box: target.Enrollment}, o.Claim.Op.Journal.Acks)
	refused(t, drainUpTo(t, "relocated"), ack(target), hostclaim.ErrWrongState, "serving")
}

// TestNoPhaseIsLeftBeforeItsNextTargetAcknowledged replaces the target in every
// phase in which nothing was written yet.
func TestNoPhaseIsLeftBeforeItsNextTargetAcknowledged(t *testing.T) {
	for stage, row := range map[string]struct {
		phase hostclaim.Phase
		leave func(*hostclaim.Claim) hostclaim.Transition
	}{
		"acknowledged": {hostclaim.Starting, always(hostclaim.ToReleasing("op-2", phaseAt))},
		"released": {hostclaim.Releasing, func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.PinAfterRelease("op-2", stopOf(t, c), hostclaim.Member{}, phaseAt)
		}},
		"pinned": {hostclaim.Pinning, always(hostclaim.ToInstalling("op-2", "p-2", phaseAt))},
		"installing": {hostclaim.Installing, func(c *hostclaim.Claim) hostclaim.Transition {
			a := built
			a.Generation = c.Op.Journal.Prepared
			return hostclaim.ToInstalled("op-2", a, phaseAt)
		}},
		"received": {hostclaim.Installed, always(hostclaim.ToProbing("op-2", phaseAt))},
	} {
		t.Run(stage, func(t *testing.T) {
			o := then(t, drainUpTo(t, stage), hostclaim.ReplaceTarget("op-2", lostAt(t, target, phaseAt), spare, "p-2", phaseAt))
			require.Equal(t, row.phase, o.Claim.Op.Phase)
			require.NotContains(t, o.Claim.Op.Journal.Acks, target.Box)
			refused(t, o, row.leave(o.Claim), hostclaim.ErrWrongState, "acknowledged")
			refused(t, o, ack(target), hostclaim.ErrWrongState, "takes no part")
			refused(t, o, hostclaim.Acknowledge("op-2", spare.Box, target.Enrollment), hostclaim.ErrWrongState, "enr-3")
			o = then(t, o, ack(spare))
			require.Equal(t, spare.Enrollment, o.Claim.Op.Journal.Acks[spare.Box])
			if row.phase != hostclaim.Installed {
				then(t, o, row.leave(o.Claim))
			}
		})
	}
}

func TestASourceIsAskedToReleaseOnceEverybodyIsReady(t *testing.T) {
	ask := hostclaim.ToReleasing("op-2", phaseAt)
	refused(t, drainUpTo(t, "starting"), ask, hostclaim.ErrWrongState, "acknowledged")
	refused(t, drainUpTo(t, "source ready"), ask, hostclaim.ErrWrongState, "acknowledged")
	refused(t, then(t, drainUpTo(t, "starting"), ack(target)), ask, hostclaim.ErrWrongState, "acknowledged")
	refused(t, upTo(t, "acknowledged"), ask, hostclaim.ErrWrongState, "a failover has no source")
	refused(t, drainUpTo(t, "acknowledged"), hostclaim.ToReleasing("op-1", phaseAt), hostclaim.ErrStaleOp, "")
	refused(t, drainUpTo(t, "acknowledged"), hostclaim.PinFailover("op-2", phaseAt), hostclaim.ErrWrongState, "box-1 still executes")
	refused(t, drainUpTo(t, "releasing"), ask, hostclaim.ErrAlreadyRecorded, "")
	refused(t, drainUpTo(t, "pinning"), ask, hostclaim.ErrWrongState, "phase is \"pinning\"")
	before := drainUpTo(t, "acknowledged").Claim
	c := drainUpTo(t, "releasing").Claim
	require.Equal(t, hostclaim.Releasing, c.Op.Phase)
	require.Equal(t, phaseAt, c.Op.Journal.PhaseSince, "the release deadline runs from here")
	require.Equal(t, source.Box, c.Op.Exec)
	require.Equal(t, before.Holder, c.Holder)
	require.Equal(t, before.Op.Journal.Acks, c.Op.Journal.Acks)
}

func TestADrainIsCancelledOnlyWhereItCannotBegin(t *testing.T) {
	due := relocation.Now.Add(hostclaim.DrainDeadline)
	for name, o := range map[string]hostclaim.Observed{
		"nobody is ready":         drainUpTo(t, "starting"),
		"the target is not ready": drainUpTo(t, "source ready"),
		"the source is not ready": then(t, drainUpTo(t, "starting"), ack(target)),
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, o, hostclaim.CancelDrain("op-2", due.Add(-time.Second)), hostclaim.ErrWrongState, "it may still begin")
			c := then(t, o, hostclaim.CancelDrain("op-2", due)).Claim
			require.Equal(t, hostclaim.Op{Kind: hostclaim.Serving, ID: "op-2", By: "box-9", StartedAt: relocation.Now,
				Exec: source.Box, ExecEnrollment: source.Enrollment, Outcome: hostclaim.Cancelled, Participants: []string{source.Box}}, c.Op)
			require.Equal(t, o.Claim.Holder, c.Holder, "the source serves on under its stamp")
			require.Empty(t, c.Obligations)
		})
	}
	cancel := hostclaim.CancelDrain("op-2", due.Add(time.Hour))
	refused(t, drainUpTo(t, "acknowledged"), cancel, hostclaim.ErrWrongState, "it may still begin")
	refused(t, exhausted(t, "acknowledged"), cancel, hostclaim.ErrWrongState, "it may still begin")
	refused(t, drainUpTo(t, "releasing"), cancel, hostclaim.ErrWrongState, "starting is cancelled")
	refused(t, upTo(t, "starting"), cancel, hostclaim.ErrWrongState, "starting is cancelled")
	refused(t, drainUpTo(t, "starting"), hostclaim.CancelDrain("op-1", due), hostclaim.ErrStaleOp, "")
	refused(t, then(t, drainUpTo(t, "starting"), cancel), cancel, hostclaim.ErrAlreadyRecorded, "")
}

func TestACancelledDrainForgetsNoFenceAndNoLocalState(t *testing.T) {
	o := drainUpTo(t, "acknowledged")
	o.Claim.Touched = append(o.Claim.Touched, target.Box)
	late := hostclaim.FenceTargetWithoutSpare("op-2", lostAt(t, target, phaseAt), phaseAt.Add(hostclaim.SpareDeadline))
	o = then(t, o, late, hostclaim.CancelDrain("op-2", phaseAt.Add(hostclaim.SpareDeadline)))
	c := o.Claim
	require.Equal(t, source.Box, c.Op.Exec)
	require.Equal(t, []string{target.Box}, c.Lost)
	require.Len(t, c.EvidenceRefs, 1)
	require.True(t, c.Owes(target.Box, hostclaim.ParkLocal))
	require.False(t, c.Owes(source.Box, hostclaim.ParkLocal))
	then(t, o, hostclaim.AdmitWriter(readmission(c, "g-2")))
}

// lostAnswer makes the next write apply, and neither its answer nor the look
// after it arrive.
func lostAnswer(s *memstore.Store) {
	put := memstore.Once(memstore.OpPut, "", memstore.LoseAnswer)
	get := memstore.Once(memstore.OpGet, "", memstore.Lose)
	s.Inject(func(r memstore.Request) memstore.Fault { return max(put(r), get(r)) })
}

func TestAStartWhoseAnswerIsLostAndWhoseTargetDiesGoesOnWithASpare(t *testing.T) {
	for name, start := range map[string]hostclaim.Transition{
		"a drain":    hostclaim.StartRelocation(relocation, hostclaim.Drain),
		"a failover": hostclaim.StartFailover(relocation, gone(sourceGone(t))),
	} {
		t.Run(name, func(t *testing.T) {
			s, o := stored(t, upTo(t, "serving"))
			lostAnswer(s)
			_, err := hostclaim.Update(ctx, s, o, start)
			require.ErrorIs(t, err, hostclaim.ErrUnknown)

			found, err := hostclaim.Read(ctx, s, testHost)
			require.NoError(t, err)
			refused(t, found, start, hostclaim.ErrAlreadyRecorded, "")
			next, err := hostclaim.Update(ctx, s, found,
				hostclaim.ReplaceTarget("op-2", lostAt(t, target, phaseAt), spare, "", phaseAt))
			require.NoError(t, err)
			require.Equal(t, found.Claim.Op.Exec, next.Claim.Op.Exec, "evidence about the target moves no executor")
			require.Equal(t, found.Claim.Holder, next.Claim.Holder)
			require.Equal(t, spare, next.Claim.Op.Target())
			require.Contains(t, next.Claim.Lost, target.Box)
		})
	}
}

func TestAStartThatIsStillOnTheNetworkIsShutOutByTheNextWrite(t *testing.T) {
	s, o := stored(t, upTo(t, "serving"))
	s.Inject(memstore.Once(memstore.OpPut, "", memstore.Hold))
	start := hostclaim.StartRelocation(relocation, hostclaim.Drain)
	_, err := hostclaim.Update(ctx, s, o, start)
	require.ErrorIs(t, err, hostclaim.ErrUnknown)

	r := relocation
	r.Target = spare
	found, err := hostclaim.Read(ctx, s, testHost)
	require.NoError(t, err)
	require.Equal(t, o.Claim, found.Claim)
	_, err = hostclaim.Update(ctx, s, found, hostclaim.StartRelocation(r, hostclaim.Drain))
	require.NoError(t, err)
	_, err = s.Held()[0].Deliver()
	require.Error(t, err)
	found, err = hostclaim.Read(ctx, s, testHost)
	require.NoError(t, err)
	require.Equal(t, spare, found.Claim.Op.Target(), "the dead box was never named")
}

// TestARelocationIsOfTheExecutorInItsEnrollment: with another one its source
// could neither acknowledge nor be fenced.
func TestARelocationIsOfTheExecutorInItsEnrollment(t *testing.T) {
	o, r := upTo(t, "serving"), relocation
	r.Source.Enrollment = "enr-9"
	refused(t, o, hostclaim.StartRelocation(r, hostclaim.Drain), hostclaim.ErrWrongState, "box-1 executes as enr-1, not enr-9")
	refused(t, o, hostclaim.StartFailover(r, lostAt(t, r.Source, diedAt)), hostclaim.ErrWrongState, "box-1 executes as enr-1, not enr-9")
	require.Equal(t, []any{source.Box, source.Enrollment}, []any{o.Claim.Op.Exec, o.Claim.Op.ExecEnrollment})
	for stage, m := range map[string]hostclaim.Member{"released": source, "pinned": {Box: hostclaim.None}, "installing": target, "relocated": target} {
		op := drainUpTo(t, stage).Claim.Op
		require.Equal(t, m, hostclaim.Member{Box: op.Exec, Enrollment: op.ExecEnrollment}, stage)
	}
}

// TestACancellationWaitsForWhoeverWasNamedLast, a spare or a box that an
// operator chose.
func TestACancellationWaitsForWhoeverWasNamedLast(t *testing.T) {
	late := relocation.Now.Add(hostclaim.DrainDeadline)
	due := late.Add(hostclaim.DrainDeadline)
	o := then(t, drainUpTo(t, "source ready"), hostclaim.ReplaceTarget("op-2", lostAt(t, target, diedAt), spare, "", late))
	refused(t, o, hostclaim.CancelDrain("op-2", due.Add(-time.Second)), hostclaim.ErrWrongState, "it may still begin")
	then(t, o, hostclaim.CancelDrain("op-2", due))

	o = plant(drainUpTo(t, "source ready"), hostclaim.NoSpare)
	o = then(t, o, resolve(t, o, spare, hostclaim.Proof{}))
	refused(t, o, hostclaim.CancelDrain("op-2", decidedAt.Add(hostclaim.DrainDeadline-time.Second)), hostclaim.ErrWrongState, "it may still begin")
}
