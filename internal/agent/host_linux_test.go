package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/claimlist"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// bench is one host that a test steps by hand: its app is a real process, its
// stores are in memory and may fail.
type bench struct {
	*host
	t             *testing.T
	control, data *memstore.Store
	machine       *seer
	real          machine.Cgroups // where a test looks at the real machine
	probing       atomic.Bool
}

// newBench makes a host that was created for this box.
func newBench(t *testing.T) *bench {
	return newBenchOn(t, hostclaim.Member{Box: "box-1", Enrollment: "enr-1"})
}

// newBenchOn makes a host that was created for a box; another one completed it.
func newBenchOn(t *testing.T, selected hostclaim.Member) *bench {
	b := &bench{t: t, control: memstore.New(), data: memstore.New(), machine: &seer{}}
	self, err := os.Executable()
	require.NoError(t, err)
	rec := hostrecord.Record{V: 1, Gen: 1, Write: "w", Host: testHost, Account: "demo", App: "notes", Region: "ie", Pool: "default",
		Command: []string{self}, Env: map[string]string{"AGENT_TEST_APP": "1"}, Incarnation: "inc", CreatedAt: time.Now().UTC()}.WithDefaults()
	stored, err := hostrecord.Create(t.Context(), b.control, rec)
	require.NoError(t, err)
	o, err := hostclaim.Update(t.Context(), b.control, hostclaim.Observed{Host: testHost}, hostclaim.BeginCreate(hostclaim.NewHost{
		Incarnation: "inc", Account: "demo", App: "notes", RecordKey: hostrecord.Key("demo", "notes", testHost), RecordSHA256: stored.SHA256, Region: "ie"},
		"op-1", "console", time.Now(), selected))
	require.NoError(t, err)
	if selected.Box != "box-1" {
		_, err = hostclaim.Update(t.Context(), b.control, o, hostclaim.CompleteCreate("op-1", selected.Box, selected.Enrollment))
		require.NoError(t, err)
	}
	b.restart(t.TempDir())
	t.Cleanup(func() { _ = b.abandon(context.Background()) })
	return b
}

// restart is a new process of the agent on the same box.
func (b *bench) restart(dataDir string) {
	boot, err := bootID()
	require.NoError(b.t, err)
	a := &Agent{set: Settings{BoxSettings: BoxSettings{DataDir: dataDir, Box: "box-1", Region: "ie"}}, log: slog.New(slog.DiscardHandler), secret: boxauth.NewSecret(),
		bootID: boot, machine: b.machine, control: b.control, data: b.data, self: hostclaim.Member{Box: "box-1", Enrollment: "enr-1"},
		hosts: map[string]*host{}, dirty: make(chan struct{}, 1), alerts: alert.New(slog.New(slog.DiscardHandler))}
	a.participant = &hostrelocate.Participant{Control: a.control, Self: a.self, Runtime: runtime{a}, Changed: a.wrote}
	a.homes = newHomes(a)
	a.hints = hint.NewSender(hint.Sender{Secret: a.secret})
	a.beat.start(time.Now())
	guard, err := hostguard.Open(dataDir, testHost, hostguard.Identity{Box: "box-1", Enrollment: "enr-1", BootID: boot})
	require.NoError(b.t, err)
	b.host = &host{agent: a, name: testHost, log: a.log, guard: guard, wake: make(chan struct{}, 1)}
	require.NoError(b.t, b.newExecution())
	a.hosts[testHost] = b.host
}

// until steps until the claim passes; errors are made again.
func (b *bench) until(pass func(*hostclaim.Claim) bool) *hostclaim.Claim {
	b.t.Helper()
	var last error
	for range 100 {
		if c := b.claim(); pass(c) {
			return b.claim()
		}
		if turn, err := b.step(b.t.Context()); err != nil {
			last = err
		} else if turn.Again > 0 {
			time.Sleep(look)
		}
	}
	require.Fail(b.t, "the host does not get there", "%v", last)
	return nil
}

func (b *bench) claim() *hostclaim.Claim {
	o, err := hostclaim.Read(context.Background(), b.control, testHost)
	require.NoError(b.t, err)
	return o.Claim
}

func (b *bench) journal() hostguard.SessionStep {
	s, _, err := b.guard.Session()
	require.NoError(b.t, err)
	return s.Step
}

// TestAFirstStartThatFailedAnywhereIsMadeAgain loses each request of a host's
// first start in turn. The host has no data yet, and that must stay provable.
func TestAFirstStartThatFailedAnywhereIsMadeAgain(t *testing.T) {
	for n := 1; ; n++ {
		b := newBench(t)
		var seen atomic.Int64
		b.data.Inject(func(memstore.Request) memstore.Fault {
			if seen.Add(1) == int64(n) {
				return memstore.Lose
			}
			return memstore.None
		})
		b.until(served(0))
		require.NoError(t, b.abandon(context.Background()))
		if seen.Load() < int64(n) {
			require.Greater(t, n, 5)
			return
		}
	}
}

