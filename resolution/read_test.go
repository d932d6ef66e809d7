package resolution_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/resolution"
)

func TestReadReturnsWhatACitationNames(t *testing.T) {
	store := memstore.New()
	ref := plant(t, store, resolution.Key("op-7", 2), encode(t, decided()))
	r, err := resolution.Read(t.Context(), store, ref)
	require.NoError(t, err)
	require.Equal(t, ref, r.Ref())
	require.Equal(t, "shop.example", r.Host())
	require.Equal(t, "op-7", r.Op())
	require.Equal(t, 2, r.N())
	require.EqualValues(t, 40, r.Gen())
	require.Equal(t, "shop-3", r.Box())
	require.Equal(t, "e-shop-3", r.Enrollment())
	require.True(t, r.AcceptEmpty())
	require.Equal(t, now, r.DecidedAt())
	require.Equal(t, 1, store.Requests()[memstore.OpGet])
}

func TestACitationHoldsExactly(t *testing.T) {
	store := memstore.New()
	good := plant(t, store, resolution.Key("op-7", 2), encode(t, decided()))
	for name, c := range map[string]struct {
		ref  resolution.Ref
		want error
	}{
		"other bytes":            {resolution.Ref{Key: good.Key, SHA256: good.SHA256[1:] + "0"}, resolution.ErrUnverified},
		"no digest":              {resolution.Ref{Key: good.Key}, resolution.ErrUnverified},
		"no key":                 {resolution.Ref{SHA256: good.SHA256}, resolution.ErrUnverified},
		"nothing":                {resolution.Ref{}, resolution.ErrUnverified},
		"a key of another place": {resolution.Ref{Key: "control/box-fences/e.json", SHA256: good.SHA256}, resolution.ErrUnverified},
		"another number's key":   {plant(t, store, resolution.Key("op-7", 3), encode(t, decided())), resolution.ErrUnverified},
		"another operation's":    {plant(t, store, resolution.Key("op-8", 2), encode(t, decided())), resolution.ErrUnverified},
		"nothing stored":         {resolution.Ref{Key: resolution.Key("op-9", 1), SHA256: good.SHA256}, objstore.ErrNotFound},
	} {
		res, err := resolution.Read(t.Context(), store, c.ref)
		require.ErrorIs(t, err, c.want, name)
		require.Zero(t, res, name)
	}
}

// Whoever can write to the bucket can write these, each at the key that it names.
func TestAStoredResolutionThatDoesNotHoldIsAnError(t *testing.T) {
	for _, c := range violations {
		t.Run(c.name, func(t *testing.T) {
			store, rec := memstore.New(), decided()
			c.spoil(&rec)
			res, err := resolution.Read(t.Context(), store, plant(t, store, resolution.Key(rec.Op, rec.N), encode(t, rec)))
			require.ErrorIs(t, err, resolution.ErrUnverified)
			require.ErrorContains(t, err, c.reason)
			require.Zero(t, res)
		})
	}
}

func TestAnotherVersionIsAnError(t *testing.T) {
	for _, v := range []int{0, 2} {
		store, rec := memstore.New(), decided()
		rec.V = v
		_, err := resolution.Read(t.Context(), store, plant(t, store, resolution.Key("op-7", 2), encode(t, rec)))
		require.ErrorIs(t, err, resolution.ErrUnverified)
		require.ErrorContains(t, err, "expected 1")
	}
}

func TestTheBoundsAreInclusive(t *testing.T) {
	store, rec := memstore.New(), decided()
	rec.Host, rec.Confirmation = strings.Repeat("h", 200), strings.Repeat("h", 200)
	rec.N, rec.Gen, rec.Who, rec.Why = 1, 1, strings.Repeat("w", 128), strings.Repeat("w", 2048)
	_, err := resolution.Publish(t.Context(), store, rec)
	require.NoError(t, err)
}

func TestAMalformedResolutionIsAnError(t *testing.T) {
	body := encode(t, decided())
	for name, bad := range map[string][]byte{
		"empty":          {},
		"truncated":      body[:len(body)/2],
		"one field more": append(bytes.Clone(body[:len(body)-2]), ",\"x\":1}\n"...),
		"trailing data":  append(bytes.Clone(body), ' '),
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			res, err := resolution.Read(t.Context(), store, plant(t, store, resolution.Key("op-7", 2), bad))
			require.ErrorIs(t, err, resolution.ErrUnverified)
			require.ErrorContains(t, err, "malformed record")
			require.Zero(t, res)
		})
	}
}

func TestAFailedReadSaysNothing(t *testing.T) {
	store := memstore.New()
	ref := plant(t, store, resolution.Key("op-7", 2), encode(t, decided()))
	store.Inject(memstore.Once(memstore.OpGet, ref.Key, memstore.Lose))
	res, err := resolution.Read(t.Context(), store, ref)
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.NotErrorIs(t, err, resolution.ErrUnverified)
	require.Zero(t, res)
}

func TestTheZeroResolutionDecidesNothing(t *testing.T) {
	var r resolution.Resolution
	require.Zero(t, r.Ref())
	require.Empty(t, r.Host())
	require.Empty(t, r.Op())
	require.Zero(t, r.N())
	require.Zero(t, r.Gen())
	require.Empty(t, r.Box())
	require.Empty(t, r.Enrollment())
	require.False(t, r.AcceptEmpty())
	require.Zero(t, r.DecidedAt())
}
