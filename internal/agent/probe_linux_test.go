package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// worker enrolls box-0, this box and a worker, box-9.
func (b *bench) worker() (*hostrelocate.Worker, roster.Snapshot) {
	public, private := roster.GenerateKey()
	r := roster.Roster{DeploymentBucket: "s3://control", Boxes: map[string]roster.Box{},
		Regions: map[string]roster.Region{"ie": {Account: "123456789012", AWSRegion: "eu-west-1", Data: "s3://data"}}}
	for _, m := range []hostclaim.Member{{Box: "box-0", Enrollment: "enr-0"}, b.agent.self, {Box: "box-9", Enrollment: "enr-9"}} {
		r.Boxes[m.Box] = roster.Box{Enrollment: m.Enrollment, EnrolledAt: time.Now().UTC(), Region: "ie", Pool: "default", State: roster.Active,
			Cloud: boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: "i-" + m.Box}}
	}
	snap, err := roster.Create(b.t.Context(), b.control, private, r)
	require.NoError(b.t, err)
	return &hostrelocate.Worker{Control: b.control, Data: b.data, Region: "ie", Self: hostclaim.Member{Box: "box-9", Enrollment: "enr-9"},
		Roster: roster.Open(b.control, public, "s3://control"), PinDelay: time.Millisecond}, snap
}

// failover makes this box the target of a failover of a host that never had a
// writer, and returns the worker that drives it.
func (b *bench) failover() *hostrelocate.Worker {
	t := b.t
	w, snap := b.worker()
	dead, _ := snap.Box("box-0")
	self, _ := snap.Box("box-9")
	rec, err := termfence.Verify(dead, self, termfence.Observation{Via: termfence.ViaDescribe, Found: true, InstanceID: dead.Cloud.InstanceID,
		Account: dead.Cloud.Account, Region: dead.Cloud.Region, State: termfence.Terminated, RequestID: "r"}, time.Now())
	require.NoError(t, err)
	fence, err := termfence.Publish(t.Context(), b.control, termfence.Reader{Store: b.control, Roster: w.Roster}, rec)
	require.NoError(t, err)
	o, err := hostclaim.Read(t.Context(), b.control, testHost)
	require.NoError(t, err)
	_, err = w.StartFailover(t.Context(), o, hostclaim.Gone{Evidence: fence}, b.agent.self.Box)
	require.NoError(t, err)
	return w
}

// TestAFailedFirstAttemptOfAnEmptyHostLeavesAnother: nothing of the attempt
// reached the store, and that the host is empty must stay provable.
func TestAFailedFirstAttemptOfAnEmptyHostLeavesAnother(t *testing.T) {
	for range 30 {
		admissions := afterLostUploads(t)
		if len(admissions) == 1 {
			continue // the replicator's own third upload came before the probe's: the attempt passed
		}
		last := admissions[len(admissions)-1]
		require.Equal(t, hostclaim.CleanReturn, last.Coverage)
		require.Nil(t, last.WritesLost)
		return
	}
	t.Fatal("no first attempt ever failed")
}

// afterLostUploads makes a whole failover of which the first two uploads of the
// database are lost.
func afterLostUploads(t *testing.T) []hostclaim.AdmissionRecord {
	b := newBenchOn(t, hostclaim.Member{Box: "box-0", Enrollment: "enr-0"})
	w := b.failover()
	var lost atomic.Int32
	b.data.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpPut && strings.Contains(r.Key, "/ltx/") && lost.Add(1) <= 2 {
			return memstore.Lose
		}
		return memstore.None
	})
	c := b.drive(w)
	require.NoError(t, b.abandon(context.Background()))
	return c.Holder.Admissions
}

// TestAParticipationIsForgottenOnceItsOperationIsOver and not before, by the
// process that took part or by the next.
func TestAParticipationIsForgottenOnceItsOperationIsOver(t *testing.T) {
	b := newBenchOn(t, hostclaim.Member{Box: "box-0", Enrollment: "enr-0"})
	w := b.failover()
	journaled := func() int {
		list, damaged, err := hostguard.Participations(b.agent.set.DataDir)
		require.NoError(t, err)
		require.Empty(t, damaged)
		return len(list)
	}
	b.until(func(c *hostclaim.Claim) bool { return c.Op.Acknowledged() })
	_, err := b.step(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, journaled(), "the operation runs")
	b.drive(w)
	require.NoError(t, b.abandon(context.Background()))
	b.restart(b.agent.set.DataDir)
	_, err = b.step(t.Context())
	require.NoError(t, err)
	require.Zero(t, journaled())
	require.NoError(t, b.abandon(context.Background()))
}

