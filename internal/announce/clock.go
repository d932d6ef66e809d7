package announce

import (
	"context"
	"time"

	"github.com/carlosframework/regionha/placement"
)

// compare reads the time that the store gave to the write just made, at most
// once a minute.
func (a *Announcer) compare(ctx context.Context, box string, before, after time.Time) error {
	if a.Clock == nil || after.Sub(a.compared) < compareEvery {
		return nil
	}
	stored, err := placement.Read(ctx, a.Store, box)
	if err != nil {
		return err
	}
	a.compared = after
	a.Clock(Off(before, after, stored.ModTime))
	return nil
}

// Off is how far a clock that saw a write begin at before and end at after is
// behind (positive) or ahead of (negative) the store, which accepted it at
// stored. Stores keep whole seconds, so less than one is none.
func Off(before, after, stored time.Time) time.Duration {
	switch {
	case stored.Before(before.Add(-time.Second)):
		return stored.Sub(before)
	case stored.After(after.Add(time.Second)):
		return stored.Sub(after)
	}
	return 0
}
