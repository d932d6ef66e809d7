package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostrelocate"
)

// TestOnlyWhatIsToldIsLookedAtLess: the end of a window is waited for to the
// moment, however close it is.
func TestOnlyWhatIsToldIsLookedAtLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Worker
		s, e := &slot{told: time.Now()}, entry{changed: time.Now()}
		again := 600 * time.Millisecond
		require.Equal(t, again, w.pauseOf(s, e, hostrelocate.Turn{Waits: "the window", Again: again}))
		require.Equal(t, minPoll, w.pauseOf(s, e, hostrelocate.Turn{Waits: "a box", Again: again, Told: true}))
		time.Sleep(4 * time.Second)
		require.Equal(t, maxPoll, w.pauseOf(s, e, hostrelocate.Turn{Waits: "a box", Again: again, Told: true}))
	})
}
