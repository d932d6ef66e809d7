package hostdb

import (
	"context"
	"fmt"

	"github.com/carlosframework/regionha/objstore"
)

// Warmth is what [Warm] keeps.
type Warmth struct {
	TXID    uint64 // W, the position of the database that is kept
	Bytes   int64  // its size
	Fetched int64  // bytes that this call read from the store; 0 where it had all
}

// Warm keeps in dir the database that set makes, so that a later build fetches
// only what came after. While the source still serves, call it again with each
// newer set: it fetches the objects that it does not have and applies them. The
// database is checked by SQLite when it is made, and again only when it is made
// afresh.
//
// dir belongs to Warm and to a [Builder] that names it; one call at a time. It
// may be removed at any time, and must lie on the file system of the path that
// will be built. What is in it is of this boot of the machine: after a reboot,
// or a crash in the middle, it is made afresh. Elsewhere than on Linux that is
// so in each call. An empty set is nothing to keep.
func Warm(ctx context.Context, s objstore.Store, set RecoverySet, dir string) (Warmth, error) {
	if err := set.check(); err != nil {
		return Warmth{}, fmt.Errorf("warm: %w", err)
	}
	if set.Empty {
		return Warmth{}, nil
	}
	b, err := bring(ctx, s, set, dir)
	if err != nil {
		return Warmth{}, fmt.Errorf("warm %s: %w", set.Generation, err)
	}
	return Warmth{TXID: b.TXID, Bytes: b.size(), Fetched: b.fetched}, nil
}
