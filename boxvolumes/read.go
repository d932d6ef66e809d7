package boxvolumes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

// ErrUnverified: a stored record is not one, or does not stand at its own key.
// It is neither a volume that is gone nor a gap: a person has to look.
var ErrUnverified = errors.New("volume record not verified")

// Bounds of reading one enrollment.
const (
	maxRecords = 1 << 16 // over seven years of one an hour
	parallel   = 16      // GETs at once
)

// Read judges the box of a roster entry, whose termination was read at a time,
// by every record that is stored of its enrollment. It costs one listing, and
// one GET per record, 16 at a time. Errors: [ErrUnverified], or a failure of the
// store; then there is no verdict, and the zero one keeps every chore.
func Read(ctx context.Context, store objstore.Store, entry roster.Box, terminatedAt time.Time) (Verdict, error) {
	records, err := List(ctx, store, entry.Enrollment)
	if err != nil {
		return Verdict{}, err
	}
	return Discharge(records, entry, entry.EnrolledAt, terminatedAt), nil
}

// List reads every record of an enrollment, oldest first. It costs what [Read]
// does, with its errors; over 65,536 records are one.
func List(ctx context.Context, store objstore.Store, enrollment string) ([]Record, error) {
	records, err := read(ctx, store, enrollment)
	if err != nil {
		return nil, fmt.Errorf("boxvolumes: records of %q: %w", enrollment, err)
	}
	return records, nil
}

func read(ctx context.Context, store objstore.Store, enrollment string) ([]Record, error) {
	if err := roster.CheckEnrollment(enrollment); err != nil {
		return nil, err
	}
	keys, err := list(ctx, store, prefix(enrollment))
	if err != nil {
		return nil, err
	}
	records := make([]Record, len(keys))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, key := range keys {
		group.Go(func() (err error) {
			records[i], err = get(ctx, store, enrollment, key)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return records, nil
}

func list(ctx context.Context, store objstore.Store, prefix string) ([]string, error) {
	var keys []string
	for info, err := range store.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		if len(keys) == maxRecords {
			return nil, fmt.Errorf("there are more than %d; not all of them are read", maxRecords)
		}
		keys = append(keys, info.Key)
	}
	return keys, nil
}

// get reads one record, which must name the key that it was found at: one of
// another enrollment here would be a gap in this one.
func get(ctx context.Context, store objstore.Store, enrollment, key string) (Record, error) {
	obj, err := store.Get(ctx, key)
	if err != nil {
		return Record{}, err
	}
	rec, err := record.Decode[Record](obj.Body)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w: %w", key, ErrUnverified, err)
	}
	if own := Key(rec.Enrollment, rec.ObservedAt); rec.Enrollment != enrollment || own != key {
		return Record{}, fmt.Errorf("%s: %w: it names the key %q", key, ErrUnverified, own)
	}
	return rec, nil
}
