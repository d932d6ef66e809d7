package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/termfence"
)

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
			seen.say("i-box-1", answer)
			sweep(t, w)
			require.False(t, w.gone.has("box-1"))
			_, fenced, err := w.fences.Fenced(t.Context(), "enr-box-1")
			require.NoError(t, err)
			require.False(t, fenced)
		})
	}
}

func TestATerminatedBoxIsFencedAndItsHostFailsOver(t *testing.T) {
	w, seen, _ := region(t)
	seen.say("i-box-1", state("terminated"))
	publish(t, w, "box-2")
	sweep(t, w)
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
	seen.say("i-box-1", state("terminated"))
	seen.say("i-box-2", state("terminated"))
	publish(t, w, "box-2")
	sweep(t, w)
	turn, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	require.Contains(t, turn.String(), "unplaced notes.demo.example")
	require.Equal(t, hostclaim.Serving, claim(t, w).Op.Kind)
	require.Greater(t, turn.Again, untilSwept, "its place is given to another host")
}

func TestAnUnreadableFenceStopsTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen, s := region(t)
		seen.say("i-box-1", state("terminated"))
		publish(t, w, "box-2")
		sweep(t, w)
		time.Sleep(time.Minute)
		s.Inject(memstore.Once(memstore.OpList, "control/box-fences/", memstore.Lose))
		_, err := w.stepHost(t.Context(), host)
		require.ErrorIs(t, err, memstore.ErrInjected)
		require.Equal(t, hostclaim.Serving, claim(t, w).Op.Kind)
	})
}

func TestAHostOnALiveBoxIsLeftAlone(t *testing.T) {
	w, _, _ := region(t)
	publish(t, w, "box-2")
	sweep(t, w)
	turn, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	require.True(t, turn.Done())
}

func TestAWorkerWhoseClockIsOffDrivesNothing(t *testing.T) {
	w, seen, _ := region(t)
	seen.say("i-box-1", state("terminated"))
	publish(t, w, "box-2")
	sweep(t, w)
	w.clock.set(-time.Hour)
	_, err := w.stepHost(t.Context(), host)
	require.ErrorContains(t, err, "off by -1h0m0s")
	require.Error(t, w.Ready())
	require.Equal(t, hostclaim.Serving, claim(t, w).Op.Kind)
	require.ErrorContains(t, w.sweep(t.Context()), "off by -1h0m0s", "nor does it date a fence")
}

// TestNothingIsDrivenBeforeTheClockWasCompared: at its start a worker does not
// know yet how far its clock is off.
func TestNothingIsDrivenBeforeTheClockWasCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen, _ := region(t)
		w.clock = newClock()
		w.queue.set(false)
		seen.say("i-box-1", state("terminated"))
		publish(t, w, "box-2")
		ctx, cancel := context.WithCancel(t.Context())
		var loops sync.WaitGroup
		for _, loop := range []func(context.Context) error{w.sweepLoop, w.lookLoop, w.takeTurns, w.drive} {
			loops.Go(func() { _ = loop(ctx) })
		}
		w.queue.add(host, rank{})
		w.Hint(hint.Hint{Box: "box-1"})
		time.Sleep(time.Hour)
		require.Zero(t, seen.count("i-box-1"))
		require.Equal(t, hostclaim.Serving, claim(t, w).Op.Kind)
		require.Error(t, w.Ready())
		w.clock.set(0)
		time.Sleep(time.Second)
		require.True(t, w.gone.has("box-1"))
		require.NoError(t, w.Ready())
		cancel()
		loops.Wait()
	})
}

func TestABoxThatWasFoundGoneSinceTheSurveyIsNoTarget(t *testing.T) {
	w, seen, _ := region(t)
	seen.say("i-box-1", state("terminated"))
	publish(t, w, "box-2")
	sweep(t, w)
	target, ok, err := w.survey.Choose(t.Context(), claim(t, w), nil)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, hostclaim.Member{Box: "box-2", Enrollment: "enr-box-2"}, target)
	seen.say("i-box-2", state("terminated"))
	sweep(t, w)
	_, ok, err = w.survey.Choose(t.Context(), claim(t, w), nil)
	require.NoError(t, err)
	require.False(t, ok)
}

// TestAMoveThatCannotGoOnKeepsNoOtherOut: its target never acknowledges, and as
// many moves run as may.
func TestAMoveThatCannotGoOnKeepsNoOtherOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen, s := region(t)
		w.set.Parallel = 1
		seen.say("i-box-1", state("terminated"))
		crowd(t, s, "box-1", perBox+1)
		publish(t, w, "box-2")
		sweep(t, w)
		ctx, cancel := context.WithCancel(t.Context())
		var loops sync.WaitGroup
		loops.Go(func() { _ = w.drive(ctx) })
		loops.Go(func() { _ = w.report(ctx) })
		for n := range perBox + 1 {
			w.queue.add(hostNamed(n), rank{})
		}
		time.Sleep(patience / 2)
		require.Len(t, w.claims.running(), perBox, "a move is given time")
		time.Sleep(patience/2 + reportEvery)
		require.Len(t, w.claims.running(), perBox+1, "and then it counts no more")
		cancel()
		loops.Wait()
	})
}

func TestAnotherWorkersFenceIsFoundInTheStore(t *testing.T) {
	w, seen, s := region(t)
	seen.say("i-box-1", state("terminated"))
	sweep(t, w)
	silent := newCloud()
	silent.say("i-box-1", func(boxid.Cloud) (termfence.Observation, error) { return termfence.Observation{}, errors.New("denied") })
	other := join(t, s, "worker-2", silent)
	sweep(t, other)
	require.True(t, other.gone.has("box-1"))
	require.Zero(t, silent.count("i-box-1"), "it needs no describe any more")
}

// TestAClaimThatCannotBeReadMakesNoListingFail: it is read again by itself, and
// rarely.
func TestAClaimThatCannotBeReadMakesNoListingFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, s := region(t)
		_, err := s.Put(t.Context(), hostclaim.Key("broken.example"), []byte("garbage"), objstore.IfAbsent())
		require.NoError(t, err)
		var lists, reads atomic.Int32
		s.Inject(func(r memstore.Request) memstore.Fault {
			switch {
			case r.Op == memstore.OpList && r.Key == "control/hosts/":
				lists.Add(1)
			case r.Key == hostclaim.Key("broken.example"):
				reads.Add(1)
			}
			return memstore.None
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- w.watch(ctx) }()
		go func() { ended <- w.readNews(ctx) }()
		time.Sleep(5 * time.Minute)
		require.EqualValues(t, 1, lists.Load())
		require.InDelta(t, 10, reads.Load(), 1, "each 30 s")
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	})
}

// TestAHoleWhoseListingFailedIsListedAgain: the hole shows in one poll only.
func TestAHoleWhoseListingFailedIsListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, lists.Load())
		require.NoError(t, regionfile.Bump(ctx, s, "ie", slices.Repeat([]string{"other.example"}, regionfile.Keep+1)...))
		time.Sleep(pollEvery + time.Second)
		require.EqualValues(t, 2, lists.Load())
		time.Sleep(listAgain + pollEvery)
		require.EqualValues(t, 3, lists.Load())
		cancel()
		require.NoError(t, <-ended)
	})
}
