// Package pause waits, for loops that a context ends.
package pause

import (
	"context"
	"time"
)

// For waits for d, and reports false where ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
