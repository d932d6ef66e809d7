package worker

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

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

	// listAgain is the pause after a listing that failed, and readAgain after the
	// read of a claim that did.
	listAgain = 5 * time.Second
	readAgain = 30 * time.Second

	// readsAtOnce bounds the claims that are read together.
	readsAtOnce = 16
)

// watch finds the hosts whose claims changed: those that the region's file
// names, and all of them where it has a hole and on a slow sweep. It costs one GET
// each 2 s, and the listing.
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
			listed = time.Now()
			if !w.listClaims(ctx, &list) {
				listed = listed.Add(listAgain - sweepAll) // what a hole hid is still not seen
			}
		}
		for _, host := range changed {
			w.notice(host, w.queue.has)
		}
		if !pause.For(ctx, pollEvery) {
			return nil
		}
	}
}

// listClaims reads the claims that changed; those that cannot be read are tried
// again by themselves. False where the listing is not complete.
func (w *Worker) listClaims(ctx context.Context, list *claimlist.Reader) bool {
	err := list.Each(ctx, w.listed)
	if err == nil {
		return true
	}
	w.log.Warn("list the claims", "err", err)
	unread, complete := errors.AsType[*claimlist.UnreadError](err)
	if complete {
		for _, host := range unread.Hosts {
			w.readLater(host)
		}
	}
	return complete
}

func (w *Worker) readLater(host string) {
	time.AfterFunc(readAgain, func() { w.news.add(host) })
}

// listed takes in a claim of a listing.
func (w *Worker) listed(o hostclaim.Observed, changed time.Time) {
	w.sawAt(o.Claim, changed)
	w.follow(o.Host)
}

// follow queues a host that has something to be driven.
func (w *Worker) follow(host string) {
	if e := w.claims.get(host); w.concerns(e) {
		w.enqueue(host, e)
	}
}

// notice is about a host whose claim changed. One that is in the queue, which
// told is told of, is read by its driver; one that has something to be driven is
// queued; and of any other the claim is read, soon.
func (w *Worker) notice(host string, told func(host string) bool) {
	if told(host) {
		return
	}
	if e := w.claims.get(host); w.concerns(e) {
		w.enqueue(host, e)
		return
	}
	w.news.add(host)
}

// readNews reads the claims that changed, so that this worker knows of each host
// where it is: one GET each.
func (w *Worker) readNews(ctx context.Context) error {
	var reads errgroup.Group
	reads.SetLimit(readsAtOnce)
	defer func() { _ = reads.Wait() }()
	for ctx.Err() == nil {
		for _, host := range w.news.take(ctx) {
			reads.Go(func() error { w.read(ctx, host); return nil })
		}
	}
	return nil
}

func (w *Worker) read(ctx context.Context, host string) {
	o, err := hostclaim.Read(ctx, w.control, host)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		w.log.Warn("read a claim that changed, trying again", "host", host, "err", err)
		w.readLater(host)
	case o.Claim != nil:
		w.saw(o.Claim)
		w.follow(host)
	}
}
