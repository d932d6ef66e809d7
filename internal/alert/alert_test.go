package alert_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/alert"
)

func board() (*alert.Board, *bytes.Buffer) {
	var log bytes.Buffer
	return alert.New(slog.New(slog.NewTextHandler(&log, nil))), &log
}

// raised is the metric of one subject.
func raised(t *testing.T, b *alert.Board, subject alert.Subject) float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(b.Metrics())
	families, err := r.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.Metric {
			if m.Label[0].GetValue() == string(subject) {
				return m.Gauge.GetValue()
			}
		}
	}
	return 0
}

func TestAnAlertIsLoggedAtOnceAndThenHourly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := board()
		for range 3 * 60 {
			b.Raise(alert.Unplaced, "notes.example", "no box may be given it", "why", "none is enrolled")
			time.Sleep(time.Minute)
		}
		require.Equal(t, 3, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), `level=ERROR msg="no box may be given it" alert=unplaced about=notes.example why="none is enrolled"`)
	})
}

func TestWhatIsOverIsToldOnceAndRaisedAfresh(t *testing.T) {
	b, log := board()
	b.Clear(alert.Clock, "box-1")
	require.Empty(t, log.String(), "what was not raised is not over")
	b.Raise(alert.Clock, "box-1", "off")
	b.Raise(alert.Clock, "box-2", "off")
	require.True(t, b.Raised(alert.Clock, "box-1"))
	require.EqualValues(t, 2, raised(t, b, alert.Clock))
	b.Clear(alert.Clock, "box-1")
	b.Clear(alert.Clock, "box-1")
	require.False(t, b.Raised(alert.Clock, "box-1"))
	require.EqualValues(t, 1, raised(t, b, alert.Clock))
	b.Raise(alert.Clock, "box-1", "off")
	require.Equal(t, 4, strings.Count(log.String(), "\n"), log.String())
}

func TestTheAlertsThatAreKeptAreBounded(t *testing.T) {
	b, _ := board()
	for i := range 10_100 {
		b.Raise(alert.Unplaced, fmt.Sprint(i), "x")
	}
	require.EqualValues(t, 10_000, raised(t, b, alert.Unplaced))
}

func TestNoBoardTakesEverything(t *testing.T) {
	var b *alert.Board
	b.Raise(alert.Stuck, "x", "y")
	b.Clear(alert.Stuck, "x")
	require.False(t, b.Raised(alert.Stuck, "x"))
}

func TestEverySubjectIsInTheOperatorsGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	for _, s := range alert.Subjects() {
		require.Contains(t, string(guide), "\n| `"+string(s)+"` |", "what it means and what to do")
	}
}
