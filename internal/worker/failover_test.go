package worker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/announce"
	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

// scene is a region with its boxes, in which n hosts serve on the first.
type scene struct {
	t     *testing.T
	store *memstore.Store
	cloud *cloud
	crew  *crew
	boxes sync.WaitGroup
	ctx   context.Context
	stops []func()
}

// play acts in a bubble, in which the boxes named live.
func play(t *testing.T, n int, boxes []string, act func(*scene)) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		enroll(t, s)
		crowd(t, s, "box-1", n)
		ctx, cancel := context.WithCancel(t.Context())
		sc := &scene{t: t, store: s, cloud: newCloud(), crew: newCrew(t, s), ctx: ctx}
		sc.crew.start(ctx, &sc.boxes, boxes...)
		act(sc)
		for _, stop := range sc.stops {
			stop()
		}
		cancel()
		sc.boxes.Wait()
	})
}

// work drives a worker, until the scene is over or the function is called. It
// returns what the worker asks the store for.
func (sc *scene) work(ref string, set ...func(*Worker)) (w *Worker, asks *counted, stop func()) {
	sc.t.Helper()
	asks = &counted{Store: sc.store, requests: map[string]int{}}
	w = newWorker(sc.t, asks, ref, sc.cloud)
	w.set.Parallel, w.set.Send = 16, sc.crew.send
	for _, set := range set {
		set(w)
	}
	sc.crew.tell(w)
	ctx, cancel := context.WithCancel(sc.ctx)
	asks.cut = cancel
	asks.died = ctx.Done()
	ended := make(chan error, 1)
	go func() { ended <- w.Drive(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(sc.t, <-ended)
	})
	sc.stops = append(sc.stops, stop)
	return w, asks, stop
}

// end ends a box, which the cloud says at once.
func (sc *scene) end(ref string) {
	sc.crew.boxes[ref].die()
	sc.cloud.say("i-"+ref, state("terminated"))
}

func (sc *scene) away(within time.Duration, boxes ...string) time.Duration {
	sc.t.Helper()
	return away(sc.t, sc.store, within, boxes...)
}

// TestWhatAFailoverCostsDoesNotGrowWithTheHosts counts everything that the
// worker asks from the end of the box until its last host is back.
func TestWhatAFailoverCostsDoesNotGrowWithTheHosts(t *testing.T) {
	perHost := map[int]float64{}
	for _, n := range []int{1, 20, 200} {
		play(t, n, []string{"box-1", "box-2", "box-3"}, func(sc *scene) {
			w, asks, _ := sc.work("worker")
			time.Sleep(10 * time.Second)
			sc.end("box-1")
			asks.reset()
			took := sc.away(5*time.Minute, "box-1")
			perHost[n] = float64(asks.total()) / float64(n)
			t.Logf("%d hosts in %s: %.1f requests a host, %v", n, took, perHost[n], asks.requests)
			require.EqualValues(t, n, w.gauges.moved.Load())
		})
	}
	require.LessOrEqual(t, perHost[20], perHost[1])
	require.LessOrEqual(t, perHost[200], perHost[20])
	require.Less(t, perHost[200], 30.0)
}

func TestTwoWorkersDoNotDoubleTheWork(t *testing.T) {
	play(t, 40, []string{"box-1", "box-2", "box-3"}, func(sc *scene) {
		_, one, _ := sc.work("worker")
		_, two, _ := sc.work("worker-2")
		time.Sleep(10 * time.Second)
		one.reset()
		two.reset()
		sc.end("box-1")
		sc.away(5*time.Minute, "box-1")
		if one.total() < two.total() {
			one, two = two, one
		}
		t.Log(one.requests, two.requests)
		require.Less(t, float64(two.total())/40, 3.0, "requests a host of the one that stands by: %v", two.requests)
		require.LessOrEqual(t, one.conflicts+two.conflicts, 1)
	})
}

// TestAWorkerThatDiesAtAnyRequestIsTakenUpByAnother: the first worker is cut off
// at one of its requests after another, and the second goes on.
func TestAWorkerThatDiesAtAnyRequestIsTakenUpByAnother(t *testing.T) {
	longest, cuts := time.Duration(0), 0
	for over := false; !over; cuts++ {
		play(t, 2, []string{"box-1", "box-2", "box-3"}, func(sc *scene) {
			_, asks, _ := sc.work("worker")
			time.Sleep(10 * time.Second)
			sc.end("box-1")
			died := asks.cutAfter(1 + 3*cuts)
			back := make(chan time.Duration, 1)
			go func() { back <- sc.away(3*time.Minute, "box-1") }()
			select {
			case <-died:
				_, _, _ = sc.work("worker-2")
				longest = max(longest, <-back)
			case <-back:
				over = true
			}
		})
	}
	t.Logf("%d cuts, the longest failover took %s", cuts, longest)
	require.Greater(t, cuts, 10)
	require.Less(t, longest, 30*time.Second+announce.ClockLimit+lease.DefaultTTL+10*time.Second,
		"the sweep; a pin after another worker's fence waits for the skew of their clocks; its lease, if it died over that; the moves themselves")
}

