package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

const (
	// apart is the least time between two describes of one box.
	apart = 2 * time.Second

	// describes bounds all describes of this worker, a second; burst is how many
	// may come at once. EC2 refills 20 requests a second for everybody in an
	// account and region.
	describes, burst = 10, 20
)

// looks bounds how often the cloud is asked: about each box, and in all.
type looks struct {
	limit *rate.Limiter
	mu    *sync.Mutex
	by    map[string]*look
}

// look is the newest describe of one box. Who holds free may make the next.
type look struct {
	free  chan struct{}
	began time.Time
	err   error
}

func newLooks() looks {
	return looks{limit: rate.NewLimiter(describes, burst), mu: new(sync.Mutex), by: map[string]*look{}}
}

func (l looks) of(ref string) *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by[ref] == nil {
		l.by[ref] = &look{free: make(chan struct{}, 1)}
	}
	return l.by[ref]
}

// lookAt has a box described that self may fence, and returns once a describe
// ended that began after this call: whoever asks meanwhile gets the same one. A
// box is described at most once in two seconds, and all of them ten times a
// second. It costs one describe; where that says terminated, a GET of the roster
// and a PUT.
func (w *Worker) lookAt(ctx context.Context, box, self roster.Box) error {
	asked, l := time.Now(), w.looks.of(box.Ref)
	select {
	case l.free <- struct{}{}:
		defer func() { <-l.free }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.began.After(asked) {
		return l.err
	}
	if !pause.For(ctx, time.Until(l.began.Add(apart))) || w.looks.limit.Wait(ctx) != nil {
		return ctx.Err()
	}
	l.began = time.Now()
	l.err = w.describe(ctx, box, self)
	return l.err
}

// describe asks the cloud about a box, and fences it where it is terminated. An
// error says nothing either way.
func (w *Worker) describe(ctx context.Context, box, self roster.Box) error {
	seen, volumes, err := w.cloud.Instances.Describe(ctx, box.Cloud)
	w.sights.described(box.Ref, seen, err, time.Now())
	if err != nil {
		return err
	}
	w.recordVolumes(ctx, box, volumes)
	return w.fence(ctx, box, self, seen)
}

// fence publishes the fence of a box that an observation proves terminated. Any
// other observation is no error.
func (w *Worker) fence(ctx context.Context, box, self roster.Box, seen termfence.Observation) error {
	record, err := termfence.Verify(box, self, seen, time.Now())
	if errors.Is(err, termfence.ErrNoProof) {
		return nil
	}
	if err != nil {
		return err
	}
	e, err := termfence.Publish(ctx, w.control, w.fences, record)
	if err != nil {
		return err
	}
	w.found(e)
	return nil
}
