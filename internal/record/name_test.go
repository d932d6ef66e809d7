package record_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
)

func TestANameIsOnePartOfAKey(t *testing.T) {
	for _, s := range []string{"a", "z", "A", "Z", "0", "9", "...", ".a", "-", "_", "notes.demo.example", strings.Repeat("a", 128)} {
		require.True(t, record.IsName(s, 128), s)
	}
	for _, s := range []string{"", ".", "..", "a/b", "a b", "a\x00", "é", "\xff", "`", "{", "@", "[", ":", ",", strings.Repeat("a", 129)} {
		require.False(t, record.IsName(s, 128), "%q", s)
	}
}
