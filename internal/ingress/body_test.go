package ingress

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newReplay(body string, max int64) *replay {
	return &replay{body: io.NopCloser(bytes.NewBufferString(body)), max: max, share: (&shares{limits: limits{requests: 1, requestsHost: 1, kept: 100, keptHost: 100}}).enter("notes.example"),
		stalls: func(time.Time) {}, stall: time.Minute}
}

func TestAnAttemptReadsTheBodyFromItsStart(t *testing.T) {
	b := newReplay("a note", 10)
	first := &attempt{replay: b, atEnd: func() {}}
	_, err := io.ReadFull(first, make([]byte, 3))
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.True(t, b.whole())
	got, err := io.ReadAll(&attempt{replay: b, atEnd: func() {}})
	require.NoError(t, err)
	require.Equal(t, "a note", string(got))
	require.EqualValues(t, 6, b.share.kept)
	b.release()
	require.Zero(t, b.share.kept)
}

func TestAClosedAttemptTakesNothingFromTheNext(t *testing.T) {
	b := newReplay("a note", 10)
	first := &attempt{replay: b, atEnd: func() {}}
	require.NoError(t, first.Close())
	_, err := first.Read(make([]byte, 3))
	require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
	got, err := io.ReadAll(&attempt{replay: b, atEnd: func() {}})
	require.NoError(t, err)
	require.Equal(t, "a note", string(got))
}

func TestABodyIsKeptUpToItsBoundOnly(t *testing.T) {
	b := newReplay("a longer note", 10)
	got, err := io.ReadAll(&attempt{replay: b, atEnd: func() {}})
	require.NoError(t, err)
	require.Equal(t, "a longer note", string(got))
	require.False(t, b.whole())
	require.Zero(t, b.share.kept)
}

func TestAReadAfterTheReleaseKeepsNothing(t *testing.T) {
	b := newReplay("a note", 10)
	b.release()
	_, err := io.ReadAll(&attempt{replay: b, atEnd: func() {}})
	require.NoError(t, err)
	require.Zero(t, b.share.kept)
}
