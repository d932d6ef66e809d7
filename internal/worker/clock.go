package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/announce"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// announceEvery is how often the worker's own edges file is published, and its
// clock compared with the store's.
const announceEvery = time.Minute

// clock is how far this worker's clock is from the store's.
type clock struct {
	off      *atomic.Int64 // nanoseconds
	compared chan struct{} // closed once it was compared
	first    *sync.Once
}

func newClock() clock {
	return clock{off: new(atomic.Int64), compared: make(chan struct{}), first: new(sync.Once)}
}

func (c clock) set(off time.Duration) {
	c.off.Store(int64(off))
	c.first.Do(func() { close(c.compared) })
}

// await waits until the clock was compared once; false where ctx ended first.
func (c clock) await(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c.compared:
		return true
	}
}

func (c clock) isCompared() bool {
	select {
	case <-c.compared:
		return true
	default:
		return false
	}
}

func (c clock) check() error {
	if off := time.Duration(c.off.Load()); off.Abs() > announce.ClockLimit {
		return fmt.Errorf("this worker's clock is off by %s", off.Round(time.Second))
	}
	return nil
}

// announce publishes where this worker takes hints, and watches its clock.
func (w *Worker) announce(ctx context.Context) error {
	announcer := announce.Announcer{
		Store: w.control, Changed: nil, Every: announceEvery, Log: w.log,
		Edges: func() placement.Edges {
			return placement.Edges{Box: w.self.Ref, Region: w.set.Region, Internal: w.set.Internal, Protocol: roster.Protocol,
				Capabilities: []string{placement.CapabilityWorker}, SecretsKeyFP: w.set.SecretFP, At: time.Now().UTC()}
		},
		Clock: w.compareClock,
	}
	return announcer.Run(ctx)
}

func (w *Worker) compareClock(off time.Duration) {
	w.clock.set(off)
	if off.Abs() > announce.ClockLimit {
		w.alerts.Raise(alert.Clock, w.self.Ref, "this worker's clock is off from the store's: it drives nothing",
			"off", off.Round(time.Second), "at_most", announce.ClockLimit)
		return
	}
	w.alerts.Clear(alert.Clock, w.self.Ref)
}

// standing says whether the roster lets this worker act, as of its last reading.
type standing struct{ refused atomic.Bool }

func (s *standing) check() error {
	if s.refused.Load() {
		return errors.New("this worker's entry in the roster is not active")
	}
	return nil
}

// enrolled is a fresh roster, and this worker's entry in it, which is active.
// One GET.
func (w *Worker) enrolled(ctx context.Context) (roster.Snapshot, roster.Box, error) {
	snap, err := w.roster.Read(ctx)
	if err != nil {
		return snap, roster.Box{}, err
	}
	self, ok := snap.Box(w.self.Ref)
	refused := !ok || self.State != roster.Active || self.Enrollment != w.self.Enrollment
	w.standing.refused.Store(refused)
	if refused {
		return snap, roster.Box{}, fmt.Errorf("%w: this worker's entry is not active: it drives nothing", roster.ErrNotSelf)
	}
	return snap, self, nil
}
