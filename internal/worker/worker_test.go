package worker

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

const host = "notes.demo.example"

// private signs the roster of every region here.
var private = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// cloud answers what a test says of each instance.
type cloud map[string]func(boxid.Cloud) (termfence.Observation, error)

func (c cloud) Describe(_ context.Context, box boxid.Cloud) (termfence.Observation, error) {
	if answer, ok := c[box.InstanceID]; ok {
		return answer(box)
	}
	return state("running")(box)
}

func state(s string) func(boxid.Cloud) (termfence.Observation, error) {
	return func(box boxid.Cloud) (termfence.Observation, error) {
		return termfence.Observation{Via: termfence.ViaDescribe, Found: true, InstanceID: box.InstanceID, Account: box.Account,
			Region: box.Region, State: s, RequestID: "r"}, nil
	}
}

// region is a deployment of three boxes and this worker, with one host that
// serves on the first.
func region(t *testing.T) (*Worker, cloud, *memstore.Store) {
	t.Helper()
	s, seen := memstore.New(), cloud{}
	w := &Worker{set: Settings{Box: "worker", Region: "ie", Parallel: 4, Sweep: time.Minute, PinDelay: time.Second},
		log: slog.New(slog.DiscardHandler), secret: boxauth.NewSecret(), control: s, describer: seen, hurry: make(chan struct{}, 1)}
	w.roster = roster.Open(s, private.Public().(ed25519.PublicKey), "s3://control")
	w.self, _ = enroll(t, s).Box("worker")
	w.fences = termfence.Reader{Store: s, Roster: w.roster}
	w.survey = w.surveyor()
	w.queue.open()
	w.hints = hint.NewSender(hint.Sender{Secret: w.secret})
	w.relocate = &hostrelocate.Worker{Control: s, Data: s, Region: "ie", Roster: w.roster, PinDelay: time.Second,
		Self: hostclaim.Member{Box: "worker", Enrollment: w.self.Enrollment}, Changed: w.changed, Gone: w.gone.get, Choose: w.survey.Choose}
	createHost(t, s)
	return w, seen, s
}

func enroll(t *testing.T, s *memstore.Store) roster.Snapshot {
	r := roster.Roster{DeploymentBucket: "s3://control", Boxes: map[string]roster.Box{},
		Regions: map[string]roster.Region{"ie": {Account: "123456789012", AWSRegion: "eu-west-1", Data: "s3://data"}}}
	for _, ref := range []string{"box-1", "box-2", "box-3", "worker"} {
		r.Boxes[ref] = roster.Box{Enrollment: "enr-" + ref, EnrolledAt: time.Now().UTC(), Region: "ie", Pool: "default", State: roster.Active,
			Cloud: boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: "i-" + ref}}
	}
	snap, err := roster.Create(t.Context(), s, private, r)
	require.NoError(t, err)
	return snap
}

func createHost(t *testing.T, s *memstore.Store) {
	rec := hostrecord.Record{V: 1, Gen: 1, Write: "w", Host: host, Account: "demo", App: "notes", Region: "ie", Pool: "default",
		Command: []string{"/bin/notes"}, Incarnation: "inc", CreatedAt: time.Now().UTC()}.WithDefaults()
	stored, err := hostrecord.Create(t.Context(), s, rec)
	require.NoError(t, err)
	o := hostclaim.Observed{Host: host}
	for _, step := range []hostclaim.Transition{
		hostclaim.BeginCreate(hostclaim.NewHost{Incarnation: "inc", Account: "demo", App: "notes", RecordKey: hostrecord.Key("demo", "notes", host),
			RecordSHA256: stored.SHA256, Region: "ie"}, "op-1", "console", time.Now(), hostclaim.Member{Box: "box-1", Enrollment: "enr-box-1"}),
		hostclaim.CompleteCreate("op-1", "box-1", "enr-box-1"),
	} {
		o, err = hostclaim.Update(t.Context(), s, o, step)
		require.NoError(t, err)
	}
}

// publish gives a box a fresh edges file.
func publish(t *testing.T, w *Worker, ref string) {
	_, err := placement.Publish(t.Context(), w.control, placement.Published{}, placement.Edges{Box: ref, Region: "ie",
		Address: "127.0.0.1:1", Internal: "127.0.0.1:2", Protocol: roster.Protocol, Capabilities: []string{placement.CapabilityRegionHA, placement.CapabilityRelease},
		Accepting: true, SecretsKeyFP: w.secret.Fingerprint(), At: time.Now().UTC()})
	require.NoError(t, err)
}

