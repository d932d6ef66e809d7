package agent

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/stopevidence"
)

// seer is a machine of process groups that sees what a test lets it see.
type seer struct {
	machine.Groups
	held atomic.Int32 // looks that find something still
	err  error
}

func (m *seer) look() ([]stopevidence.Check, error) {
	if m.err != nil {
		return nil, m.err
	}
	if m.held.Add(-1) >= 0 {
		return nil, &stopevidence.HeldError{Cgroup: "one process"}
	}
	return []stopevidence.Check{{Name: stopevidence.CgroupEmpty, Passed: true}, {Name: stopevidence.NoHolders, Passed: true}}, nil
}

func (m *seer) WritersStopped(context.Context, string, stopevidence.Subject, []stopevidence.Descriptor) ([]stopevidence.Check, error) {
	return m.look()
}

func (m *seer) Collect(context.Context, string, stopevidence.Subject) (machine.Seen, error) {
	checks, err := m.look()
	return machine.Seen{Checks: checks, BootID: "boot", At: time.Now().UTC()}, err
}

// drain starts a drain of the host to box-0, which has acknowledged.
func (b *bench) drain() *hostrelocate.Worker {
	w, _ := b.worker()
	o, err := hostclaim.Read(b.t.Context(), b.control, testHost)
	require.NoError(b.t, err)
	_, err = w.Drain(b.t.Context(), o, hostclaim.Drain, hostclaim.Member{Box: "box-0", Enrollment: "enr-0"})
	require.NoError(b.t, err)
	b.write(hostclaim.Acknowledge(b.claim().Op.ID, "box-0", "enr-0"))
	return w
}

// releasing drains the host and asks this box to release it.
func (b *bench) releasing() {
	b.drain()
	b.until(func(c *hostclaim.Claim) bool { return c.Op.Acknowledged() })
	b.write(hostclaim.ToReleasing(b.claim().Op.ID, time.Now()))
}

func (b *bench) write(t hostclaim.Transition) {
	o, err := hostclaim.Read(b.t.Context(), b.control, testHost)
	require.NoError(b.t, err)
	_, err = hostclaim.Update(b.t.Context(), b.control, o, t)
	require.NoError(b.t, err)
}

func (b *bench) observed() hostclaim.Observed {
	o, err := hostclaim.Read(b.t.Context(), b.control, testHost)
	require.NoError(b.t, err)
	return o
}

func released(c *hostclaim.Claim) bool { return c.Op.Journal.Release != nil }

// TestASourceServesOnUntilItsFenceCloses and is started again meanwhile like any
// other.
func TestASourceServesOnUntilItsFenceCloses(t *testing.T) {
	b := newBench(t)
	first := b.until(served(0)).Holder.Session
	b.drain()
	b.until(func(c *hostclaim.Claim) bool { return c.Op.Acknowledged() })
	local, _ := b.local()
	require.True(t, local.Ready)
	require.NoError(t, b.abandon(context.Background()))
	b.restart(b.agent.set.DataDir)
	c := b.until(served(first))
	require.Equal(t, hostclaim.Starting, c.Op.Phase)
	require.Nil(t, c.Holder.Admissions[len(c.Holder.Admissions)-1].WritesLost)
	_, err := b.step(t.Context())
	require.NoError(t, err)
	local, _ = b.local()
	require.True(t, local.Ready)

	b.write(hostclaim.ToReleasing(c.Op.ID, time.Now()))
	b.present(b.claim())
	local, _ = b.local()
	require.True(t, local.Ready)
	require.NoError(t, b.closeAdmission(t.Context(), b.claim()))
	local, _ = b.local()
	require.False(t, local.Ready)
}

// TestPositionsThatAreJournaledAreTheReleases: after them nothing is flushed, by
// this process or by the next.
func TestPositionsThatAreJournaledAreTheReleases(t *testing.T) {
	for name, again := range map[string]func(*bench){
		"the same process": func(*bench) {},
		"the next one":     func(b *bench) { require.NoError(b.t, b.abandon(context.Background())); b.restart(b.agent.set.DataDir) },
		"told to end":      func(b *bench) { require.NoError(b.t, b.retire(context.Background())); b.restart(b.agent.set.DataDir) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.until(served(0))
			b.releasing()
			b.control.Inject(func(r memstore.Request) memstore.Fault {
				if r.Op == memstore.OpPut && strings.HasPrefix(r.Key, "control/stop/") {
					return memstore.Lose
				}
				return memstore.None
			})
			_, err := runtime{b.agent}.Release(t.Context(), b.observed())
			require.ErrorIs(t, err, memstore.ErrInjected)
			was, found, err := b.guard.Released(stopRequest(b.claim()))
			require.NoError(t, err)
			require.True(t, found)
			b.control.Inject(nil)
			again(b)
			b.data.Inject(func(memstore.Request) memstore.Fault { return memstore.Lose })
			c := b.until(released)
			require.Equal(t, position(was.Final), c.Op.Journal.Release.Final)
			require.NotZero(t, was.Final.TXID)
		})
	}
}

