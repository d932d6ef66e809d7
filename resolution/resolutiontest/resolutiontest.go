// Package resolutiontest makes real resolutions for the tests of packages that
// take them: it publishes the record on a store in memory and reads it back.
package resolutiontest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/resolution"
)

// Resolution returns the verified resolution of rec. Fields that are not set get
// a value that verifies, and the confirmation is the host's name. The same
// argument makes the same resolution.
func Resolution(tb testing.TB, rec resolution.Record) resolution.Resolution {
	tb.Helper()
	ctx, store := context.Background(), memstore.New()
	published, err := resolution.Publish(ctx, store, Filled(rec))
	require.NoError(tb, err)
	read, err := resolution.Read(ctx, store, published.Ref())
	require.NoError(tb, err)
	return read
}

// Filled returns rec with a value that verifies in each field that is not set.
func Filled(rec resolution.Record) resolution.Record {
	rec.V = cmp.Or(rec.V, 1)
	rec.Host = cmp.Or(rec.Host, "shop.example")
	rec.Op = cmp.Or(rec.Op, "op-1")
	rec.N = cmp.Or(rec.N, 1)
	rec.Gen = cmp.Or(rec.Gen, 1)
	rec.Box = cmp.Or(rec.Box, "box-1")
	rec.Enrollment = cmp.Or(rec.Enrollment, "e-"+rec.Box)
	rec.Who = cmp.Or(rec.Who, "an operator")
	rec.Why = cmp.Or(rec.Why, "a test")
	rec.Confirmation = cmp.Or(rec.Confirmation, rec.Host)
	if rec.DecidedAt.IsZero() {
		rec.DecidedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	}
	return rec
}
