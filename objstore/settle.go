package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// lookAgain bounds the read that settles an outcome. It runs even when the
// caller's context has ended, since that is the commonest unknown.
const lookAgain = 10 * time.Second

// PutSettled writes body under cond and, where the outcome is unknown, or a
// conflict that may be the replay of our own first delivery, reads the key to
// find out. It costs one PUT, and one GET more only then. cond is [IfAbsent]
// or [IfMatch].
//
//   - The stored bytes are exactly body: applied, nil.
//   - After a conflict, anything else: [ErrConflict].
//   - After an unknown outcome, the key still as cond named it: [ErrUnknown],
//     the write may yet land. Anything else: [ErrSuperseded].
//   - The read failed: [ErrUnknown].
//
// The rule it rests on: every body of a mutable key is unique for ever (it
// carries a gen and a nonce), so equal bytes are this very write. What it cannot
// see is a write that a middlebox sent twice and that was overwritten before the
// look: that is [ErrConflict] too. So after a conflict, as after ErrSuperseded,
// read again and let the record say.
func PutSettled(ctx context.Context, s Store, key string, body []byte, cond Condition) (Info, error) {
	if _, match := cond.ETag(); !match && !cond.IsAbsent() {
		return Info{}, fmt.Errorf("put %s: %w: %s cannot be settled", key, ErrBadCondition, cond)
	}
	info, err := s.Put(ctx, key, body, cond)
	switch {
	case err == nil, errors.Is(err, ErrBadKey), errors.Is(err, ErrBadCondition):
		return info, err
	}
	return settle(ctx, s, key, body, cond, err)
}

// Create writes an immutable record: create-only, and the same bytes again are
// success. Other bytes under the key are [ErrConflict]. A refusal while nothing
// is there yet, because another create-only write is in progress, is
// [ErrUnknown]: try again. It costs one PUT, and one GET more where the record
// was there already or the outcome was unknown.
func Create(ctx context.Context, s Store, key string, body []byte) (Info, error) {
	info, err := PutSettled(ctx, s, key, body, IfAbsent())
	switch {
	case errors.Is(err, ErrSuperseded):
		return Info{}, fmt.Errorf("create %s: %w: it holds other bytes", key, ErrConflict)
	case errors.Is(err, ErrConflict):
		if _, readErr := s.Get(ctx, key); readErr != nil {
			return Info{}, fmt.Errorf("create %s: %w: %v; then: %w", key, ErrUnknown, err, readErr)
		}
	}
	return info, err
}

func settle(ctx context.Context, s Store, key string, body []byte, cond Condition, putErr error) (Info, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookAgain)
	defer cancel()
	seen, err := s.Get(ctx, key)
	absent := errors.Is(err, ErrNotFound)
	if err != nil && !absent {
		return Info{}, fmt.Errorf("put %s: %w: %v; looking again: %w", key, ErrUnknown, putErr, err)
	}
	named, match := cond.ETag()
	switch {
	case !absent && bytes.Equal(seen.Body, body):
		return seen.Info, nil
	case errors.Is(putErr, ErrConflict):
		return Info{}, putErr
	case match && !absent && seen.ETag == named, !match && absent:
		return Info{}, fmt.Errorf("put %s: %w: %w", key, ErrUnknown, putErr)
	}
	return Info{}, fmt.Errorf("put %s: %w: %v", key, ErrSuperseded, putErr)
}
