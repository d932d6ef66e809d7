package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/objstore"
)

var settling = []check{
	{"a lost answer is settled", Required, "a box would not know whether it holds its claim", lostAnswer},
	{"immutable records", Required, "two workers that record one fact would block each other", immutable},
}

// deaf carries out a write and loses the answer.
type deaf struct{ objstore.Store }

func (d deaf) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	_, err := d.Store.Put(ctx, key, body, cond)
	return objstore.Info{}, fmt.Errorf("%w: the answer was lost: %v", objstore.ErrUnknown, err)
}

func lostAnswer(ctx context.Context, b bench) error {
	key, body := b.key("k"), unique()
	created, err := objstore.PutSettled(ctx, deaf{b.Store}, key, body, objstore.IfAbsent())
	if err != nil {
		return fmt.Errorf("a create-only write that applied: %w", err)
	}
	swapped, err := objstore.PutSettled(ctx, deaf{b.Store}, key, unique(), objstore.IfMatch(created.ETag))
	if err != nil {
		return fmt.Errorf("an If-Match write that applied: %w", err)
	}
	if swapped.ETag == created.ETag {
		return fmt.Errorf("a replaced object still has the ETag %s", created.ETag)
	}
	_, err = objstore.PutSettled(ctx, deaf{b.Store}, key, unique(), objstore.IfMatch(created.ETag))
	return want(err, objstore.ErrSuperseded, "a lost write over a version that is no more")
}

func immutable(ctx context.Context, b bench) error {
	key, body := b.key("k"), unique()
	for range 2 {
		info, err := objstore.Create(ctx, b.Store, key, body)
		if err != nil {
			return err
		}
		if info.ETag == "" {
			return errors.New("a created record has no ETag")
		}
	}
	_, err := objstore.Create(ctx, b.Store, key, unique())
	return want(err, objstore.ErrConflict, "other bytes under an immutable record's key")
}
