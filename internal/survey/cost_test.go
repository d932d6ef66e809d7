package survey_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
)

func asked(s *memstore.Store) (n int) {
	for _, m := range s.Requests() {
		n += m
	}
	return n
}

// TestALookCostsThreeRequestsAndWhatIsNew, however many boxes there are.
func TestALookCostsThreeRequestsAndWhatIsNew(t *testing.T) {
	store, s := region(t)
	before := asked(store)
	look, err := s.Look(t.Context())
	require.NoError(t, err)
	require.Equal(t, 6, asked(store)-before)
	require.Equal(t, 6, look.Cost)
	before = asked(store)
	look, err = s.Look(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, asked(store)-before)
	require.Equal(t, 3, look.Cost)
}

// TestChoicesOfOneMomentShareALook, and however many follow, looks stay under ten
// requests a second.
func TestChoicesOfOneMomentShareALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := region(t)
		before := asked(store)
		for range 1000 {
			_, ok, err := s.Choose(t.Context(), serving("box-1"), nil)
			require.NoError(t, err)
			require.True(t, ok)
			time.Sleep(10 * time.Millisecond)
		}
		require.LessOrEqual(t, asked(store)-before, 1000+10*10)
	})
}

// TestWhatWasGivenCountsUntilTheBoxSaysIt: looks that follow do not forget it,
// nor count it twice.
func TestWhatWasGivenCountsUntilTheBoxSaysIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := region(t)
		given := map[string]map[string]placement.Host{"box-2": {}, "box-3": {}}
		choose := func(from, to int) {
			for n := from; n < to; n++ {
				c := serving("box-1")
				c.Host = fmt.Sprint("h", n, ".example")
				record(t, store, c.Host)
				m, ok, err := s.Choose(t.Context(), c, nil)
				require.NoError(t, err)
				require.True(t, ok)
				given[m.Box][c.Host] = placement.Host{Role: placement.RoleHome, App: "demo/notes"}
				time.Sleep(time.Second)
			}
		}
		choose(0, 40)
		require.Len(t, given["box-2"], 20)
		file, err := placement.Read(t.Context(), store, "box-2")
		require.NoError(t, err)
		file.Edges.Hosts = given["box-2"]
		_, err = placement.Publish(t.Context(), store, file, file.Edges)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		choose(40, 60)
		require.Len(t, given["box-2"], 30)
	})
}
