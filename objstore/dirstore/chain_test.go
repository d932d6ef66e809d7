package dirstore

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
)

// TestAWriterThatSleptThroughPruningIsNotToldThatItApplied is a writer frozen
// between looking and linking, while so many writes passed that its number was
// used and pruned. The first version, which is never pruned, tells it nothing,
// nor does what another such writer left below it.
func TestAWriterThatSleptThroughPruningIsNotToldThatItApplied(t *testing.T) {
	for _, tc := range []struct{ saw, slept int }{{1, keep + 1}, {3, keep + 1}} {
		t.Run(fmt.Sprintf("saw %d, slept through %d", tc.saw, tc.slept), func(t *testing.T) {
			s, err := Open(t.TempDir())
			require.NoError(t, err)
			path := objectPath(s.root, "k")
			write := func(n int) {
				for i := range n {
					_, err := s.Put(t.Context(), "k", fmt.Appendf(nil, "%d %d", n, i), objstore.Always())
					require.NoError(t, err)
				}
			}
			var numbers []uint64
			for _, n := range []int{tc.saw, 1} {
				write(n)
				top, err := checkNewest(path, objstore.Always())
				require.NoError(t, err)
				numbers = append(numbers, top+1)
			}
			temp, _, err := s.writeTemp(bytes.NewReader([]byte("zombie")), 6)
			require.NoError(t, err)
			write(tc.slept)
			before, _, err := newest(path)
			require.NoError(t, err)
			defer before.Close()

			for _, number := range numbers {
				require.NoError(t, s.link(path, temp, number), "the number is free again")
				require.ErrorIs(t, notOvertaken(path, number), errOvertaken)
			}
			after, _, err := newest(path)
			require.NoError(t, err)
			defer after.Close()
			require.Equal(t, before.number, after.number, "and what was written is not the newest")
		})
	}
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
