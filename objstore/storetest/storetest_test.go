package storetest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/objstore/storetest"
)

func TestAFitStorePassesAndIsLeftClean(t *testing.T) {
	s := memstore.New()
	names := map[string]bool{}
	err := storetest.Check(t.Context(), s, func(r storetest.Result) {
		require.NoError(t, r.Err, r.Name)
		require.NotEqual(t, "clean-up", r.Name, "only a clean-up that failed is reported")
		require.Equal(t, r.Name == "foreign files", r.Skipped, r.Name)
		require.False(t, names[r.Name], "a name is that of one check")
		names[r.Name] = true
	})
	require.NoError(t, err)
	for info, err := range s.ListVersions(t.Context(), "") {
		require.NoError(t, err)
		require.Fail(t, "left behind", info.Key)
	}
	for _, w := range s.Log() {
		require.True(t, w.Key == "" || strings.HasPrefix(w.Key, "control/store-check/"), w.Key)
	}
}

// plain has no optional interface.
type plain struct{ objstore.Store }

func TestWhatAStoreDoesNotOfferIsSkipped(t *testing.T) {
	skipped := 0
	err := storetest.Check(t.Context(), plain{memstore.New()}, func(r storetest.Result) {
		require.NoError(t, r.Err)
		if r.Skipped {
			skipped++
		}
	})
	require.NoError(t, err)
	require.Positive(t, skipped)
}

func TestCheckEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	results := 0
	err := storetest.Check(ctx, memstore.New(), func(storetest.Result) { results++; cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, storetest.ErrUnfit)
	require.Equal(t, 1, results)
}
