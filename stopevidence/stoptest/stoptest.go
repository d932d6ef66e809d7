// Package stoptest makes real stop receipts for the tests of packages that take
// them. There is no other way to a value that a transition accepts: it stores
// the record on a store in memory and reads it back.
package stoptest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/stopevidence"
)

// Receipt returns the verified receipt of rec. Fields that are not set get a
// value that verifies; a Session that is not set is that of a box which never
// had a writer. The same argument makes the same receipt.
func Receipt(tb testing.TB, rec stopevidence.Record) stopevidence.Receipt {
	tb.Helper()
	ctx, store := context.Background(), memstore.New()
	rec = Filled(rec)
	body, err := record.Encode(rec)
	require.NoError(tb, err)
	key := stopevidence.Key(rec.Host, rec.Op, rec.Box, rec.Session, rec.Obligation)
	_, err = objstore.Create(ctx, store, key, body)
	require.NoError(tb, err)
	receipt, err := stopevidence.Read(ctx, store, stopevidence.Ref{Key: key, SHA256: record.Digest(body)})
	require.NoError(tb, err)
	return receipt
}

// Filled returns rec with a value that verifies in each field that is not set.
func Filled(rec stopevidence.Record) stopevidence.Record {
	rec.V = cmp.Or(rec.V, 1)
	rec.Host = cmp.Or(rec.Host, "shop.example")
	rec.Op = cmp.Or(rec.Op, "op-1")
	rec.Obligation = cmp.Or(rec.Obligation, stopevidence.Release)
	rec.Box = cmp.Or(rec.Box, "box-1")
	rec.Enrollment = cmp.Or(rec.Enrollment, "e-"+rec.Box)
	rec.BootID = cmp.Or(rec.BootID, "0b6f2c1e-7d53-4a0f-9a55-1f0c5b7d2e11")
	rec.Controller = cmp.Or(rec.Controller, "controller-1")
	rec.Incarnation = cmp.Or(rec.Incarnation, "incarnation-1")
	rec.Stamp = cmp.Or(rec.Stamp, rec.Session, 1)
	rec.DirectoryRevision = cmp.Or(rec.DirectoryRevision, 1)
	rec.Fence = cmp.Or(rec.Fence, record.Digest([]byte("fence")))
	if rec.Checks == nil {
		rec.Checks = []stopevidence.Check{
			{Name: stopevidence.CgroupEmpty, Passed: true, Saw: "populated 0"},
			{Name: stopevidence.NoHolders, Passed: true, Saw: "two passes agree"},
			{Name: stopevidence.AdmissionClosed, Passed: true},
			{Name: stopevidence.ProducersJoined, Passed: true},
		}
	}
	if rec.EvidenceAt.IsZero() {
		rec.EvidenceAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	}
	return rec
}
