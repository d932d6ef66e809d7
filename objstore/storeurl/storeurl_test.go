package storeurl_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/dirstore"
	"github.com/carlosframework/regionha/objstore/s3store"
	"github.com/carlosframework/regionha/objstore/storeurl"
)

func TestOpenDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b")
	s, err := storeurl.Open(t.Context(), "dir://"+filepath.ToSlash(dir))
	require.NoError(t, err)
	require.IsType(t, &dirstore.Store{}, s)
	_, err = s.Put(t.Context(), "k", []byte("x"), objstore.IfAbsent())
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "k@1"))
}

func TestOpenS3AsksNothing(t *testing.T) {
	s, err := storeurl.Open(t.Context(), "s3://bucket/prefix?region=eu-west-1&endpoint=http://127.0.0.1:1&path-style=true")
	require.NoError(t, err)
	require.IsType(t, &s3store.Store{}, s)
}

func TestOpenS3WithoutARegion(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	_, err := storeurl.Open(t.Context(), "s3://bucket")
	require.ErrorContains(t, err, "no region is set")
	_, err = storeurl.Open(t.Context(), "s3://bucket?endpoint=http://127.0.0.1:1")
	require.NoError(t, err)
}

func TestName(t *testing.T) {
	for raw, name := range map[string]string{
		"dir:///var/lib/regionha":                     "dir:///var/lib/regionha",
		"dir:///var/../var/lib//x/":                   "dir:///var/lib/x",
		"s3://bucket":                                 "s3://bucket",
		"s3://bucket/":                                "s3://bucket",
		"s3://bucket/a/b/":                            "s3://bucket/a/b",
		"s3://bucket/p?region=eu-west-1":              "s3://bucket/p",
		"s3://bucket?endpoint=https://s3.example:443": "s3://bucket",
	} {
		got, err := storeurl.Name(raw)
		require.NoError(t, err, raw)
		require.Equal(t, name, got)
	}
}

func TestURLsThatAreRefused(t *testing.T) {
	for raw, says := range map[string]string{
		"":                                 `scheme ""`,
		"/var/lib/regionha":                `scheme ""`,
		"bucket":                           `scheme ""`,
		"S4://bucket":                      `scheme "s4"`,
		"mem://":                           `scheme "mem"`,
		"dir://var/lib/regionha":           "must be absolute",
		"dir:var/lib":                      "expected dir://",
		"dir://":                           "no path",
		"dir:///x?sync=off":                "no parameters",
		"dir:///x?":                        "no parameters",
		"dir:///x#y":                       "fragment",
		"dir:///x#":                        "fragment",
		"s3://":                            "bucket",
		"s3://Bucket":                      "bucket",
		"s3://bu_cket":                     "bucket",
		"s3://bucket:80/x":                 "bucket",
		"s3://bucket?regoin=eu-west-1":     "parameter regoin",
		"s3://bucket?region":               "parameter region",
		"s3://bucket?region=a&region=b":    "parameter region",
		"s3://bucket?path-style=yes":       "parameter path-style",
		"s3://bucket?endpoint=127.0.0.1:7": "parameter endpoint",
		"s3://bucket?endpoint=ftp://x":     "parameter endpoint",
		"s3://bucket?a=%zz":                "parameters",
		"s3://bucket/%00":                  "prefix",
		"s3://bucket/\x7f":                 "not a URL",
		"s3://%zz":                         "not a URL",
	} {
		_, err := storeurl.Name(raw)
		require.ErrorContains(t, err, says, raw)
		_, err = storeurl.Open(t.Context(), raw)
		require.ErrorContains(t, err, says, raw)
	}
}

func TestCredentialsAreRefusedAndNotShown(t *testing.T) {
	for _, raw := range []string{"s3://key:hush@bucket", "s3://key:hush@bucket/%zz", "s3://bucket?endpoint=http://key:hush@host"} {
		_, err := storeurl.Open(t.Context(), raw)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hush")
	}
}

// FuzzName: a name is the name of itself, and holds no parameters.
func FuzzName(f *testing.F) {
	for _, raw := range []string{"dir:///a/b", "dir:///a%20b", "s3://bucket/prefix?region=r", "s3://bucket/a%2Fb", "s3://bucket/é?endpoint=http://h:1&path-style=true", "s3://a:b@bucket"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		name, err := storeurl.Name(raw)
		if err != nil {
			return
		}
		again, err := storeurl.Name(name)
		require.NoError(t, err, name)
		require.Equal(t, name, again)
		require.False(t, strings.Contains(name, "endpoint="))
	})
}
