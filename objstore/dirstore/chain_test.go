package dirstore

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
)

// TestAWriterThatSleptThroughPruningIsNotTold is a writer frozen between
// looking and linking, while so many writes passed that its number was used and
// pruned.
func TestAWriterThatSleptThroughPruningIsNotToldThatItApplied(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	path := objectPath(s.root, "k")
	write := func(n int) {
		for i := range n {
			_, err := s.Put(t.Context(), "k", fmt.Appendf(nil, "%d %d", n, i), objstore.Always())
			require.NoError(t, err)
		}
	}
	write(3)
	top, err := checkNewest(path, objstore.Always())
	require.NoError(t, err)
	temp, _, err := s.writeTemp(bytes.NewReader([]byte("zombie")), 6)
	require.NoError(t, err)
	write(200)
	before, _, err := newest(path)
	require.NoError(t, err)
	defer before.Close()

	require.NoError(t, s.link(path, temp, top+1), "the number is free again")
	require.ErrorIs(t, stillThere(path, top), errOvertaken)
	after, _, err := newest(path)
	require.NoError(t, err)
	defer after.Close()
	require.Equal(t, before.number, after.number, "and what was written is not the newest")
}

// TestALateCreateFindsItsNumberTaken is the same for a create-only write: the
// first version is never pruned.
func TestALateCreateFindsItsNumberTaken(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	temp, _, err := s.writeTemp(bytes.NewReader([]byte("zombie")), 6)
	require.NoError(t, err)
	for i := range 200 {
		_, err := s.Put(t.Context(), "k", fmt.Append(nil, i), objstore.Always())
		require.NoError(t, err)
	}
	require.Error(t, s.link(objectPath(s.root, "k"), temp, 1))
}
