package hostdb

import (
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/superfly/ltx"
)

// coarse is more than the granularity of a file's modification time.
const coarse = 100 * time.Millisecond

// watch tells from the size and time of the WAL whether the database may have
// changed since it was last in the store, and since when.
type watch struct {
	wal string

	mu     sync.Mutex
	clean  stamp     // the WAL as it was in the store; zero: not known
	seen   time.Time // when the WAL was last known to be clean
	oldest time.Time // seen, when it was first found otherwise; zero while clean
	local  ltx.TXID
	stored ltx.TXID
	err    error
	failed int // syncs in a row
}

// stamp is what a file's metadata says of its content.
type stamp struct {
	size int64
	at   time.Time
}

func stampOf(path string) stamp {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{} // equal to nothing that is clean
	}
	return stamp{info.Size(), info.ModTime()}
}

// look reports whether the database may hold what the store does not.
func (w *watch) look(now time.Time) (dirty bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lookLocked(stampOf(w.wal), now)
}

func (w *watch) lookLocked(s stamp, now time.Time) bool {
	if s == w.clean && s != (stamp{}) {
		w.seen = now
		return false
	}
	if w.oldest.IsZero() {
		w.oldest = w.seen
	}
	return true
}

// begun is the state of the WAL when a sync begins.
type begun struct {
	stamp
	now time.Time
}

func (w *watch) begin(now time.Time) begun {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := stampOf(w.wal)
	w.lookLocked(s, now)
	return begun{s, now}
}

// end records a sync's outcome. A WAL that changed just before the sync began
// could change again with the same stamp, so it is looked at once more.
func (w *watch) end(b begun, local, stored ltx.TXID, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.local, w.stored, w.err = local, stored, err
	if err != nil {
		w.failed++
		return
	}
	w.failed, w.clean, w.seen, w.oldest = 0, stamp{}, b.now, time.Time{}
	if b.now.Sub(b.at) > coarse {
		w.clean = b.stamp
	}
}

// backoff is how long to wait after the failures so far: doubling from least,
// with jitter.
func (w *watch) backoff(least time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := maxBackoff
	if w.failed < 10 {
		d = min(d, least<<w.failed)
	}
	return d/2 + rand.N(d/2+1)
}

func (w *watch) status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Status{TXID: uint64(w.local), Durable: uint64(w.stored), Oldest: w.oldest, Err: w.err}
}
