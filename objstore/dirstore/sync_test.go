package dirstore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDirectoriesThatAreOnDiskAreRememberedUpToABound(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	a, b := filepath.Join(s.root, "a"), filepath.Join(s.root, "a", "b")
	require.NoError(t, s.ensureDir(b))
	require.Contains(t, s.durable, a)
	require.Contains(t, s.durable, b)

	for i := range maxDurable - len(s.durable) {
		s.durable[fmt.Sprint(i)] = struct{}{}
	}
	require.NoError(t, s.ensureDir(filepath.Join(b, "c")))
	require.LessOrEqual(t, len(s.durable), maxDurable)
	require.DirExists(t, filepath.Join(b, "c"))
}
