package dirstore

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
)

func TestOnlyTheIDThatAWriteReturnedNamesItsVersion(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	one, err := s.Put(t.Context(), "k", []byte("one"), objstore.IfAbsent())
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "k", []byte("two"), objstore.IfMatch(one.ETag))
	require.NoError(t, err)
	path := objectPath(s.root, "k")
	object, err := os.ReadFile(numberPath(path, 1))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(numberPath(path, 0), object, 0o600)) // foreign: there is no version 0

	_, nonce, _ := strings.Cut(one.VersionID, "-")
	for _, id := range []string{"", "-", "1", "1-", "01-" + nonce, "+1-" + nonce, "0-" + nonce, "2-" + nonce, "x-" + nonce,
		"18446744073709551616-" + nonce, one.VersionID + " "} {
		_, _, err := s.GetVersion(t.Context(), "k", id)
		require.ErrorIs(t, err, objstore.ErrNotFound, "%q", id)
		require.NoError(t, s.DeleteVersion(t.Context(), "k", id), "%q", id)
	}
	r, _, err := s.GetVersion(t.Context(), "k", one.VersionID)
	require.NoError(t, err)
	require.NoError(t, r.Close())
}

func TestAVersionThatCannotBeRemovedIsAnError(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	path := objectPath(s.root, "k")
	require.NoError(t, os.MkdirAll(filepath.Join(numberPath(path, 1), "full"), 0o750))
	require.Error(t, s.deleteNumber(path, 1))
}

// A body is read in steps of any size, and one that is cut meanwhile never ends
// like a whole one.
func TestABodyThatIsCutWhileItIsReadIsAnError(t *testing.T) {
	for _, cut := range []int64{10, 7, 3} {
		t.Run(fmt.Sprintf("cut to %d", cut), func(t *testing.T) {
			s, err := Open(t.TempDir())
			require.NoError(t, err)
			_, err = s.Put(t.Context(), "k", []byte("0123456789"), objstore.IfAbsent())
			require.NoError(t, err)
			r, _, err := s.GetReader(t.Context(), "k", "", 0)
			require.NoError(t, err)
			defer r.Close()
			step := make([]byte, 3)
			_, err = io.ReadFull(r, step)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(numberPath(objectPath(s.root, "k"), 1), headSize+cut))
			read := 3
			for err == nil {
				var n int
				n, err = r.Read(step)
				read += n
			}
			require.EqualValues(t, cut, read)
			if cut == 10 {
				require.Equal(t, io.EOF, err)
				return
			}
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		})
	}
}
