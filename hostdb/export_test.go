package hostdb

import "context"

// Compact runs one compaction, which Run does by the clock.
func (r *Replicator) Compact(ctx context.Context, level int) error { return r.compact(ctx, level) }
