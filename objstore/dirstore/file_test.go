package dirstore

import (
	"bytes"
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
