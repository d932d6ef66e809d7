package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/placement"
)

func TestAFailedWriteIsFollowedByAPauseThatDoubles(t *testing.T) {
	var p placement.Pace
	require.True(t, p.Regular(now), "the first pass writes")
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		p.Failed(now)
		end := now.Add(want * time.Second)
		require.Equal(t, want*time.Second, p.Backoff())
		require.Equal(t, end, p.Rest())
		require.Equal(t, end, p.Change(), "a change waits for it too")
		require.Equal(t, end, p.Read(time.Time{}), "and so does a read that is due")
		require.Equal(t, end.Add(time.Hour), p.Read(end.Add(time.Hour)))
	}
	p.Wrote(now, 5*time.Minute)
	require.Zero(t, p.Backoff())
	p.Failed(now)
	require.Equal(t, 2*time.Second, p.Backoff(), "every pass's outcome moves it")
	p.Passed(now)
	require.Zero(t, p.Backoff())
}

func TestAFileIsWrittenAtTheLatestWhenItIsOld(t *testing.T) {
	var p placement.Pace
	p.Wrote(now, 5*time.Minute)
	require.False(t, p.Regular(now.Add(5*time.Minute-1)))
	require.True(t, p.Regular(now.Add(5*time.Minute)))
	p.Passed(now.Add(4 * time.Minute))
	require.Equal(t, now.Add(5*time.Minute), p.Rest(), "a pass without a write does not put it off")
	require.Equal(t, now.Add(4*time.Minute+30*time.Second), p.Read(now))
	require.Equal(t, now.Add(9*time.Minute), p.Read(now.Add(9*time.Minute)))
}

func TestChangesThatKeepComingShareFiles(t *testing.T) {
	var p placement.Pace
	at, writes := now, 0
	for at.Before(now.Add(time.Minute)) {
		p.Wrote(at, time.Hour)
		at, writes = p.Change(), writes+1
		require.LessOrEqual(t, at.Sub(now), time.Minute+time.Second)
	}
	require.Less(t, writes, 130)
	at = at.Add(time.Minute)
	p.Wrote(at, time.Hour)
	require.Equal(t, at.Add(50*time.Millisecond), p.Change(), "after a rest the first is published at once")
}
