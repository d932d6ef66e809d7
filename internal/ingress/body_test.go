package ingress

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func newReplay(body string, max int64) *replay {
	return &replay{body: io.NopCloser(bytes.NewBufferString(body)), max: max, bytes: &budget{max: 100}}
}

func TestAnAttemptReadsTheBodyFromItsStart(t *testing.T) {
	b := newReplay("a note", 10)
	first := &attempt{replay: b}
	_, err := io.ReadFull(first, make([]byte, 3))
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.True(t, b.whole())
	got, err := io.ReadAll(&attempt{replay: b})
	require.NoError(t, err)
	require.Equal(t, "a note", string(got))
	require.EqualValues(t, 6, b.bytes.used.Load())
	b.release()
	require.Zero(t, b.bytes.used.Load())
}

func TestAClosedAttemptTakesNothingFromTheNext(t *testing.T) {
	b := newReplay("a note", 10)
	first := &attempt{replay: b}
	require.NoError(t, first.Close())
	_, err := first.Read(make([]byte, 3))
	require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
	got, err := io.ReadAll(&attempt{replay: b})
	require.NoError(t, err)
	require.Equal(t, "a note", string(got))
}

func TestABodyIsKeptUpToItsBoundOnly(t *testing.T) {
	b := newReplay("a longer note", 10)
	got, err := io.ReadAll(&attempt{replay: b})
	require.NoError(t, err)
	require.Equal(t, "a longer note", string(got))
	require.False(t, b.whole())
	require.Zero(t, b.bytes.used.Load())
}

func TestAReadAfterTheReleaseKeepsNothing(t *testing.T) {
	b := newReplay("a note", 10)
	b.release()
	_, err := io.ReadAll(&attempt{replay: b})
	require.NoError(t, err)
	require.Zero(t, b.bytes.used.Load())
}