// TestAReleaseThatIsToldToEndLeavesItsPositions: what the session wrote is
// flushed under the fence, and the next process goes on from there.
func TestAReleaseThatIsToldToEndLeavesItsPositions(t *testing.T) {
	b := newBench(t)
	b.until(served(0))
	b.releasing()
	require.NoError(t, b.closeAdmission(t.Context(), b.claim()))
	require.NoError(t, b.retire(t.Context()))
	require.Nil(t, b.claim().Holder.Ended)
	b.restart(b.agent.set.DataDir)
	b.data.Inject(func(memstore.Request) memstore.Fault { return memstore.Lose })
	require.NotZero(t, b.until(released).Op.Journal.Release.Final.TXID)
}

// TestATailOfThisBootIsFlushedUnderTheFence by the process that finds it.
func TestATailOfThisBootIsFlushedUnderTheFence(t *testing.T) {
	b := newBench(t)
	session := b.until(served(0)).Holder.Session
	b.releasing()
	require.NoError(t, b.closeAdmission(t.Context(), b.claim()))
	require.NoError(t, b.abandon(context.Background()))
	b.restart(b.agent.set.DataDir)
	b.machine.held.Store(3)
	c := b.until(released)
	require.Equal(t, session, c.Op.Journal.Release.Session)
	require.NotZero(t, c.Op.Journal.Release.Final.TXID)
	require.Equal(t, hostguard.Ended, b.journal())
}

// TestATailThatMayBeGoneIsNeverReleased as if nothing was lost.
func TestATailThatMayBeGoneIsNeverReleased(t *testing.T) {
	b := newBench(t)
	b.until(served(0))
	b.releasing()
	require.NoError(t, b.abandon(context.Background()))
	b.restart(b.agent.set.DataDir)
	var err error
	b.guard, err = hostguard.Open(b.agent.set.DataDir, testHost, hostguard.Identity{Box: "box-1", Enrollment: "enr-1", BootID: "another"})
	require.NoError(t, err)
	require.NoError(t, b.newExecution())
	for range 3 {
		_, err := b.step(t.Context())
		require.ErrorIs(t, err, errTailLost)
		require.ErrorIs(t, err, hostguard.ErrSession)
	}
	require.Nil(t, b.claim().Op.Journal.Release)
	require.Nil(t, b.claim().Holder.Ended)
}

func TestNothingStartsUnderAReleasesFence(t *testing.T) {
	b := newBench(t)
	b.until(served(0))
	b.releasing()
	require.NoError(t, b.closeAdmission(t.Context(), b.claim()))
	require.NoError(t, b.abandon(context.Background()))
	_, err := b.startServing(t.Context(), b.observed())
	require.NoError(t, err)
	require.NotNil(t, b.claim().Holder.Ended, "its session ends in order")
	_, err = b.startServing(t.Context(), b.observed())
	require.ErrorIs(t, err, hostguard.ErrFenced)
	require.Nil(t, b.run)
}

// TestABoxThatCannotProveAStopTakesNoPartInADrain: its host serves on, and what
// is missing is said.
func TestABoxThatCannotProveAStopTakesNoPartInADrain(t *testing.T) {
	b := newBench(t)
	b.until(served(0))
	b.machine.err = stopevidence.ErrIncomplete
	b.drain()
	for range 3 {
		_, err := b.step(t.Context())
		require.ErrorIs(t, err, stopevidence.ErrIncomplete)
	}
	require.Empty(t, b.claim().Op.Journal.Acks["box-1"])
	local, _ := b.local()
	require.True(t, local.Ready)
}

// TestABoxSaysThatItCanReleaseOnceALookWasComplete, so that no drain begins that
// it would have to refuse.
func TestABoxSaysThatItCanReleaseOnceALookWasComplete(t *testing.T) {
	b := newBench(t)
	b.machine.err = stopevidence.ErrIncomplete
	require.NotContains(t, b.agent.edges().Capabilities, placement.CapabilityRelease)
	b.machine.err = nil
	require.Contains(t, b.agent.edges().Capabilities, placement.CapabilityRelease)
	b.agent.machine = nil
	require.NotContains(t, b.agent.edges().Capabilities, placement.CapabilityRelease)
}

