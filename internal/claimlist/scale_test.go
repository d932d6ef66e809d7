package claimlist_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/claimlist"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// many is a deployment of 20,000 hosts that share one claim's shape.
type many struct {
	*memstore.Store
}

func (m *many) List(_ context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		for n := range 20_000 {
			if !yield(objstore.Info{Key: fmt.Sprintf("%sh%05d.example.json", prefix, n), ETag: "1", ModTime: time.Unix(int64(n), 0)}, nil) {
				return
			}
		}
	}
}

// TestEachHandsOverAClaimAtATime: of 20,000 none is kept, and each comes with the
// store's time of it.
func TestEachHandsOverAClaimAtATime(t *testing.T) {
	s := memstore.New()
	for n := range 200 {
		create(t, s, fmt.Sprintf("h%05d.example", n))
	}
	r := claimlist.Reader{Store: s}
	var claims int
	require.NoError(t, r.Each(ctx, func(o hostclaim.Observed, changed time.Time) {
		require.NotNil(t, o.Claim)
		require.WithinDuration(t, time.Now(), changed, time.Minute)
		claims++
	}))
	require.Equal(t, 200, claims)
	require.Len(t, r.Listed(), 200)
}

// TestWhatCannotBeReadIsToldBriefly: a store that fails says so 16 times, not
// 20,000 times.
func TestWhatCannotBeReadIsToldBriefly(t *testing.T) {
	r := claimlist.Reader{Store: &many{Store: memstore.New()}}
	cut, cancel := context.WithCancel(ctx)
	cancel()
	err := r.Each(cut, func(hostclaim.Observed, time.Time) { t.Error("none can be read") })
	require.ErrorIs(t, err, context.Canceled)
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	require.Len(t, joined.Unwrap(), 16)
	require.Len(t, r.Listed(), 20_000)
}
