package announce

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// parallelReads bounds the reads of claims in flight.
const parallelReads = 8

// read makes the reads of claims that are due, within [passWithin]. One that
// fails changes nothing but its turn.
func (a *Announcer) read(ctx context.Context) {
	if a.Claims == nil {
		return
	}
	a.Claims.Keep(a.Edges().Hosts)
	ctx, cancel := context.WithTimeout(ctx, passWithin)
	defer cancel()
	var reads errgroup.Group
	reads.SetLimit(parallelReads)
	for _, host := range a.Claims.Wanted(time.Now()) {
		reads.Go(func() error { return a.readOne(ctx, host) })
	}
	if err := reads.Wait(); err != nil { // of many, the first says it all
		a.Log.Warn("read the claims behind the rows", "err", err)
	}
}

func (a *Announcer) readOne(ctx context.Context, host string) error {
	began := time.Now()
	if ctx.Err() != nil {
		return nil // it was not begun, and keeps its turn
	}
	a.Claims.Try(host, began)
	claim, err := a.Read(ctx, host)
	if err == nil {
		a.Claims.Saw(host, claim, began)
	}
	return err
}
