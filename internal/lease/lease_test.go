package lease_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

const key = "control/leases/ie/l.json"

func candidate(s objstore.Store, holder string) *lease.Candidate {
	return &lease.Candidate{Store: s, Key: key, Holder: holder}
}

func acquire(t *testing.T, c *lease.Candidate) *lease.Lease {
	t.Helper()
	l, err := c.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Release(context.Background()) })
	return l
}

func refused(t *testing.T, c *lease.Candidate) *lease.HeldError {
	t.Helper()
	_, err := c.Acquire(t.Context())
	var held *lease.HeldError
	require.ErrorAs(t, err, &held)
	return held
}

// failing makes every request of op fail so.
func failing(op memstore.Op, f memstore.Fault) func(memstore.Request) memstore.Fault {
	return func(r memstore.Request) memstore.Fault {
		if r.Op == op {
			return f
		}
		return memstore.None
	}
}

func TestALeaseIsRenewedForAsLongAsItIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		l, other := acquire(t, candidate(s, "a")), candidate(s, "b")
		for range 100 {
			time.Sleep(lease.DefaultTTL / 3)
			require.NoError(t, l.Check())
			require.Greater(t, time.Until(l.SafeUntil()), lease.DefaultTTL/3)
			require.Equal(t, "a", refused(t, other).Holder)
		}
		require.Less(t, s.Requests()[memstore.OpPut], 125, "it renews at a third of its TTL, not more")
	})
}

func TestAForeignLeaseIsTakenOverOnlyAfterAWholeTTLUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c := candidate(s, "a")
		c.TTL = lease.BuildTTL // the stored TTL counts, not the candidate's own
		dead := acquire(t, c)
		s.Inject(failing(memstore.OpPut, memstore.Lose))
		time.Sleep(lease.BuildTTL)
		require.ErrorIs(t, dead.Check(), lease.ErrLost)
		s.Inject(nil)

		other := candidate(s, "b")
		require.Equal(t, lease.BuildTTL, refused(t, other).Wait)
		time.Sleep(lease.BuildTTL - time.Nanosecond)
		require.Equal(t, time.Nanosecond, refused(t, other).Wait)
		time.Sleep(time.Nanosecond)
		require.NoError(t, acquire(t, other).Check())
	})
}

func TestTheStoresClockFreesALeaseThatWasAbandonedLongAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		acquire(t, candidate(s, "a"))
		s.Inject(failing(memstore.OpPut, memstore.Lose))
		written := time.Now()
		time.Sleep(time.Hour)
		s.Inject(nil)

		other := candidate(s, "b")
		end := written.Add(lease.DefaultTTL + time.Second)
		other.StoreTime = func() time.Time { return end.Add(-time.Nanosecond) }
		refused(t, other)
		other.StoreTime = func() time.Time { return end }
		acquire(t, other)
	})
}

func TestALossIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		l := acquire(t, candidate(s, "a"))
		s.Inject(failing(memstore.OpPut, memstore.Lose))
		<-l.Lost()
		require.False(t, time.Now().Before(l.SafeUntil()))
		s.Inject(nil)
		puts := len(s.Log())
		time.Sleep(time.Hour)
		require.ErrorIs(t, l.Check(), lease.ErrLost)
		require.NoError(t, l.Release(t.Context()))
		require.Len(t, s.Log(), puts, "a lost lease writes nothing more")
	})
}

// slow is a store that passes a write on, whatever has become of its sender,
// after its gate has let it through.
type slow struct {
	objstore.Store
	gate atomic.Pointer[func(context.Context) error]
}

func (s *slow) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	if wait := s.gate.Load(); wait != nil {
		if err := (*wait)(ctx); err != nil {
			return objstore.Info{}, err
		}
	}
	return s.Store.Put(context.WithoutCancel(ctx), key, body, cond)
}

func TestALeaseEndsInTimeWhileItsRenewalHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Store: memstore.New()}
		l := acquire(t, candidate(s, "a"))
		unblock := make(chan struct{})
		wait := func(context.Context) error { <-unblock; return nil }
		s.gate.Store(&wait)
		start, end := time.Now(), l.SafeUntil()
		<-l.Lost()
		require.Less(t, time.Since(start), lease.DefaultTTL)

		close(unblock) // the renewal applies after all
		synctest.Wait()
		other := refused(t, candidate(s, "b"))
		require.Equal(t, "a", other.Holder)
		require.ErrorIs(t, l.Check(), lease.ErrLost)
		require.Equal(t, end, l.SafeUntil())
	})
}

func TestOneHangingRenewalLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Store: memstore.New()}
		l := acquire(t, candidate(s, "a"))
		wait := func(ctx context.Context) error {
			s.gate.Store(nil)
			<-ctx.Done()
			return objstore.ErrUnknown
		}
		s.gate.Store(&wait)
		time.Sleep(time.Hour)
		require.NoError(t, l.Check())
	})
}

func TestARenewalWhoseAnswerIsLostStillCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		l := acquire(t, candidate(s, "a"))
		s.Inject(failing(memstore.OpPut, memstore.LoseAnswer))
		time.Sleep(time.Hour)
		require.NoError(t, l.Check())
		s.Inject(nil)
	})
}

func TestARenewalThatLandsLateIsTheLeasesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		l := acquire(t, candidate(s, "a"))
		s.Inject(memstore.Once(memstore.OpPut, key, memstore.Hold))
		time.Sleep(lease.DefaultTTL / 3)
		require.Len(t, s.Held(), 1)
		s.Inject(failing(memstore.OpPut, memstore.Lose))
		_, err := s.Held()[0].Deliver()
		require.NoError(t, err)
		end := l.SafeUntil()
		time.Sleep(lease.DefaultTTL / 5)
		require.Equal(t, end, l.SafeUntil(), "it counts from nothing that is known")
		s.Inject(nil)
		time.Sleep(time.Hour)
		require.NoError(t, l.Check())
	})
}

func TestAReleaseFindsALateRenewalAndStillFrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		l := acquire(t, candidate(s, "a"))
		s.Inject(memstore.Once(memstore.OpPut, key, memstore.Hold))
		time.Sleep(lease.DefaultTTL / 3)
		_, err := s.Held()[0].Deliver()
		require.NoError(t, err)
		require.NoError(t, l.Release(t.Context()))
		acquire(t, candidate(s, "b"))
	})
}

func TestALateRenewalNeverDisturbsTheNextHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		old := acquire(t, candidate(s, "a"))
		s.Inject(failing(memstore.OpPut, memstore.Hold))
		<-old.Lost()
		s.Inject(nil)
		other := candidate(s, "b")
		refused(t, other)
		time.Sleep(lease.DefaultTTL)
		l := acquire(t, other)
		for _, late := range s.Held() {
			_, err := late.Deliver()
			require.ErrorIs(t, err, objstore.ErrConflict)
		}
		time.Sleep(time.Hour)
		require.NoError(t, l.Check())
	})
}

func TestAReleasedLeaseIsFreeAtOnceAndItsObjectStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		l := acquire(t, candidate(s, "a"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, l.Release(ctx), "a release goes on after its caller's end")
		require.ErrorIs(t, l.Check(), lease.ErrLost)
		<-l.Lost()
		require.NoError(t, l.Release(t.Context()))
		_, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		acquire(t, candidate(s, "b"))
	})
}

func TestALeaseThatAnotherTookIsLostAtTheNextRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		before := acquire(t, candidate(s, "a"))
		after := acquire(t, candidate(s, "a")) // the same box, started again
		time.Sleep(lease.DefaultTTL / 3)
		require.ErrorIs(t, before.Check(), lease.ErrLost)
		time.Sleep(time.Hour)
		require.NoError(t, after.Check())
	})
}

func TestOfSeveralCandidatesOneAcquires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		cs := []*lease.Candidate{candidate(s, "a"), candidate(s, "b")}
		cs[0].New = true
		var first *lease.Lease
		before := func(op memstore.Op) { // b runs before a's request
			s.Inject(func(r memstore.Request) memstore.Fault {
				if r.Op == op {
					s.Inject(nil)
					first = acquire(t, cs[1])
				}
				return memstore.None
			})
		}
		before(memstore.OpPut)
		_, err := cs[0].Acquire(t.Context())
		var held *lease.HeldError
		require.ErrorAs(t, err, &held)
		require.NoError(t, first.Check())

		require.NoError(t, first.Release(t.Context()))
		before(memstore.OpPut)
		_, err = cs[0].Acquire(t.Context())
		require.ErrorIs(t, err, objstore.ErrConflict, "between a's GET and PUT")
		require.NoError(t, first.Check())
	})
}

func TestALeaseThatNobodyEverHeldCostsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c := candidate(s, "a")
		c.New = true
		l := acquire(t, c)
		require.Equal(t, map[memstore.Op]int{memstore.OpPut: 1}, s.Requests())
		require.NoError(t, l.Release(t.Context()))
	})
}

func TestAFailedOrMalformedReadTakesNothing(t *testing.T) {
	s := memstore.New()
	_, err := s.Put(t.Context(), key, []byte("{}\n"), objstore.IfAbsent())
	require.NoError(t, err)
	s.Inject(failing(memstore.OpGet, memstore.Lose))
	_, err = candidate(s, "a").Acquire(t.Context())
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.Len(t, s.Log(), 1)

	s.Inject(nil)
	_, err = candidate(s, "a").Acquire(t.Context())
	require.ErrorIs(t, err, record.ErrMalformed)
	require.Len(t, s.Log(), 1)
}

func TestACandidateNeedsANameAndABoundedTTL(t *testing.T) {
	for _, c := range []lease.Candidate{{Holder: ""}, {Holder: "a", TTL: time.Hour}, {Holder: "a", TTL: time.Microsecond}} {
		c.Store, c.Key = memstore.New(), key
		_, err := c.Acquire(t.Context())
		require.ErrorContains(t, err, "want a name")
	}
}
