package dirstore

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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

// TestAWriterIsOvertakenFromTheMomentItsNumberMayBeFree: the number is free as
// soon as the writer of the version keep above it has pruned, before that
// version is linked.
func TestAWriterIsOvertakenFromTheMomentItsNumberMayBeFree(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	path := objectPath(s.root, "k")
	const number = 2
	for i := range number + keep - 2 {
		_, err := s.Put(t.Context(), "k", fmt.Append(nil, i), objstore.Always())
		require.NoError(t, err)
	}
	require.NoError(t, notOvertaken(path, number), "nobody prunes it before one version more is there")
	_, err = s.Put(t.Context(), "k", []byte("one more"), objstore.Always())
	require.NoError(t, err)
	require.NoError(t, prune(path, number+keep))
	temp, _, err := s.writeTemp(bytes.NewReader([]byte("zombie")), 6)
	require.NoError(t, err)
	require.NoError(t, s.link(path, temp, number), "the number is free again")
	require.ErrorIs(t, notOvertaken(path, number), errOvertaken)
}

func TestAWriterWhoseVersionWasDeletedAtOnceIsNotOvertaken(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, notOvertaken(objectPath(s.root, "k"), 1))
}

// TestPruningRemovesAllThatIsTooOld, also what pruners that died have left.
func TestPruningRemovesAllThatIsTooOld(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	path := objectPath(s.root, "k")
	for i := range 10 {
		_, err := s.Put(t.Context(), "k", fmt.Append(nil, i), objstore.Always())
		require.NoError(t, err)
	}
	require.NoError(t, prune(path, 6+keep))
	list, err := numbers(path)
	require.NoError(t, err)
	require.Equal(t, []uint64{10, 9, 8, 7, 1}, list)

	stuck := numberPath(path, 7)
	require.NoError(t, os.Remove(stuck))
	require.NoError(t, os.MkdirAll(filepath.Join(stuck, "x"), 0o750))
	require.Error(t, prune(path, 7+keep), "what cannot be removed is an error")
}

// TestAReadOfAVersionThatVanishesLooksAgain reads while the only version comes
// and goes, as a deletion and a new creation make it.
func TestAReadOfAVersionThatVanishesLooksAgain(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	path := objectPath(s.root, "k")
	temp, _, err := s.writeTemp(bytes.NewReader([]byte("body")), 4)
	require.NoError(t, err)
	done, flickered := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(flickered)
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := os.Link(temp, numberPath(path, 1)); err != nil {
				flickered <- err
				return
			}
			if err := os.Remove(numberPath(path, 1)); err != nil {
				flickered <- err
				return
			}
		}
	}()
	defer func() {
		close(done)
		require.NoError(t, <-flickered)
	}()
	for range 5000 {
		v, _, err := newest(path)
		if err == nil {
			v.Close()
			continue
		}
		require.ErrorIs(t, err, objstore.ErrNotFound)
	}
}