// TestAHostWhoseSessionEndedIsReleasedAtItsEnd without anything being opened or
// written again.
func TestAHostWhoseSessionEndedIsReleasedAtItsEnd(t *testing.T) {
	b := newBench(t)
	b.until(served(0))
	b.drain()
	b.until(func(c *hostclaim.Claim) bool { return c.Op.Acknowledged() })
	require.NoError(t, b.retire(t.Context()))
	end := b.claim().Holder.Ended
	require.NotNil(t, end)
	b.write(hostclaim.ToReleasing(b.claim().Op.ID, time.Now()))
	b.restart(b.agent.set.DataDir)
	b.data.Inject(func(memstore.Request) memstore.Fault { return memstore.Lose })
	require.Equal(t, end.Final, b.until(released).Op.Journal.Release.Final)
}

func TestAHostWithoutAWriterIsReleasedAtNothing(t *testing.T) {
	b := newBench(t)
	b.write(hostclaim.CompleteCreate("op-1", "box-1", "enr-1"))
	b.drain()
	require.NoError(t, runtime{b.agent}.Enter(t.Context(), b.observed()))
	b.write(hostclaim.Acknowledge(b.claim().Op.ID, "box-1", "enr-1"))
	b.write(hostclaim.ToReleasing(b.claim().Op.ID, time.Now()))
	b.data.Inject(func(memstore.Request) memstore.Fault { return memstore.Lose })
	r := b.until(released).Op.Journal.Release
	require.Zero(t, r.Session)
	require.Equal(t, hostclaim.Position{}, r.Final)
}

// TestNothingIsReleasedWhileAnythingHoldsTheDatabase: the box looks until
// nothing does.
func TestNothingIsReleasedWhileAnythingHoldsTheDatabase(t *testing.T) {
	b := newBench(t)
	b.until(served(0))
	b.releasing()
	b.machine.held.Store(1 << 20)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := runtime{b.agent}.Release(ctx, b.observed())
	require.ErrorContains(t, err, "not stopped: one process")
	_, found, err := b.guard.Released(stopRequest(b.claim()))
	require.NoError(t, err)
	require.False(t, found)
	b.machine.held.Store(0)
	b.until(released)
}

// TestATargetWhoseProbeFailedReleasesItsOwnSession by the same sequence.
func TestATargetWhoseProbeFailedReleasesItsOwnSession(t *testing.T) {
	b := newBenchOn(t, hostclaim.Member{Box: "box-0", Enrollment: "enr-0"})
	w := b.failover()
	b.until(func(c *hostclaim.Claim) bool {
		if c.Op.Phase != hostclaim.Probing {
			_, _ = w.Step(t.Context(), b.observed())
		}
		return c.Op.Journal.Probe == nil && c.Op.Journal.ProbeAdmission == 1
	})
	b.write(hostclaim.ToProbeFailed(b.claim().Op.ID, time.Now().Add(2*hostclaim.ProbeDeadline)))
	c := b.until(released)
	require.Equal(t, "box-1", c.Op.Journal.Release.Box)
	require.Equal(t, c.Holder.Session, c.Op.Journal.Release.Session)
	require.Equal(t, hostguard.Ended, b.journal())
}

// newer begins a newer installation here, as an operator's resolution does.
func newer(c *hostclaim.Claim) error {
	c.Holder.Stamp = c.Gen
	return nil
}

// TestASessionThatANewerInstallationOutlivedEndsInOrder whatever runs of it, and
// though a release had stopped it.
func TestASessionThatANewerInstallationOutlivedEndsInOrder(t *testing.T) {
	b := newBench(t)
	first := b.until(served(0)).Holder.Session
	require.NoError(t, b.guard.BeginFence(t.Context(), first, "op-9"))
	b.fenced = first
	require.NoError(t, b.run.app.Load().Stop(t.Context()))
	b.write(newer)
	c := b.until(served(first))
	last := c.Holder.Admissions[len(c.Holder.Admissions)-1]
	require.Equal(t, hostclaim.CleanReturn, last.Coverage)
	require.Nil(t, last.WritesLost)
	local, _ := b.local()
	require.True(t, local.Ready)
}

// TestANewerInstallationIsReleasedAtTheEndOfTheSessionBefore it, running or left
// by an earlier process.
func TestANewerInstallationIsReleasedAtTheEndOfTheSessionBefore(t *testing.T) {
	for name, before := range map[string]func(*bench){
		"running": func(*bench) {},
		"left":    func(b *bench) { require.NoError(b.t, b.abandon(context.Background())); b.restart(b.agent.set.DataDir) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.until(served(0))
			b.releasing()
			before(b)
			b.write(newer)
			c := b.until(released)
			require.NotZero(t, c.Op.Journal.Release.Final.TXID)
			require.Equal(t, c.Holder.Ended.Final, c.Op.Journal.Release.Final)
		})
	}
}