func TestATargetThatEndsWhileItReceives200HostsIsReplaced(t *testing.T) {
	play(t, 200, []string{"box-1", "box-2"}, func(sc *scene) {
		w, _, _ := sc.work("worker")
		time.Sleep(10 * time.Second)
		sc.end("box-1")
		for range 600 {
			if w.progress().moving > 8 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		require.Greater(t, w.progress().moving, 8)
		sc.crew.start(sc.ctx, &sc.boxes, "box-3")
		sc.end("box-2")
		sc.away(5*time.Minute, "box-1", "box-2")
		require.Zero(t, w.progress().todo())
	})
}

// TestATargetThatEndsWhileAPinIsWaitedForIsReplacedAtOnce: not when the wait is
// over.
func TestATargetThatEndsWhileAPinIsWaitedForIsReplacedAtOnce(t *testing.T) {
	play(t, 1, []string{"box-1", "box-2"}, func(sc *scene) {
		w, _, _ := sc.work("worker", func(w *Worker) { w.relocate.PinDelay = time.Minute })
		time.Sleep(10 * time.Second)
		sc.end("box-1")
		w.Hint(hintAbout("box-1"))
		time.Sleep(10 * time.Second)
		sc.crew.start(sc.ctx, &sc.boxes, "box-3")
		time.Sleep(15 * time.Second) // the sweep between looks at everything
		sc.end("box-2")
		w.Hint(hintAbout("box-2"))
		time.Sleep(5 * time.Second)
		o, err := hostclaim.Read(t.Context(), sc.store, hostNamed(0))
		require.NoError(t, err)
		require.Equal(t, "box-3", o.Claim.Op.Target().Box)
		require.Equal(t, hostclaim.Pinning, o.Claim.Op.Phase)
	})
}

// TestARegionWhoseLastBoxEndedIsRecoveredByItsReplacement: nothing can be done
// before that is enrolled, and everything is then.
func TestARegionWhoseLastBoxEndedIsRecoveredByItsReplacement(t *testing.T) {
	play(t, 30, []string{"box-1"}, func(sc *scene) {
		w, _, _ := sc.work("worker")
		time.Sleep(10 * time.Second)
		sc.end("box-1")
		time.Sleep(2 * time.Minute)
		require.True(t, w.alerts.Raised(alert.Unplaced, "ie"))
		require.Equal(t, progress{waiting: 30, unplaced: 30, oldest: w.progress().oldest}, w.progress())
		_, err := roster.Update(t.Context(), sc.store, private, w.roster, func(r *roster.Roster) error {
			r.Boxes["box-9"] = roster.Box{Enrollment: "enr-box-9", EnrolledAt: time.Now().UTC(), Region: "ie", Pool: "default", State: roster.Active,
				Cloud: boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: "i-box-9"}}
			return nil
		})
		require.NoError(t, err)
		sc.crew.start(sc.ctx, &sc.boxes, "box-9")
		took := sc.away(2*time.Minute, "box-1")
		require.Less(t, took, time.Minute)
		time.Sleep(reportEvery)
		require.False(t, w.alerts.Raised(alert.Unplaced, "ie"))
		require.Zero(t, w.progress().todo())
	})
}

func TestADrainingBoxIsEmptiedAtOnceWhenAHintSaysSo(t *testing.T) {
	play(t, 20, []string{"box-1", "box-2", "box-3"}, func(sc *scene) {
		w, _, _ := sc.work("worker")
		time.Sleep(10 * time.Second)
		edit(t, w, "box-1", func(b *roster.Box) { b.Draining = true })
		w.Hint(hintAbout("box-1"))
		require.Less(t, sc.away(2*time.Minute, "box-1"), 25*time.Second, "less than until the next sweep")
		for i := range 20 {
			o, err := hostclaim.Read(t.Context(), sc.store, hostNamed(i))
			require.NoError(t, err)
			require.Equal(t, hostclaim.Completed, o.Claim.Op.Outcome)
		}
	})
}

// TestTheFirstMovesAreOfTheHostsThatChangedLast: the listing says when that was.
func TestTheFirstMovesAreOfTheHostsThatChangedLast(t *testing.T) {
	w, seen, s := region(t)
	seen.say("i-box-1", state("terminated"))
	sweep(t, w)
	now := time.Now()
	for n, ago := range []time.Duration{time.Hour, time.Minute, 2 * time.Hour} {
		createOn(t, s, hostNamed(n), "box-1")
		o, err := hostclaim.Read(t.Context(), s, hostNamed(n))
		require.NoError(t, err)
		w.listed(o, now.Add(-ago))
	}
	for _, n := range []int{1, 0, 2} {
		require.Equal(t, hostNamed(n), taken(t, w.queue).host)
	}
}
