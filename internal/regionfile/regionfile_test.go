package regionfile_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

var full = regionfile.File{V: 1, Gen: 2, Write: "w", Serial: 3,
	Recent: []regionfile.Change{{Serial: 2, Host: "a.example"}, {Serial: 3, Host: "b.example", Boxes: []string{"box-1"}}}}

func TestGolden(t *testing.T) { recordtest.Golden(t, "region", full) }

func FuzzDecode(f *testing.F) { recordtest.Fuzz(f, full) }

func TestAWatcherSeesEachBumpedHostOnce(t *testing.T) {
	s := memstore.New()
	w := regionfile.Watcher{Store: s, Region: "ie"}
	changed, hole := poll(t, &w)
	require.Empty(t, changed)
	require.True(t, hole, "nothing was seen before the first poll")

	require.NoError(t, regionfile.Bump(t.Context(), s, "ie", "a", "b", "a"))
	require.NoError(t, regionfile.Bump(t.Context(), s, "fr", "c"))
	changed, hole = poll(t, &w)
	require.Equal(t, []string{"a", "b"}, changed)
	require.False(t, hole)
	changed, hole = poll(t, &w)
	require.Empty(t, changed)
	require.False(t, hole)
}

func TestABoxHearsOfWhatItHasToLookAt(t *testing.T) {
	s := memstore.New()
	box, worker := regionfile.Watcher{Store: s, Region: "ie", For: "box-1"}, regionfile.Watcher{Store: s, Region: "ie"}
	require.NoError(t, regionfile.Tell(t.Context(), s, "ie", regionfile.Change{Host: "mine", Boxes: []string{"box-2", "box-1"}},
		regionfile.Change{Host: "another's", Boxes: []string{"box-2"}}, regionfile.Change{Host: "anybody's"}))
	changed, _ := poll(t, &box)
	require.Equal(t, []string{"mine", "anybody's"}, changed)
	changed, _ = poll(t, &worker)
	require.Equal(t, []string{"mine", "another's", "anybody's"}, changed)
}

func TestExactlyTheKeptNumberIsNoHoleAndOneMoreIs(t *testing.T) {
	for extra, want := range []bool{false, true} {
		s := memstore.New()
		w := regionfile.Watcher{Store: s, Region: "ie"}
		require.NoError(t, regionfile.Bump(t.Context(), s, "ie", "old"))
		poll(t, &w)
		var hosts []string
		for i := range regionfile.Keep + extra {
			hosts = append(hosts, fmt.Sprint("h", i))
		}
		require.NoError(t, regionfile.Bump(t.Context(), s, "ie", hosts...))
		changed, hole := poll(t, &w)
		require.Equal(t, want, hole)
		require.Len(t, changed, regionfile.Keep)
		_, hole = poll(t, &w)
		require.False(t, hole, "a hole is reported once")
	}
}

func TestAFileThatWentBackIsAHole(t *testing.T) {
	s := memstore.New()
	require.NoError(t, regionfile.Bump(t.Context(), s, "ie", "a", "b", "c"))
	w := regionfile.Watcher{Store: s, Region: "ie"}
	poll(t, &w)
	put(t, s, objstore.Always(), full)
	require.NoError(t, regionfile.Bump(t.Context(), s, "ie", "d"))
	changed, hole := poll(t, &w)
	require.Equal(t, []string{"d"}, changed)
	require.False(t, hole)
	back := full
	back.Serial, back.Recent = 1, []regionfile.Change{{Serial: 1, Host: "a"}}
	put(t, s, objstore.Always(), back)
	_, hole = poll(t, &w)
	require.True(t, hole)
}

func TestAFailedPollLosesNothing(t *testing.T) {
	s := memstore.New()
	w := regionfile.Watcher{Store: s, Region: "ie"}
	poll(t, &w)
	require.NoError(t, regionfile.Bump(t.Context(), s, "ie", "a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := w.Poll(ctx)
	require.Error(t, err)
	changed, hole := poll(t, &w)
	require.Equal(t, []string{"a"}, changed)
	require.False(t, hole)
}

func TestABrokenFileIsAnErrorAndStays(t *testing.T) {
	gap, over, version, long := full, full, full, full
	gap.Recent = []regionfile.Change{{Serial: 1, Host: "a"}, {Serial: 3, Host: "b"}}
	over.Serial, over.Recent = 1, []regionfile.Change{{Serial: 0, Host: "a"}, {Serial: 1, Host: "b"}}
	long.Serial, long.Recent = regionfile.Keep+1, nil
	for i := range regionfile.Keep + 1 {
		long.Recent = append(long.Recent, regionfile.Change{Serial: uint64(i) + 1, Host: "a"})
	}
	version.V = 2
	for name, f := range map[string]regionfile.File{"gap": gap, "more than its serial": over, "version": version, "too long": long} {
		t.Run(name, func(t *testing.T) {
			s := memstore.New()
			put(t, s, objstore.IfAbsent(), f)
			w := regionfile.Watcher{Store: s, Region: "ie"}
			_, _, err := w.Poll(t.Context())
			require.ErrorIs(t, err, record.ErrMalformed)
			require.ErrorIs(t, regionfile.Bump(t.Context(), s, "ie", "a"), record.ErrMalformed)
		})
	}
}

func TestConcurrentBumpsAllAppearOrSayThatTheyDidNot(t *testing.T) {
	s := memstore.New()
	w := regionfile.Watcher{Store: s, Region: "ie"}
	poll(t, &w)
	var mu sync.Mutex
	var want []string
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			host := fmt.Sprint("h", i)
			err := regionfile.Bump(t.Context(), s, "ie", host)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				want = append(want, host)
			} else if !errors.Is(err, objstore.ErrConflict) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	changed, hole := poll(t, &w)
	require.False(t, hole)
	require.ElementsMatch(t, want, changed)
}

func poll(t *testing.T, w *regionfile.Watcher) ([]string, bool) {
	t.Helper()
	changed, hole, err := w.Poll(t.Context())
	require.NoError(t, err)
	return changed, hole
}

func put(t *testing.T, s objstore.Store, cond objstore.Condition, f regionfile.File) {
	t.Helper()
	body, err := record.Encode(f)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), regionfile.Key("ie"), body, cond)
	require.NoError(t, err)
}
