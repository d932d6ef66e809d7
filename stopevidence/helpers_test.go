package stopevidence_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/stopevidence"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// stopped is a receipt that holds.
func stopped() stopevidence.Record {
	return stopevidence.Record{
		V: 1, Host: "shop.example", Op: "op-7", Obligation: stopevidence.Release, Box: "shop-1", Enrollment: "e-shop-1",
		BootID: "0b6f2c1e-7d53-4a0f-9a55-1f0c5b7d2e11", Controller: "c-1", Incarnation: "i-1", Stamp: 9, Session: 8,
		DirectoryRevision: 4, Fence: record.Digest([]byte("fence")),
		Checks: []stopevidence.Check{
			{Name: stopevidence.CgroupEmpty, Passed: true, Saw: "populated 0"},
			{Name: stopevidence.NoHolders, Passed: true, Saw: "212 tasks, two passes agree"},
			{Name: stopevidence.AdmissionClosed, Passed: true},
			{Name: stopevidence.ProducersJoined, Passed: true},
		},
		EvidenceAt: now,
	}
}

// key is where a record says that it is.
func key(r stopevidence.Record) string {
	return stopevidence.Key(r.Host, r.Op, r.Box, r.Session, r.Obligation)
}

func encode(tb testing.TB, r stopevidence.Record) []byte {
	tb.Helper()
	body, err := record.Encode(r)
	require.NoError(tb, err)
	return body
}

// plant stores any bytes at a key, and returns what cites them.
func plant(tb testing.TB, store objstore.Store, key string, body []byte) stopevidence.Ref {
	tb.Helper()
	_, err := store.Put(tb.Context(), key, body, objstore.IfAbsent())
	require.NoError(tb, err)
	return stopevidence.Ref{Key: key, SHA256: record.Digest(body)}
}

// requireRefused wants bytes at a key, exactly cited, to be no receipt.
func requireRefused(t *testing.T, key string, body []byte, reason string) {
	t.Helper()
	store := memstore.New()
	receipt, err := stopevidence.Read(t.Context(), store, plant(t, store, key, body))
	require.ErrorIs(t, err, stopevidence.ErrUnverified)
	require.ErrorContains(t, err, reason)
	require.Zero(t, receipt)
}
