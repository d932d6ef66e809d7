package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// taken is the next host, which there is.
func taken(t *testing.T, q *queue) *slot {
	t.Helper()
	s, ok := q.take(t.Context())
	require.True(t, ok)
	return s
}

func opened() *queue {
	q := newQueue(func() bool { return true })
	q.set(true)
	return q
}

func TestTheQueueHoldsAHostOnceAndDrivesItAgain(t *testing.T) {
	q := opened()
	q.add("a", rank{})
	q.add("a", rank{})
	q.add("b", rank{})
	a := taken(t, q)
	require.Equal(t, "a", a.host)
	q.add("a", rank{})
	b := taken(t, q)
	require.Equal(t, "b", b.host)
	q.done(b)
	q.done(a)
	require.Equal(t, a, taken(t, q), "it was added while it was driven")
	q.done(a)
	require.Zero(t, q.size())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok := q.take(ctx)
	require.False(t, ok)
}

func TestWhatMovesGoesOnBeforeAnotherMoveBegins(t *testing.T) {
	q, now := opened(), time.Now()
	q.add("asleep.example", rank{changed: now.Add(time.Hour)})
	q.add("old.example", rank{awake: true, changed: now.Add(-time.Hour)})
	q.add("new.example", rank{awake: true, changed: now})
	q.add("moves.example", rank{moving: true})
	for _, host := range []string{"moves.example", "new.example", "old.example", "asleep.example"} {
		require.Equal(t, host, taken(t, q).host)
	}
}

func TestAHostWhoseMoveBeganElsewhereChangesItsPlace(t *testing.T) {
	q := opened()
	q.add("a", rank{awake: true})
	q.add("b", rank{})
	q.add("b", rank{moving: true})
	require.Equal(t, "b", taken(t, q).host)
	require.Equal(t, "a", taken(t, q).host)
	require.Nil(t, q.next())
}

func TestNoMoveIsBegunBeforeOneMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		may := false
		q := newQueue(func() bool { return may })
		q.set(true)
		q.add("a", rank{})
		q.add("b", rank{moving: true})
		require.Equal(t, "b", taken(t, q).host)
		got := make(chan *slot, 1)
		go func() {
			s, _ := q.take(t.Context())
			got <- s
		}()
		synctest.Wait()
		require.Empty(t, got)
		q.mu.Lock()
		may = true
		q.mu.Unlock()
		q.stir()
		require.Equal(t, "a", (<-got).host)
	})
}

func TestAShutQueueHandsOutNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(func() bool { return true })
		q.add("a", rank{})
		require.True(t, q.awaitAny(t.Context()))
		got := make(chan *slot, 1)
		go func() {
			s, _ := q.take(t.Context())
			got <- s
		}()
		synctest.Wait()
		require.Empty(t, got)
		q.set(true)
		require.Equal(t, "a", (<-got).host)
	})
}

func TestWhatIsPutOffHoldsNoPlaceAndComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := opened()
		q.add("a", rank{})
		a := taken(t, q)
		q.putOff(a, rank{moving: true}, time.Minute)
		require.Nil(t, q.next())
		require.True(t, q.has("a"))
		require.Nil(t, q.next(), "it looks soon anyway")
		require.True(t, q.wake("a"))
		require.Equal(t, a, taken(t, q))
		q.putOff(a, rank{moving: true}, time.Minute)
		began := time.Now()
		require.Equal(t, a, taken(t, q))
		require.Equal(t, time.Minute, time.Since(began))

		q.add("a", rank{})
		q.putOff(a, rank{moving: true}, time.Minute)
		require.Equal(t, a, q.next(), "what came while it was driven is looked at now")
		q.putOff(a, rank{moving: true}, time.Minute)
		q.wakeAll()
		require.Equal(t, a, q.next())
		q.done(a)
		require.False(t, q.has("a"))
	})
}