// TestAParticipationWhoseOperationEndedMeanwhileIsEndedAtTheNextStart: no claim
// names this box any more, and an update of it would be deferred for ever.
func TestAParticipationWhoseOperationEndedMeanwhileIsEndedAtTheNextStart(t *testing.T) {
	b := newBenchOn(t, hostclaim.Member{Box: "box-0", Enrollment: "enr-0"})
	w, _ := b.worker()
	_, err := w.Drain(t.Context(), b.observed(), hostclaim.Drain, b.agent.self)
	require.NoError(t, err)
	b.until(func(c *hostclaim.Claim) bool { return c.Op.Journal.Acks["box-1"] != "" })
	require.NoError(t, os.MkdirAll(b.warm(), 0o700))
	data := b.agent.set.DataDir
	b.restart(data)
	b.write(hostclaim.CancelDrain(b.claim().Op.ID, time.Now().Add(2*hostclaim.DrainDeadline)))
	require.ErrorIs(t, hostguard.BeginUpdate(data), hostguard.ErrDeferred)

	a := b.agent
	clear(a.hosts)
	var stop context.CancelFunc
	a.life, stop = context.WithCancel(t.Context())
	defer func() { stop(); a.loops.Wait() }()
	require.True(t, a.concern(b.observed()))
	require.Empty(t, a.rows(), "its claim does not name this box")
	b.control.Inject(memstore.Once(memstore.OpGet, hostclaim.Key(testHost), memstore.Lose))
	a.recall()
	require.Eventually(t, func() bool { return len(a.rows()) == 0 }, 20*time.Second, 10*time.Millisecond)
	list, damaged, err := hostguard.Participants(data)
	require.NoError(t, err)
	require.Empty(t, damaged)
	require.Empty(t, list)
	require.NoDirExists(t, b.warm())
	require.NoError(t, hostguard.BeginUpdate(data))
}

// TestWhatAnOperationLeftIsTriedAgainSoon, and not when a host at rest looks.
func TestWhatAnOperationLeftIsTriedAgainSoon(t *testing.T) {
	b := newBenchOn(t, hostclaim.Member{Box: "box-0", Enrollment: "enr-0"})
	_, err := b.guard.Acknowledge(t.Context(), "op-9", time.Now())
	require.NoError(t, err)
	b.restart(b.agent.set.DataDir)
	require.NoError(t, os.Mkdir(filepath.Join(b.agent.set.DataDir, ".hostexec", testHost+".json"), 0o700)) // in the way
	turn, err := b.step(t.Context())
	require.NoError(t, err)
	require.Equal(t, leaveAgain, turn.Again)
}

// drive steps the worker and this box until the host serves here.
func (b *bench) drive(w *hostrelocate.Worker) *hostclaim.Claim {
	return b.until(func(c *hostclaim.Claim) bool {
		o, err := hostclaim.Read(context.Background(), b.control, testHost)
		require.NoError(b.t, err)
		_, _ = w.Step(b.t.Context(), o) // a failure is made again
		b.probing.Store(c.Op.Phase == hostclaim.Probing)
		return c.Op.Kind == hostclaim.Serving && c.Op.Exec == "box-1"
	})
}

// TestAnyRequestOfAProbingMayFail: a failed request of the first attempt costs
// an attempt, and no operation.
func TestAnyRequestOfAProbingMayFail(t *testing.T) {
	for n := int32(1); ; n++ {
		b := newBenchOn(t, hostclaim.Member{Box: "box-0", Enrollment: "enr-0"})
		w := b.failover()
		var seen, hit atomic.Int32
		b.data.Inject(func(memstore.Request) memstore.Fault {
			if b.probing.Load() && seen.Add(1) == n {
				hit.Store(1)
				return memstore.Lose
			}
			return memstore.None
		})
		b.drive(w)
		require.NoError(t, b.abandon(context.Background()))
		if hit.Load() == 0 {
			require.Greater(t, n, int32(3))
			return
		}
	}
}
