package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// Guard refuses, with [ErrUnfit], a store that lets two create-only writes of
// one key, or two If-Match writes of one ETag, apply: on it two boxes could
// both hold a claim. It costs five requests, and the removal of what it wrote.
// Any other error means that the store could not be asked.
func Guard(ctx context.Context, s objstore.Store) error {
	dir := prefix + record.Nonce() + "/"
	err := guard(ctx, s, dir+"guard")
	if err != nil {
		return fmt.Errorf("check the store's conditional writes: %w", err)
	}
	// What is left behind carries no meaning, and a policy may forbid deletion.
	_ = removeAll(ctx, s, dir)
	return nil
}

func guard(ctx context.Context, s objstore.Store, key string) error {
	first, err := s.Put(ctx, key, unique(), objstore.IfAbsent())
	if err != nil {
		return err
	}
	if err := refused(ctx, s, key, objstore.IfAbsent(), "a second create-only write of one key"); err != nil {
		return err
	}
	body := unique()
	if _, err := s.Put(ctx, key, body, objstore.IfMatch(first.ETag)); err != nil {
		return err
	}
	if err := refused(ctx, s, key, objstore.IfMatch(first.ETag), "a second If-Match write of one ETag"); err != nil {
		return err
	}
	return bench{Store: s}.holds(ctx, key, body)
}

// refused sends a write that must conflict.
func refused(ctx context.Context, s objstore.Store, key string, cond objstore.Condition, what string) error {
	_, err := s.Put(ctx, key, unique(), cond)
	switch {
	case errors.Is(err, objstore.ErrConflict):
		return nil
	case err == nil:
		return fmt.Errorf("%w: it accepted %s, so two boxes could both hold a claim; use a store with conditional writes", ErrUnfit, what)
	}
	return err
}
