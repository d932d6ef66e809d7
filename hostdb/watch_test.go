package hostdb

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheWatchKnowsSinceWhenACommitMayBeMissing(t *testing.T) {
	wal := filepath.Join(t.TempDir(), "wal")
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	write := func(body string, mtime time.Time) {
		t.Helper()
		require.NoError(t, os.WriteFile(wal, []byte(body), 0o600))
		require.NoError(t, os.Chtimes(wal, mtime, mtime))
	}
	w := watch{wal: wal, seen: at(0)}
	require.True(t, w.look(at(1)), "no WAL says nothing")
	require.Equal(t, at(0), w.status().Oldest)

	write("a", at(2))
	b := w.begin(at(10))
	w.end(b, 5, 5, nil)
	require.Equal(t, Status{TXID: 5, Durable: 5}, w.status())
	require.False(t, w.look(at(11)))
	require.False(t, w.look(at(12)))

	write("ab", at(13))
	require.True(t, w.look(at(14)))
	require.Equal(t, at(12), w.status().Oldest, "it was clean when last seen")
	require.True(t, w.look(at(20)))
	require.Equal(t, at(12), w.status().Oldest)

	down := errors.New("down")
	w.end(w.begin(at(21)), 6, 5, down)
	require.Equal(t, Status{TXID: 6, Durable: 5, Oldest: at(12), Err: down}, w.status())

	b = w.begin(at(22))
	write("cd", at(23)) // committed during the upload: it may be missing
	w.end(b, 6, 6, nil)
	require.True(t, w.look(at(24)))
	require.Equal(t, at(22), w.status().Oldest)

	b = w.begin(at(23).Add(coarse)) // the stamp cannot tell what came after it
	w.end(b, 7, 7, nil)
	require.True(t, w.look(at(30)))
	w.end(w.begin(at(31)), 7, 7, nil)
	require.False(t, w.look(at(32)))
}

func TestTheDelayAfterFailuresGrowsToItsBound(t *testing.T) {
	w := watch{wal: filepath.Join(t.TempDir(), "wal")}
	least := 500 * time.Millisecond
	for n := range 100 {
		full := maxBackoff
		if n < 6 {
			full = least << (n + 1)
		}
		w.end(w.begin(time.Now()), 1, 0, errors.New("down"))
		d := w.backoff(least)
		require.GreaterOrEqual(t, d, min(full, maxBackoff)/2)
		require.LessOrEqual(t, d, maxBackoff)
	}
	w.end(w.begin(time.Now()), 1, 1, nil)
	require.LessOrEqual(t, w.backoff(least), least)
}
