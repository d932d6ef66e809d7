package hostdb

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/benbjohnson/litestream"
)

// compactEvery is how often each level is made of the one below it. Restoring
// takes the newest snapshot and then at most about 24 + 12 + 10 + 60 files.
var compactEvery = []struct {
	level int
	every time.Duration
}{
	{1, 30 * time.Second},
	{2, 5 * time.Minute},
	{3, time.Hour},
	{litestream.SnapshotLevel, 24 * time.Hour},
}

// compactLoop makes higher levels of what was uploaded. A failure costs nothing
// but a longer restore: it is logged and made good by the next turn.
func (r *Replicator) compactLoop(ctx context.Context) error {
	last := make([]time.Time, len(compactEvery))
	for i := range last {
		last[i] = time.Now()
	}
	for r.sleep(ctx, compactEvery[0].every) {
		for i, c := range compactEvery {
			if time.Since(last[i]) < c.every {
				continue
			}
			last[i] = time.Now()
			err := r.compact(ctx, c.level)
			if errors.Is(err, ErrFenced) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				r.log.Warn("compaction failed", "level", c.level, "err", err)
			}
		}
	}
	return nil
}

// compact makes one file of level, if there is anything new below it. Files that
// it replaces are forgotten, and local copies removed; in the store they stay,
// so that any position can still be cut exactly.
func (r *Replicator) compact(ctx context.Context, level int) error {
	if level == litestream.SnapshotLevel {
		if r.client.newest(0) <= r.client.newest(level) {
			return nil
		}
		_, err := r.db.Snapshot(ctx)
		return err
	}
	made, err := r.db.Compact(ctx, level)
	if errors.Is(err, litestream.ErrNoCompaction) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range r.client.forget(level-1, made.MaxTXID) {
		if level == 1 {
			err = errors.Join(err, os.Remove(r.db.LTXPath(0, f.MinTXID, f.MaxTXID)))
		}
	}
	return err
}
