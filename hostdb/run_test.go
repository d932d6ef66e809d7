package hostdb_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// run starts r.Run and returns what ends it and gives its answer.
func run(t *testing.T, r *hostdb.Replicator) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	return func() error {
		cancel()
		return <-ran
	}
}

func TestAtRestNothingIsAskedOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		b := newBox(t, s)
		cfg := b.config("g")
		cfg.Empty, cfg.SyncInterval = true, time.Minute
		r := b.open(cfg)
		a := localApp(t, b.path())
		a.exec(createNotes)
		stop := run(t, r)
		a.insert("one")
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		require.Len(t, b.selected(hostdb.Link{Generation: "g"}).Objects, 1, "a snapshot was made of it all")
		before := s.Requests()
		require.LessOrEqual(t, before[memstore.OpPut], 6, "one upload and one file per level")
		time.Sleep(49 * time.Hour)
		synctest.Wait()
		require.Equal(t, before, s.Requests())
		require.NoError(t, stop())
		a.end()
		require.NoError(t, r.Close())
	})
}

func TestRunUploadsAChangeWithinItsInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		b := newBox(t, s)
		r := b.bootstrap("g")
		stop := run(t, r)
		a := localApp(t, b.path())
		a.exec(createNotes)
		for _, body := range []string{"one", "two"} {
			a.insert(body)
			time.Sleep(600 * time.Millisecond)
			synctest.Wait()
			rows := b.restored("g")
			require.Equal(t, body, rows[len(rows)-1])
		}
		require.NoError(t, stop())
		a.end()
		require.NoError(t, r.Close())
	})
}

func TestAStoreThatIsDownIsAskedLessAndLessAndIsCaughtUpWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		b := newBox(t, s)
		r := b.bootstrap("g")
		durable(t, r)
		stop := run(t, r)
		a := localApp(t, b.path())
		a.exec(createNotes)
		time.Sleep(time.Minute)
		s.Inject(func(memstore.Request) memstore.Fault { return memstore.Lose })
		before, down := s.Requests()[memstore.OpPut], time.Now()
		a.insert("one")
		time.Sleep(time.Hour)
		synctest.Wait()
		asked := s.Requests()[memstore.OpPut] - before
		require.Greater(t, asked, 100)
		require.Less(t, asked, 300)
		st := r.Status()
		require.ErrorIs(t, st.Err, memstore.ErrInjected)
		require.Less(t, st.Durable, st.TXID)
		require.WithinDuration(t, down, st.Oldest, time.Second)

		s.Inject(nil)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		require.NoError(t, r.Status().Err)
		require.Equal(t, []string{"one"}, b.restored("g"))
		require.NoError(t, stop())
		a.end()
		require.NoError(t, r.Close())
	})
}

// stuck is a store whose writes hang until their caller gives up.
type stuck struct{ *memstore.Store }

func (s stuck) Put(ctx context.Context, key string, _ []byte, _ objstore.Condition) (objstore.Info, error) {
	<-ctx.Done()
	return objstore.Info{}, context.Cause(ctx)
}

func TestCloseEndsAStuckUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, stuck{memstore.New()})
		r := b.bootstrap("g")
		ran := make(chan error, 1)
		go func() { ran <- r.Run(context.WithoutCancel(t.Context())) }()
		time.Sleep(time.Minute)
		begun := time.Now()
		require.ErrorIs(t, r.Close(), context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(begun), time.Minute)
		require.NoError(t, <-ran)
	})
}

func TestACallerThatGivesUpLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		b := newBox(t, s)
		r := b.bootstrap("g")
		a := localApp(t, b.path())
		a.exec(createNotes)
		a.insert("one")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := r.Durable(ctx)
		require.ErrorIs(t, err, context.Canceled)
		durable(t, r)
		require.Equal(t, []string{"one"}, b.restored("g"))
		a.end()
		require.NoError(t, r.Close())
	})
}
