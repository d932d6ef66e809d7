package hostguard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostguard"
)

var (
	request  = hostguard.ReleaseRequest{Op: "op-1", Revision: 41, Stamp: 7, Session: 7, Generation: "g-1", Incarnation: "i-1"}
	released = hostguard.Released{Request: request, Final: final}
)

func journal(r hostguard.Released) func(*hostguard.Held) error {
	return func(h *hostguard.Held) error { return h.JournalReleased(r) }
}

func TestReleasedPositionsAreJournaledOnceUnderTheFence(t *testing.T) {
	g, dir := active(t, 7)
	require.ErrorIs(t, in(t, g, 7, journal(released)), hostguard.ErrNotFenced)
	require.NoError(t, g.BeginFence(t.Context(), 7, "op-1"))
	fenced := func(r hostguard.Released) error { return g.WithFence(t.Context(), 7, "op-1", journal(r)) }
	_, found, err := g.Released(request)
	require.NoError(t, err)
	require.False(t, found)
	require.NoError(t, fenced(released))
	require.NoError(t, fenced(released))

	other := released
	other.Final.TXID++
	require.ErrorIs(t, fenced(other), hostguard.ErrSession)
	other = released
	other.Request.Revision++
	require.ErrorIs(t, fenced(other), hostguard.ErrSession, "a retry asks under the recorded revision")
	for want, spoil := range map[error]func(*hostguard.ReleaseRequest){
		hostguard.ErrNotFenced: func(r *hostguard.ReleaseRequest) { r.Op = "op-2" },
		hostguard.ErrStale:     func(r *hostguard.ReleaseRequest) { r.Incarnation = "i-2" },
	} {
		other := released
		spoil(&other.Request)
		require.ErrorIs(t, fenced(other), want)
	}
	require.Error(t, fenced(hostguard.Released{}))

	again := open(t, dir, me)
	got, found, err := again.Released(request)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, released, got)
	want := request
	want.Revision = 0
	got, found, err = again.Released(want)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, released, got, "whichever revision it was made under")
}

func TestPositionsOfAnotherRequestAreNeverReturned(t *testing.T) {
	g, _ := active(t, 7)
	require.NoError(t, g.BeginFence(t.Context(), 7, "op-1"))
	require.NoError(t, g.WithFence(t.Context(), 7, "op-1", journal(released)))
	for name, spoil := range map[string]func(*hostguard.ReleaseRequest){
		"op":          func(r *hostguard.ReleaseRequest) { r.Op = "op-2" },
		"revision":    func(r *hostguard.ReleaseRequest) { r.Revision++ },
		"stamp":       func(r *hostguard.ReleaseRequest) { r.Stamp++ },
		"session":     func(r *hostguard.ReleaseRequest) { r.Session-- },
		"generation":  func(r *hostguard.ReleaseRequest) { r.Generation = "g-2" },
		"incarnation": func(r *hostguard.ReleaseRequest) { r.Incarnation = "i-2" },
	} {
		want := request
		spoil(&want)
		_, found, err := g.Released(want)
		require.NoError(t, err)
		require.False(t, found, name)
	}
	_, found, err := g.Released(hostguard.ReleaseRequest{})
	require.NoError(t, err)
	require.False(t, found)
}

func TestAnotherReleaseReplacesThePositionsOfThePast(t *testing.T) {
	g, _ := active(t, 7)
	require.NoError(t, g.BeginFence(t.Context(), 7, "op-1"))
	require.NoError(t, g.WithFence(t.Context(), 7, "op-1", journal(released)))
	require.NoError(t, g.Activate(t.Context(), "i-1", 8))
	require.NoError(t, g.BeginFence(t.Context(), 8, "op-2"))
	idle := hostguard.Released{Request: hostguard.ReleaseRequest{Op: "op-2", Revision: 42, Stamp: 8, Incarnation: "i-1"}}
	require.NoError(t, g.WithFence(t.Context(), 8, "op-2", journal(idle)))
	_, found, err := g.Released(request)
	require.NoError(t, err)
	require.False(t, found)
	got, _, err := g.Released(idle.Request)
	require.NoError(t, err)
	require.Equal(t, idle, got)
}