// TestAFailedRequestDeclaresNoTailLost: only what refuses the tail for good does.
func TestAFailedRequestDeclaresNoTailLost(t *testing.T) {
	b := newBench(t)
	first := b.until(served(0)).Holder.Session
	require.NoError(t, b.abandon(context.Background()))
	require.Equal(t, hostguard.Restored, b.journal())
	b.restart(b.agent.set.DataDir)
	var lost atomic.Bool
	b.data.Inject(func(memstore.Request) memstore.Fault {
		if lost.CompareAndSwap(false, true) {
			return memstore.Lose
		}
		return memstore.None
	})
	c := b.until(served(first))
	last := c.Holder.Admissions[len(c.Holder.Admissions)-1]
	require.Equal(t, hostclaim.CleanReturn, last.Coverage)
	require.Nil(t, last.WritesLost)
}

// TestAnAppWithoutItsReplicatorIsStoppedThoughItsClaimCannotBeRead: the claim is
// not asked, and the loop does not spin on it either.
func TestAnAppWithoutItsReplicatorIsStoppedThoughItsClaimCannotBeRead(t *testing.T) {
	b := newBench(t)
	b.until(served(0))
	b.run.end(errors.New("of no use any more"))
	b.control.Inject(memstore.Once(memstore.OpGet, hostclaim.Key(testHost), memstore.Lose))
	_, err := b.step(t.Context())
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.Nil(t, b.run)
	l, _ := b.local()
	require.False(t, l.Ready)
}

// TestAHostThatCouldNotBeTakenIsLookedAtAgain: what is in its way here goes, and
// the claim does not change for it.
func TestAHostThatCouldNotBeTakenIsLookedAtAgain(t *testing.T) {
	b := newBench(t)
	a := b.agent
	delete(a.hosts, testHost)
	var cancel context.CancelFunc
	a.life, cancel = context.WithCancel(t.Context())
	defer func() { cancel(); a.loops.Wait() }()

	foreign := filepath.Join(b.dir(), "guard.json")
	require.NoError(t, os.WriteFile(foreign, []byte("{}"), 0o600))
	list, missed := claimlist.Reader{Store: b.control}, map[string]bool{}
	require.True(t, a.sweepClaims(t.Context(), &list, missed))
	require.True(t, missed[testHost])
	require.NoError(t, os.Remove(foreign))
	b.control.Inject(memstore.Once(memstore.OpGet, hostclaim.Key(testHost), memstore.Lose))
	a.lookAt(t.Context(), []string{testHost}, missed)
	require.True(t, missed[testHost], "its claim could not be read")
	a.lookAt(t.Context(), []string{testHost}, missed)
	require.Empty(t, missed)
	_, ok := a.supervised(testHost)
	require.True(t, ok)
}

// TestAClaimThatCannotBeReadMakesNoSweepIncomplete: it is missed, and looked at
// again by itself.
func TestAClaimThatCannotBeReadMakesNoSweepIncomplete(t *testing.T) {
	b := newBench(t)
	a := b.agent
	_, err := b.control.Put(t.Context(), hostclaim.Key("broken.example"), []byte("garbage"), objstore.IfAbsent())
	require.NoError(t, err)
	list, missed := claimlist.Reader{Store: b.control}, map[string]bool{}
	require.True(t, a.sweepClaims(t.Context(), &list, missed))
	require.True(t, missed["broken.example"])
	require.Contains(t, *a.place.listed.Load(), "broken.example")
}

func TestAnotherHostsAliasKeepsNoHostFromItsSupervisor(t *testing.T) {
	b := newBench(t)
	a := b.agent
	other := &host{agent: a, name: "other.example", log: a.log, wake: make(chan struct{}, 1)}
	other.show(func(s *shown) { s.record.Aliases = []string{testHost} })
	a.hosts = map[string]*host{other.name: other}
	var cancel context.CancelFunc
	a.life, cancel = context.WithCancel(t.Context())
	defer func() { cancel(); a.loops.Wait() }()
	require.True(t, a.look(t.Context(), testHost))
	_, ok := a.supervised(testHost)
	require.True(t, ok)
}

// TestAHoleWhoseListingFailedIsListedAgain: the hole shows in one poll only.
func TestAHoleWhoseListingFailedIsListedAgain(t *testing.T) {
	b := newBench(t)
	var lists atomic.Int32
	b.control.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpList && r.Key == "control/hosts/" && lists.Add(1) == 2 {
			return memstore.Lose
		}
		return memstore.None
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.agent.watch(ctx) }()
	listed := func(n int32) func() bool { return func() bool { return lists.Load() == n } }
	require.Eventually(t, listed(1), 10*time.Second, 10*time.Millisecond)
	require.NoError(t, regionfile.Bump(ctx, b.control, "ie", slices.Repeat([]string{"other.example"}, regionfile.Keep+1)...))
	require.Eventually(t, listed(3), 20*time.Second, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}
