package resolution_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/resolution"
	"github.com/carlosframework/regionha/resolution/resolutiontest"
)

func TestPublishReturnsTheDecisionThatIsStored(t *testing.T) {
	store := memstore.New()
	rec := decided()
	rec.V, rec.DecidedAt = 0, now.In(time.FixedZone("", 3600))
	published, err := resolution.Publish(t.Context(), store, rec)
	require.NoError(t, err)
	require.Equal(t, map[memstore.Op]int{memstore.OpPut: 1}, store.Requests(), "one PUT")
	read, err := resolution.Read(t.Context(), store, published.Ref())
	require.NoError(t, err)
	require.Equal(t, read, published)
	require.Equal(t, encode(t, decided()), store.Log()[0].Body)
}

func TestTheSameDecisionAgainIsSuccess(t *testing.T) {
	store := memstore.New()
	first, err := resolution.Publish(t.Context(), store, decided())
	require.NoError(t, err)
	again, err := resolution.Publish(t.Context(), store, decided())
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Len(t, store.Log(), 1)
}

func TestANumberIsUsedOnce(t *testing.T) {
	store := memstore.New()
	first, err := resolution.Publish(t.Context(), store, decided())
	require.NoError(t, err)
	other := decided()
	other.Box, other.Enrollment = "shop-4", "e-shop-4"
	res, err := resolution.Publish(t.Context(), store, other)
	require.ErrorIs(t, err, objstore.ErrConflict)
	require.Zero(t, res)

	read, err := resolution.Read(t.Context(), store, first.Ref())
	require.NoError(t, err)
	require.Equal(t, "shop-3", read.Box(), "the first decision stands")
	other.N++
	_, err = resolution.Publish(t.Context(), store, other)
	require.NoError(t, err)
}

func TestPublishWritesNothingThatDoesNotHold(t *testing.T) {
	for _, c := range violations {
		t.Run(c.name, func(t *testing.T) {
			store, rec := memstore.New(), decided()
			c.spoil(&rec)
			res, err := resolution.Publish(t.Context(), store, rec)
			require.ErrorIs(t, err, resolution.ErrInvalid)
			require.ErrorContains(t, err, c.reason)
			require.Zero(t, res)
			require.Empty(t, store.Requests())
		})
	}
}

// An immutable record that does not decode would use up its number.
func TestPublishWritesNothingThatNobodyCouldRead(t *testing.T) {
	for name, spoil := range map[string]func(*resolution.Record){
		"not UTF-8":             func(r *resolution.Record) { r.Why = "\xff" },
		"a year of five digits": func(r *resolution.Record) { r.DecidedAt = now.AddDate(9000, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			store, rec := memstore.New(), decided()
			spoil(&rec)
			res, err := resolution.Publish(t.Context(), store, rec)
			require.ErrorIs(t, err, resolution.ErrInvalid)
			require.Zero(t, res)
			require.Empty(t, store.Requests())
		})
	}
}

func TestPublishSettlesItsOutcome(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault memstore.Fault
		want  error
	}{
		{"the answer is lost", memstore.LoseAnswer, nil},
		{"the request is lost", memstore.Lose, objstore.ErrUnknown},
		{"the request is late", memstore.Hold, objstore.ErrUnknown},
		{"the request is repeated", memstore.Replay, nil},
		{"another request is in progress", memstore.Refuse, objstore.ErrUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := memstore.New()
			store.Inject(memstore.Once(memstore.OpPut, resolution.Key("op-7", 2), c.fault))
			res, err := resolution.Publish(t.Context(), store, decided())
			require.ErrorIs(t, err, c.want)
			require.Equal(t, c.want == nil, res != resolution.Resolution{})
			_, err = resolution.Publish(t.Context(), store, decided())
			require.NoError(t, err, "the same again settles it")
		})
	}
}

func TestResolutiontestMakesTheDecisionThatItIsAskedFor(t *testing.T) {
	r := resolutiontest.Resolution(t, resolution.Record{Host: "other.example", Op: "op-9", N: 3, Gen: 12, Box: "b-2", AcceptEmpty: true})
	require.Equal(t, "other.example", r.Host())
	require.Equal(t, "op-9", r.Op())
	require.Equal(t, 3, r.N())
	require.EqualValues(t, 12, r.Gen())
	require.Equal(t, "b-2", r.Box())
	require.Equal(t, "e-b-2", r.Enrollment())
	require.True(t, r.AcceptEmpty())
	require.False(t, resolutiontest.Resolution(t, resolution.Record{}).AcceptEmpty())
	require.Equal(t, decided(), resolutiontest.Filled(decided()))
}
