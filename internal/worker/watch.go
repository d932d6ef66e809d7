package worker

import (
	"context"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/claimlist"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/internal/regionfile"
)

const (
	// pollEvery is how often the region's file is asked what changed.
	pollEvery = 2 * time.Second

	// sweepAll is how often all claims are listed when nothing hints at a hole.
	sweepAll = 10 * time.Minute

	// listAgain is the pause after a listing that failed.
	listAgain = 5 * time.Second
)

// watch finds the hosts whose claims changed: those that the region's file
// names, and all of them where it has a hole and on a slow sweep. Running
// operations, and hosts on boxes that are gone or drain, are queued again on every sweep
// of the boxes.
func (w *Worker) watch(ctx context.Context) error {
	poll := regionfile.Watcher{Store: w.control, Region: w.set.Region}
	list := claimlist.Reader{Store: w.control}
	var listed time.Time
	for {
		changed, hole, err := poll.Poll(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			w.log.Warn("poll what changed", "err", err)
		case hole || time.Since(listed) > sweepAll:
			claims, err := list.Changed(ctx)
			for _, o := range claims {
				w.claims.put(o.Claim)
			}
			listed = time.Now()
			if err != nil {
				w.log.Warn("list the claims", "err", err)
				listed = listed.Add(listAgain - sweepAll) // what a hole hid is still not seen
			}
			w.requeue()
		}
		for _, host := range changed {
			w.queue.add(host)
		}
		if !pause.For(ctx, pollEvery) {
			return nil
		}
	}
}

// requeue queues every host that has something to be driven, as far as this
// worker has seen: its relocation runs, or its box is gone or to be emptied.
func (w *Worker) requeue() {
	for _, host := range w.claims.hosts(w.concerns) {
		w.queue.add(host)
	}
}

func (w *Worker) concerns(c *hostclaim.Claim) bool {
	if c.Holder == nil || c.Holder.Region != w.set.Region {
		return false
	}
	left := w.gone.has(c.Op.Exec) || w.draining.has(c.Op.Exec)
	return c.Op.Kind == hostclaim.Relocating || c.Op.Kind == hostclaim.Serving && left
}
