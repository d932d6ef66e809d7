package announce_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/announce"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
)

// rows is a box with n rows, and the claims behind them.
type rows struct {
	store   *memstore.Store
	n       atomic.Int32
	read    atomic.Pointer[func(ctx context.Context, host string) (placement.Claim, error)]
	reads   atomic.Int32
	changed chan struct{}
	ending  atomic.Bool
	stop    func()
}

// answer says how claims are read from now on.
func (r *rows) answer(read func(ctx context.Context, host string) (placement.Claim, error)) {
	r.read.Store(&read)
}

func hostOf(i int) string { return fmt.Sprintf("host-%04d.example", i) }

func startRows(t *testing.T, n int) *rows {
	r := &rows{store: memstore.New(), changed: make(chan struct{}, 1)}
	r.n.Store(int32(n))
	r.answer(func(context.Context, string) (placement.Claim, error) {
		return placement.Claim{Exec: "box-1", Stamp: 7, Gen: 7, ETag: "e"}, nil
	})
	a := announce.Announcer{Store: r.store, Changed: r.changed, Every: 5 * time.Minute, Log: slog.New(slog.DiscardHandler),
		Edges: func() placement.Edges {
			e := placement.Edges{Box: "box-1", Region: "ie", Accepting: !r.ending.Load(), At: time.Now(), Hosts: map[string]placement.Host{}}
			for i := range r.n.Load() {
				e.Hosts[hostOf(int(i))] = placement.Host{Role: placement.RoleHome, App: "demo/notes"}
			}
			e.Headroom.MemoryBytes = time.Now().UnixNano()
			return e
		},
		Claims: &placement.Claims{Box: "box-1"},
		Read: func(ctx context.Context, host string) (placement.Claim, error) {
			r.reads.Add(1)
			return (*r.read.Load())(ctx, host)
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	r.stop = func() { cancel(); require.NoError(t, <-done) }
	go func() { done <- a.Run(ctx) }()
	return r
}

func (r *rows) file(t *testing.T) placement.Edges {
	p, err := placement.Read(t.Context(), r.store, "box-1")
	require.NoError(t, err)
	return p.Edges
}

func (r *rows) puts() int { return r.store.Requests()[memstore.OpPut] }

func TestARowIsPublishedAsItsClaimSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRows(t, 3)
		defer r.stop()
		r.answer(func(_ context.Context, host string) (placement.Claim, error) {
			switch host {
			case hostOf(0):
				return placement.Claim{Exec: "box-1", Stamp: 7, Gen: 7, ETag: "e"}, nil
			case hostOf(1):
				return placement.Claim{Exec: "box-2", Stamp: 7, Gen: 7, ETag: "e"}, nil
			}
			return placement.Claim{}, errors.New("the read failed")
		})
		time.Sleep(time.Second)
		hosts := r.file(t).Hosts
		require.Len(t, hosts, 2)
		require.Equal(t, uint64(7), hosts[hostOf(0)].Stamp)
		require.Contains(t, hosts, hostOf(2))
		require.Zero(t, hosts[hostOf(2)].Stamp)
	})
}

func TestReadsThatFindEverythingAsItWasWriteNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRows(t, 2000)
		defer r.stop()
		time.Sleep(9 * time.Minute)
		require.EqualValues(t, 2000, r.reads.Load(), "256 at once, and 256 every 30 s")
		require.Len(t, r.file(t).Hosts, 2000)
		require.LessOrEqual(t, r.puts(), 8+2, "each of the first passes had news")
		puts := r.puts()
		time.Sleep(time.Hour)
		require.LessOrEqual(t, r.puts()-puts, 12, "though the headroom changes all the time")
		require.GreaterOrEqual(t, r.puts()-puts, 10)
		require.GreaterOrEqual(t, int(r.reads.Load()), 5*2000)
	})
}

func TestABucketThatRefusesWritesIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRows(t, 2000)
		defer r.stop()
		r.answer(func(context.Context, string) (placement.Claim, error) {
			return placement.Claim{}, errors.New("it fails too")
		})
		var puts atomic.Int32
		r.store.Inject(func(q memstore.Request) memstore.Fault {
			if q.Op == memstore.OpPut {
				puts.Add(1)
				return memstore.Lose
			}
			return memstore.None
		})
		for range 20 * 60 {
			time.Sleep(time.Second)
			select {
			case r.changed <- struct{}{}: // and rows change all the while
			default:
			}
		}
		require.LessOrEqual(t, puts.Load(), int32(16))
		require.GreaterOrEqual(t, puts.Load(), int32(8))
		require.LessOrEqual(t, r.reads.Load(), 256*puts.Load())

		r.store.Inject(nil)
		time.Sleep(5 * time.Minute)
		before := r.reads.Load()
		time.Sleep(5 * time.Minute)
		require.InDelta(t, 10*256, r.reads.Load()-before, 256, "passes every 30 s resume")
	})
}

func TestAStoreThatHangsHoldsUpAPassFor20Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRows(t, 2000)
		defer r.stop()
		r.answer(func(ctx context.Context, _ string) (placement.Claim, error) {
			<-ctx.Done()
			return placement.Claim{}, ctx.Err()
		})
		time.Sleep(19 * time.Second)
		require.Zero(t, r.puts())
		time.Sleep(2 * time.Second)
		require.Len(t, r.file(t).Hosts, 2000)
		require.EqualValues(t, 8, r.reads.Load(), "the others were not begun, and stay in front")
	})
}

func TestAProcessThatEndsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRows(t, 1)
		time.Sleep(time.Minute)
		require.True(t, r.file(t).Accepting)
		r.ending.Store(true)
		r.stop()
		require.False(t, r.file(t).Accepting)
		require.Equal(t, uint64(7), r.file(t).Hosts[hostOf(0)].Stamp)

		quiet := startRows(t, 1)
		time.Sleep(time.Minute)
		puts := quiet.puts()
		quiet.stop()
		require.Equal(t, puts, quiet.puts(), "one that has nothing to say is silent")
	})
}

func TestChangesThatKeepComingShareFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRows(t, 0)
		defer r.stop()
		synctest.Wait()
		for range 1000 { // a recovery: a host comes up every 30 ms
			r.n.Add(1)
			select {
			case r.changed <- struct{}{}:
			default:
			}
			time.Sleep(30 * time.Millisecond)
		}
		require.Less(t, r.puts(), 70)
		time.Sleep(time.Second)
		require.Len(t, r.file(t).Hosts, 1000)
	})
}