func claim(t *testing.T, w *Worker) *hostclaim.Claim {
	o, err := hostclaim.Read(t.Context(), w.control, host)
	require.NoError(t, err)
	return o.Claim
}

func TestNothingButTerminatedFencesABox(t *testing.T) {
	for name, answer := range map[string]func(boxid.Cloud) (termfence.Observation, error){
		"running":       state("running"),
		"stopped":       state("stopped"),
		"stopping":      state("stopping"),
		"shutting-down": state("shutting-down"),
		"not found": func(box boxid.Cloud) (termfence.Observation, error) {
			return termfence.Observation{Via: termfence.ViaDescribe, InstanceID: box.InstanceID, RequestID: "r"}, nil
		},
		"an error": func(boxid.Cloud) (termfence.Observation, error) {
			return termfence.Observation{}, errors.New("throttled")
		},
		"another account": func(box boxid.Cloud) (termfence.Observation, error) {
			box.Account = "9"
			return state("terminated")(box)
		},
		"another region": func(box boxid.Cloud) (termfence.Observation, error) {
			box.Region = "x"
			return state("terminated")(box)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, seen, _ := region(t)
			seen["i-box-1"] = answer
			require.NoError(t, w.sweep(t.Context()))
			require.False(t, w.gone.has("box-1"))
			_, fenced, err := w.fences.Fenced(t.Context(), "enr-box-1")
			require.NoError(t, err)
			require.False(t, fenced)
		})
	}
}

func TestATerminatedBoxIsFencedAndItsHostFailsOver(t *testing.T) {
	w, seen, _ := region(t)
	seen["i-box-1"] = state("terminated")
	publish(t, w, "box-2")
	require.NoError(t, w.sweep(t.Context()))
	require.True(t, w.gone.has("box-1"))
	require.False(t, w.gone.has("box-2"))
	turn, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	require.Equal(t, "failing over notes.demo.example from box-1 to box-2; what follows", turn.String())
	c := claim(t, w)
	require.Equal(t, hostclaim.Relocating, c.Op.Kind)
	require.Equal(t, "box-2", c.Op.Target().Box)
	require.Equal(t, time.Second, c.Op.Intent.PinDelay)
}

func TestAHostThatNoBoxMayBeGivenStaysAsItIs(t *testing.T) {
	w, seen, _ := region(t)
	seen["i-box-1"], seen["i-box-2"] = state("terminated"), state("terminated")
	publish(t, w, "box-2")
	require.NoError(t, w.sweep(t.Context()))
	turn, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	require.Contains(t, turn.String(), "unplaced notes.demo.example")
	require.Equal(t, hostclaim.Serving, claim(t, w).Op.Kind)
	require.Greater(t, turn.Again, untilSwept, "its place is given to another host")
}

func TestAnUnreadableFenceStopsTheStep(t *testing.T) {
	w, seen, s := region(t)
	seen["i-box-1"] = state("terminated")
	publish(t, w, "box-2")
	require.NoError(t, w.sweep(t.Context()))
	s.Inject(memstore.Once(memstore.OpGet, termfence.Key("enr-box-2"), memstore.Lose))
	_, err := w.stepHost(t.Context(), host)
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.Equal(t, hostclaim.Serving, claim(t, w).Op.Kind)
}

func TestAHostOnALiveBoxIsLeftAlone(t *testing.T) {
	w, _, _ := region(t)
	publish(t, w, "box-2")
	require.NoError(t, w.sweep(t.Context()))
	turn, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	require.True(t, turn.Done())
}

func TestAWorkerWhoseClockIsOffDrivesNothing(t *testing.T) {
	w, seen, _ := region(t)
	seen["i-box-1"] = state("terminated")
	publish(t, w, "box-2")
	require.NoError(t, w.sweep(t.Context()))
	w.clocked.Store(int64(-time.Hour))
	_, err := w.stepHost(t.Context(), host)
	require.ErrorContains(t, err, "off by -1h0m0s")
	require.Error(t, w.readiness())
	require.Equal(t, hostclaim.Serving, claim(t, w).Op.Kind)
	require.ErrorContains(t, w.sweep(t.Context()), "off by -1h0m0s", "nor does it date a fence")
}

