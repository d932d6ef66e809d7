package dirstore

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheHeadOfAFileIsOneLine(t *testing.T) {
	h := head{sha256: strings.Repeat("ab", 32), nonce: "0123456789abcdef", at: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC), size: 1<<63 - 1}
	b := h.encode()
	require.Equal(t, "regionha-object 1 "+strings.Repeat("ab", 32)+" 0123456789abcdef 2026-03-04T05:06:07.000000008Z 9223372036854775807", strings.TrimRight(string(b), " \n"))
	require.Len(t, b, headSize)
	require.Equal(t, byte('\n'), b[headSize-1])
	back, err := parseHead(b)
	require.NoError(t, err)
	require.Equal(t, h, back)
	require.False(t, back.tombstone())

	gone := head{nonce: "0123456789abcdef", at: h.at}
	back, err = parseHead(gone.encode())
	require.NoError(t, err)
	require.True(t, back.tombstone())
}

func TestAHeadThatNoStoreWritesIsForeign(t *testing.T) {
	good := head{sha256: strings.Repeat("ab", 32), nonce: "0123456789abcdef", at: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC), size: 12}
	for name, spoil := range map[string]func(*head){
		"a negative size":                    func(h *head) { h.size = -1 },
		"a short nonce":                      func(h *head) { h.nonce = h.nonce[1:] },
		"a short digest":                     func(h *head) { h.sha256 = h.sha256[2:] },
		"one field more":                     func(h *head) { h.nonce += " x" },
		"no nonce":                           func(h *head) { h.nonce = "" },
		"a tombstone that has a short nonce": func(h *head) { h.sha256, h.nonce = "", h.nonce[1:] },
	} {
		h := good
		spoil(&h)
		_, err := parseHead(h.encode())
		require.ErrorIs(t, err, errForeign, name)
	}
}

func TestADamagedLengthIsNamed(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	temp, _, err := s.writeTemp(strings.NewReader("0123456789"), 10)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(temp, headSize+9))
	_, _, err = openFile(temp)
	require.ErrorIs(t, err, errForeign)
	require.ErrorContains(t, err, "it has 169 bytes, not 170")
}

// TestUnfinishedWritesAreRemovedFromADayOn: all of them, and one that cannot be
// removed is an error.
func TestUnfinishedWritesAreRemovedFromADayOn(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	path := func(name string) string { return filepath.Join(s.root, tempDir, name) }
	for name, age := range map[string]time.Duration{"a": staleTemp, "b": staleTemp, "younger": staleTemp - time.Second} {
		require.NoError(t, os.WriteFile(path(name), nil, 0o600))
		require.NoError(t, os.Chtimes(path(name), at, at.Add(-age)))
	}
	require.NoError(t, s.removeStaleTemp(at))
	require.NoFileExists(t, path("a"))
	require.NoFileExists(t, path("b"))
	require.FileExists(t, path("younger"))

	require.NoError(t, os.MkdirAll(path("c/full"), 0o700))
	require.NoError(t, os.Chtimes(path("c"), at, at.Add(-staleTemp)))
	require.Error(t, s.removeStaleTemp(at))
}

func FuzzParseHead(f *testing.F) {
	h := head{sha256: strings.Repeat("ab", 32), nonce: "0123456789abcdef", at: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC), size: 12}
	f.Add(h.encode())
	f.Add(head{nonce: h.nonce, at: h.at}.encode())
	f.Add([]byte(strings.Repeat(" ", headSize)))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHead(b)
		if err != nil {
			require.ErrorIs(t, err, errForeign)
			return
		}
		require.True(t, bytes.Equal(b, h.encode()))
		require.GreaterOrEqual(t, h.size, int64(0))
	})
}
