package dirstore_test

import (
	"io"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
)

// TestNothingLeavesAFileOpen counts this process's open files while no garbage
// collection closes any that were forgotten.
func TestNothingLeavesAFileOpen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	opened := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(entries)
	}
	s := open(t, t.TempDir())
	before := opened()

	one := put(t, s, "a/k", "one", objstore.IfAbsent())
	two := put(t, s, "a/k", "two", objstore.IfMatch(one.ETag))
	_, err := s.Put(t.Context(), "a/k", []byte("x"), objstore.IfMatch(one.ETag))
	require.ErrorIs(t, err, objstore.ErrConflict)
	_, err = s.Put(t.Context(), "a/k", []byte("x"), objstore.IfAbsent())
	require.ErrorIs(t, err, objstore.ErrConflict)
	_, err = s.CopyVersion(t.Context(), "a/k", one.VersionID, "copy")
	require.NoError(t, err)
	_, err = s.Get(t.Context(), "a/k")
	require.NoError(t, err)
	r, _, err := s.GetReader(t.Context(), "a/k", two.ETag, 1)
	require.NoError(t, err)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "wo", string(rest))
	require.NoError(t, r.Close())
	_, _, err = s.GetReader(t.Context(), "a/k", one.ETag, 0)
	require.ErrorIs(t, err, objstore.ErrConflict)
	require.Len(t, list(t, s, ""), 2)
	require.Len(t, versions(t, s, "a/k"), 2)
	for path, err := range s.Foreign(t.Context()) {
		require.Fail(t, "foreign", "%s %v", path, err)
	}
	require.NoError(t, s.DeleteVersion(t.Context(), "a/k", two.VersionID))
	_, _, err = s.GetVersion(t.Context(), "a/k", two.VersionID)
	require.ErrorIs(t, err, objstore.ErrNotFound)
	_, err = s.Get(t.Context(), "a/k")
	require.NoError(t, err, "the one before, past a tombstone")
	require.Len(t, versions(t, s, "a/k"), 1)

	require.Equal(t, before, opened())
}