// TestNothingIsDrivenBeforeTheClockWasCompared: at its start a worker does not
// know yet how far its clock is off.
func TestNothingIsDrivenBeforeTheClockWasCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen, _ := region(t)
		w.compared = make(chan struct{})
		seen["i-box-1"] = state("terminated")
		publish(t, w, "box-2")
		ctx, cancel := context.WithCancel(t.Context())
		var loops sync.WaitGroup
		loops.Go(func() { _ = w.fenceLoop(ctx) })
		loops.Go(func() { _ = w.drive(ctx) })
		w.queue.add(host)
		time.Sleep(time.Hour)
		require.False(t, w.gone.has("box-1"))
		close(w.compared)
		synctest.Wait()
		require.True(t, w.gone.has("box-1"))
		cancel()
		loops.Wait()
	})
}

func TestABoxThatWasFoundGoneSinceTheSurveyIsNoTarget(t *testing.T) {
	w, seen, _ := region(t)
	seen["i-box-1"] = state("terminated")
	publish(t, w, "box-2")
	require.NoError(t, w.sweep(t.Context()))
	target, ok, err := w.survey.Choose(t.Context(), claim(t, w), nil)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, hostclaim.Member{Box: "box-2", Enrollment: "enr-box-2"}, target)
	seen["i-box-2"] = state("terminated")
	require.NoError(t, w.sweep(t.Context()))
	_, ok, err = w.survey.Choose(t.Context(), claim(t, w), nil)
	require.NoError(t, err)
	require.False(t, ok)
}

// TestAnOperationThatCannotGoOnKeepsNoOtherOut: its target never acknowledges,
// and it is the only driver's.
func TestAnOperationThatCannotGoOnKeepsNoOtherOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen, _ := region(t)
		w.set.Parallel, w.compared = 1, make(chan struct{})
		close(w.compared)
		seen["i-box-1"] = state("terminated")
		publish(t, w, "box-2")
		require.NoError(t, w.sweep(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		var loops sync.WaitGroup
		loops.Go(func() { _ = w.drive(ctx) })
		w.queue.add(host)
		time.Sleep(2 * patience)
		require.Equal(t, hostclaim.Starting, claim(t, w).Op.Phase)
		w.queue.add("other.example")
		time.Sleep(2 * patience)
		w.queue.mu.Lock()
		require.Nil(t, w.queue.hosts["other.example"], "it was driven")
		require.NotNil(t, w.queue.hosts[host], "and this one still is")
		w.queue.mu.Unlock()
		cancel()
		loops.Wait()
	})
}

func TestAnotherWorkersFenceIsFoundInTheStore(t *testing.T) {
	w, seen, s := region(t)
	seen["i-box-1"] = state("terminated")
	require.NoError(t, w.sweep(t.Context()))
	other, silent, _ := region(t)
	other.control, other.roster, other.fences, other.self = s, w.roster, w.fences, w.self
	silent["i-box-1"] = func(boxid.Cloud) (termfence.Observation, error) { return termfence.Observation{}, errors.New("denied") }
	require.NoError(t, other.sweep(t.Context()))
	require.True(t, other.gone.has("box-1"))
}

func TestTheQueueHoldsAHostOnceAndDrivesItAgain(t *testing.T) {
	var q queue
	q.open()
	q.add("a")
	q.add("a")
	q.add("b")
	a, ok := q.take(t.Context())
	require.True(t, ok)
	require.Equal(t, "a", a)
	q.add("a")
	b, _ := q.take(t.Context())
	require.Equal(t, "b", b)
	q.done("b")
	q.done("a")
	a, _ = q.take(t.Context())
	require.Equal(t, "a", a, "it was added while it was driven")
	q.done("a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok = q.take(ctx)
	require.False(t, ok)
}

// TestAHoleWhoseListingFailedIsListedAgain: the hole shows in one poll only.
func TestAHoleWhoseListingFailedIsListedAgain(t *testing.T) {
	w, _, s := region(t)
	var lists atomic.Int32
	s.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpList && r.Key == "control/hosts/" && lists.Add(1) == 2 {
			return memstore.Lose
		}
		return memstore.None
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.watch(ctx) }()
	listed := func(n int32) func() bool { return func() bool { return lists.Load() == n } }
	require.Eventually(t, listed(1), 10*time.Second, 10*time.Millisecond)
	require.NoError(t, regionfile.Bump(ctx, s, "ie", slices.Repeat([]string{"other.example"}, regionfile.Keep+1)...))
	require.Eventually(t, listed(3), 20*time.Second, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}
