package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]size{"200MB": 200 << 20, "1gb": 1 << 30, "4KB": 4096, "7B": 7, "12": 12, "0": 0} {
		var s size
		require.NoError(t, s.Set(text), text)
		require.Equal(t, want, s)
	}
	for _, text := range []string{"", "MB", "-1", "1.5GB", "2TB", "99999999999999GB"} {
		var s size
		require.Error(t, s.Set(text), text)
	}
	s := size(200 << 20)
	require.Equal(t, "200MB", s.String())
}

func TestAStoreIsThisRunsOwn(t *testing.T) {
	control, data, err := storeURLs("", "/tmp/regionha-quickstart-1")
	require.NoError(t, err)
	require.Equal(t, "dir:///tmp/regionha-quickstart-1/control", control)
	require.Equal(t, "dir:///tmp/regionha-quickstart-1/data-ie", data)

	control, data, err = storeURLs("s3://bucket/a/?endpoint=http://127.0.0.1:7070", "/tmp/regionha-quickstart-1")
	require.NoError(t, err)
	require.Equal(t, "s3://bucket/a/regionha-quickstart-1/control?endpoint=http://127.0.0.1:7070", control)
	require.Equal(t, "s3://bucket/a/regionha-quickstart-1/data-ie?endpoint=http://127.0.0.1:7070", data)
	require.Equal(t, "s3", storeKind(control))
}

func TestABadCommandLineIsTwo(t *testing.T) {
	for _, args := range [][]string{{"-nothing"}, {"x"}, {"-db-size", "big"}, {"-drains", "-1"}, {"-boxes", "1"}, {"-hosts", "0"}, {"-hosts", "1000"}} {
		var stderr bytes.Buffer
		require.Equal(t, 2, run(t.Context(), args, &stderr, &stderr))
		require.NotEmpty(t, stderr.String())
	}
	require.Equal(t, 0, run(t.Context(), []string{"-help"}, &bytes.Buffer{}, &bytes.Buffer{}))
}

func TestTheTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.Contains(t, tail(path, 3), "no such file")
	require.NoError(t, os.WriteFile(path, []byte("1\n2\n3\n4\n"), 0o600))
	require.Equal(t, "2\n3\n4\n", tail(path, 3))
	require.Equal(t, 4, strings.Count(tail(path, 9), "\n"))
}
