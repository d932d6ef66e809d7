package termfence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

// Publish stores a fence that [Verify] made, and returns its evidence. Where
// another worker was first, the fence that is there counts, if it verifies. A
// record that would not verify is not written: its key can be used only once.
// It costs a GET of the roster and a PUT.
//
// store is where reader reads: a process that only reads evidence does not
// write.
func Publish(ctx context.Context, store objstore.Store, reader Reader, rec Record) (Evidence, error) {
	ev, err := publish(ctx, store, Key(rec.Enrollment), rec, func(ctx context.Context, body []byte) (Evidence, error) {
		return reader.verify(ctx, fences, rec.Enrollment, body)
	})
	if err != nil {
		return Evidence{}, fmt.Errorf("termfence: publish fence of %q: %w", rec.Enrollment, err)
	}
	return ev, nil
}

// publish stores a record whose key can be used only once, if verify accepts
// it, and returns what it proves. Where there is one already, that one counts,
// if verify accepts it.
func publish[P any](ctx context.Context, store objstore.Store, key string, rec any,
	verify func(context.Context, []byte) (P, error)) (P, error) {
	var none P
	body, err := record.Encode(rec)
	if err != nil {
		return none, err
	}
	proof, err := verify(ctx, body)
	if err != nil {
		return none, err
	}
	_, err = objstore.Create(ctx, store, key, body)
	switch {
	case errors.Is(err, objstore.ErrConflict):
		first, err := store.Get(ctx, key)
		if err != nil {
			return none, err
		}
		return verify(ctx, first.Body)
	case err != nil:
		return none, err
	}
	return proof, nil
}

// checkFence repeats what [Verify] checked, on what is stored: anyone who can
// write to the bucket can write a fence. That its worker was active is not
// repeated, since it may have gone since.
func checkFence(r roster.Roster, box roster.Box, body []byte) (time.Time, error) {
	rec, err := record.Decode[Record](body)
	if err != nil {
		return time.Time{}, err
	}
	worker, ok := r.Box(rec.WrittenBy.Box)
	switch {
	case rec.V != version:
		return time.Time{}, fmt.Errorf("version %d, expected %d", rec.V, version)
	case rec.Box != box.Ref || rec.Enrollment != box.Enrollment:
		return time.Time{}, otherBox(rec.Box, rec.Enrollment, box)
	case rec.ObservedAt.IsZero():
		return time.Time{}, errors.New("it has no time of observation")
	case !ok || worker.Enrollment != rec.WrittenBy.Enrollment:
		return time.Time{}, fmt.Errorf("its writer %q as %q is not in the roster", rec.WrittenBy.Box, rec.WrittenBy.Enrollment)
	}
	if err := checkParties(box, worker); err != nil {
		return time.Time{}, err
	}
	if rec.Cloud != box.Cloud {
		return time.Time{}, fmt.Errorf("cloud %s, enrolled is %s", rec.Cloud, box.Cloud)
	}
	return rec.ObservedAt, checkSource(rec.Via, rec.RequestID, rec.EventID, rec.State)
}

func otherBox(ref, enrollment string, box roster.Box) error {
	return fmt.Errorf("it names box %q as %q, the roster has %q as %q", ref, enrollment, box.Ref, box.Enrollment)
}
