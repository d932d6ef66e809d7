package announce_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/announce"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
)

// box is an edges file that a test changes.
type box struct {
	changed chan struct{}

	mu    sync.Mutex
	stamp uint64
	moved []string
	off   []time.Duration
}

// become gives the box's host another stamp, and says so.
func (b *box) become(stamp uint64) {
	b.mu.Lock()
	b.stamp = stamp
	b.mu.Unlock()
	b.changed <- struct{}{}
}

// told is what the announcer told: which hosts moved, and how far the clock is
// off.
func (b *box) told() (moved []string, off []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.moved), slices.Clone(b.off)
}

func (b *box) movedHere(hosts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.moved = append(b.moved, hosts...)
}

func (b *box) clock(off time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.off = append(b.off, off)
}

func (b *box) edges() placement.Edges {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := placement.Edges{Box: "box-1", Region: "ie", Address: "127.0.0.1:1", Internal: "127.0.0.1:2", Protocol: 1,
		Capabilities: []string{placement.CapabilityRegionHA}, SecretsKeyFP: "0123456789abcdef", At: time.Now().UTC()}
	if b.stamp > 0 {
		e.Hosts = map[string]placement.Host{"notes.example": {Role: placement.RoleHome, Stamp: b.stamp, App: "demo/notes"}}
	}
	return e
}

func start(ctx context.Context, s *memstore.Store, b *box) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	a := announce.Announcer{Store: s, Edges: b.edges, Changed: b.changed, Every: 5 * time.Minute, Log: slog.New(slog.DiscardHandler),
		Moved: b.movedHere, Clock: b.clock}
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	return func() { cancel(); <-done }
}

func TestAChangeIsPublishedAtOnceAndANewHomeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := memstore.New(), &box{changed: make(chan struct{}, 1)}
		defer start(t.Context(), s, b)()
		synctest.Wait()
		b.become(4)
		time.Sleep(time.Second)
		p, err := placement.Read(t.Context(), s, "box-1")
		require.NoError(t, err)
		require.Equal(t, uint64(4), p.Edges.Hosts["notes.example"].Stamp)
		moved, _ := b.told()
		require.Equal(t, []string{"notes.example"}, moved)

		before := p.ETag
		time.Sleep(7 * time.Minute)
		p, err = placement.Read(t.Context(), s, "box-1")
		require.NoError(t, err)
		require.NotEqual(t, before, p.ETag, "published again though nothing changed")
		moved, _ = b.told()
		require.Equal(t, []string{"notes.example"}, moved, "and its home did not move")
	})
}

func TestAStoreThatRefusesWritesSeesFewAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := memstore.New(), &box{changed: make(chan struct{}, 1)}
		var attempts atomic.Int32
		s.Inject(func(r memstore.Request) memstore.Fault {
			if r.Op == memstore.OpPut {
				attempts.Add(1)
				return memstore.Lose
			}
			return memstore.None
		})
		defer start(t.Context(), s, b)()
		time.Sleep(20 * time.Minute)
		require.LessOrEqual(t, attempts.Load(), int32(16))
		require.GreaterOrEqual(t, attempts.Load(), int32(5))
	})
}

func TestAClockThatIsOffIsMeasured(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	require.Zero(t, announce.Off(at, at.Add(time.Second), at.Add(time.Second)))
	require.Zero(t, announce.Off(at, at, at.Add(-time.Second)), "stores keep whole seconds")
	require.Equal(t, time.Hour, announce.Off(at, at, at.Add(time.Hour)), "this clock is behind")
	require.Equal(t, -time.Hour, announce.Off(at, at, at.Add(-time.Hour)), "this clock is ahead")

	synctest.Test(t, func(t *testing.T) {
		s, b := memstore.New(), &box{changed: make(chan struct{}, 1)}
		s.Now = func() time.Time { return time.Now().Add(time.Hour) }
		defer start(t.Context(), s, b)()
		synctest.Wait()
		_, off := b.told()
		require.Equal(t, []time.Duration{time.Hour}, off)
	})
}

func TestTheClockIsComparedAtMostOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := memstore.New(), &box{changed: make(chan struct{}, 1)}
		defer start(t.Context(), s, b)()
		for n := range 100 {
			time.Sleep(time.Second)
			b.become(uint64(n + 1))
		}
		_, off := b.told()
		require.Len(t, off, 2, "of a hundred files")
	})
}

func TestAFileThatAnotherProcessWroteIsReadAndWrittenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := memstore.New(), &box{changed: make(chan struct{}, 1)}
		defer start(t.Context(), s, b)()
		synctest.Wait()
		was, err := placement.Read(t.Context(), s, "box-1")
		require.NoError(t, err)
		_, err = placement.Publish(t.Context(), s, was, was.Edges)
		require.NoError(t, err)
		b.become(4)
		time.Sleep(3 * time.Second)
		p, err := placement.Read(t.Context(), s, "box-1")
		require.NoError(t, err)
		require.Equal(t, uint64(3), p.Edges.Gen)
		require.Equal(t, uint64(4), p.Edges.Hosts["notes.example"].Stamp)
	})
}
