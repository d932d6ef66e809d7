// Package recordtest holds a record type to its golden file and fuzzes its
// decoder.
package recordtest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
)

var update = flag.Bool("update-golden", false, "rewrite the golden records in testdata")

// Golden checks that v encodes to testdata/<name>.json and that those bytes
// decode to v again. What is stored must be readable for ever, so a difference
// is a change of format. go test -update-golden writes the file.
func Golden[T any](t *testing.T, name string, v T) {
	t.Helper()
	path := filepath.Join("testdata", name+".json")
	got, err := record.Encode(v)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test -update-golden once for a new record type")
	require.Equal(t, string(want), string(got))
	back, err := record.Decode[T](want)
	require.NoError(t, err)
	require.Equal(t, v, back)
}

// Fuzz feeds the decoder of T, seeded with the golden files of its package: any
// byte string is an error or a value that encodes to the same bytes.
func Fuzz[T any](f *testing.F, seeds ...T) {
	for _, v := range seeds {
		b, err := record.Encode(v)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"v":1,"v":1}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := record.Decode[T](b)
		if err != nil {
			return
		}
		again, err := record.Encode(v)
		require.NoError(t, err)
		require.True(t, bytes.Equal(b, again))
	})
}
