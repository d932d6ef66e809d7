package worker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

// turns is two workers that each have a host to drive, of which the first has
// the turn.
func turns(t *testing.T, act func(t *testing.T, one, two *Worker, asks *counted, end func())) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		enroll(t, s)
		asks := &counted{Store: s, requests: map[string]int{}}
		ctx, cancel := context.WithCancel(t.Context())
		first, end := context.WithCancel(ctx)
		asks.cut = end
		var loops sync.WaitGroup
		one, two := join(t, asks, "worker", newCloud()), join(t, s, "worker-2", newCloud())
		for w, ctx := range map[*Worker]context.Context{one: first, two: ctx} {
			w.queue.set(false)
			w.queue.add(host, rank{})
			if w == two {
				continue
			}
			loops.Go(func() { _ = w.takeTurns(ctx) })
		}
		time.Sleep(time.Minute)
		require.True(t, one.queue.isOpen())
		loops.Go(func() { _ = two.takeTurns(ctx) })
		time.Sleep(time.Minute)
		require.True(t, one.queue.isOpen())
		require.False(t, two.queue.isOpen(), "one drives at a time")
		act(t, one, two, asks, end)
		cancel()
		loops.Wait()
	})
}

// opens is how long it takes until a worker drives.
func opens(w *Worker) time.Duration {
	began := time.Now()
	for !w.queue.isOpen() && time.Since(began) < time.Hour {
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

func TestTheTurnOfAWorkerThatDiedIsTakenWithin12Seconds(t *testing.T) {
	turns(t, func(t *testing.T, _, two *Worker, asks *counted, _ func()) {
		asks.cutAfter(1)
		require.Less(t, opens(two), 12*time.Second+turnTTL/3)
	})
}

func TestAWorkerThatEndsGivesItsTurnBackAtOnce(t *testing.T) {
	turns(t, func(t *testing.T, one, two *Worker, _ *counted, end func()) {
		end()
		require.LessOrEqual(t, opens(two), turnAsk+100*time.Millisecond)
		require.False(t, one.queue.isOpen())
	})
}

func TestAWorkerWithNothingToDriveGivesItsTurnBack(t *testing.T) {
	turns(t, func(t *testing.T, one, two *Worker, asks *counted, _ func()) {
		s, ok := one.queue.take(t.Context())
		require.True(t, ok)
		one.queue.done(s)
		took := opens(two)
		require.GreaterOrEqual(t, took, turnIdle)
		require.Less(t, took, turnIdle+5*time.Second)
		asks.reset()
		time.Sleep(time.Hour)
		require.Zero(t, asks.total(), "at rest it asks for nothing")
	})
}

func TestAWorkerThatMayNotActLosesItsTurn(t *testing.T) {
	turns(t, func(t *testing.T, one, two *Worker, _ *counted, _ func()) {
		become(t, two, "worker", roster.Quarantined)
		_, _, err := one.enrolled(t.Context())
		require.ErrorIs(t, err, roster.ErrNotSelf)
		require.Less(t, opens(two), 2*turnAsk)
	})
}

// TestATurnThatCannotBeReadKeepsNoHostWaiting: it is no permission.
func TestATurnThatCannotBeReadKeepsNoHostWaiting(t *testing.T) {
	turns(t, func(t *testing.T, _, two *Worker, asks *counted, _ func()) {
		asks.Inject(func(r memstore.Request) memstore.Fault {
			if r.Key == turnKey("ie") {
				return memstore.Lose
			}
			return memstore.None
		})
		require.Less(t, opens(two), 2*turnAsk)
	})
}

// TestADriverWhoseTurnIsOverLeavesItsHostInTheQueue, for when it comes again.
func TestADriverWhoseTurnIsOverLeavesItsHostInTheQueue(t *testing.T) {
	w, _, _ := region(t)
	w.queue.add(host, rank{})
	s, ok := w.queue.take(t.Context())
	require.True(t, ok)
	w.queue.set(false)
	w.driveHost(t.Context(), s)
	require.Equal(t, 1, w.queue.size())
	w.queue.set(true)
	require.Equal(t, s, w.queue.next())
}
