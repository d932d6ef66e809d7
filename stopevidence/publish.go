package stopevidence

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// Publish stores the receipt of one stop, create-only, and returns the one that
// is stored. rec.V is set here; every other field is the caller's, and every
// check that a receipt needs is in it and passed.
//
// A receipt of the same stop that is there already is the answer: the same host,
// op, obligation, box, enrollment, incarnation, stamp and session, whatever boot,
// controller, checks and time made it. One of another enrollment, incarnation or
// stamp has the same key: that, like bytes that do not verify, is
// [ErrUnverified], and no repetition changes it. After any other failure Publish
// is called again. It costs one PUT, and one or two GETs more where the receipt
// was there or the answer was lost.
func Publish(ctx context.Context, store objstore.Store, rec Record) (Receipt, error) {
	rec.V = version
	key := Key(rec.Host, rec.Op, rec.Box, rec.Session, rec.Obligation)
	receipt, err := publish(ctx, store, rec, key)
	if err != nil {
		return Receipt{}, fmt.Errorf("stopevidence: receipt %q: %w", key, err)
	}
	return receipt, nil
}

func publish(ctx context.Context, store objstore.Store, rec Record, key string) (Receipt, error) {
	if err := rec.check(key); err != nil {
		return Receipt{}, fmt.Errorf("not a stop: %w", err)
	}
	body, err := record.Encode(rec)
	if err != nil {
		return Receipt{}, err
	}
	_, err = objstore.Create(ctx, store, key, body)
	switch {
	case err == nil:
		return verify(Ref{Key: key, SHA256: record.Digest(body)}, body)
	case !errors.Is(err, objstore.ErrConflict):
		return Receipt{}, err
	}
	obj, err := store.Get(ctx, key)
	if err != nil {
		return Receipt{}, err
	}
	stored, err := verify(Ref{Key: key, SHA256: record.Digest(obj.Body)}, obj.Body)
	if err != nil {
		return Receipt{}, err
	}
	if own, there := rec.identity(), stored.identity(); own != there {
		return Receipt{}, fmt.Errorf("%w: it is of %+v, expected %+v", ErrUnverified, there, own)
	}
	return stored, nil
}

// identity is what one stop is of. Host, op, box, session and obligation are in
// the key, which verify holds to be the record's own.
type identity struct {
	Enrollment, Incarnation string
	Stamp                   uint64
}

func (r Record) identity() identity { return identity{r.Enrollment, r.Incarnation, r.Stamp} }

func (r Receipt) identity() identity { return identity{r.enrollment, r.incarnation, r.stamp} }
