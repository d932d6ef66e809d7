package dirstore

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOnDisk(t *testing.T) {
	long := strings.Repeat("x", 250)
	for key, path := range map[string]string{
		"control/hosts/shop.example.json": "control/hosts/shop.example.json",
		"a":                               "a",
		"az/09/-_.":                       "az/09/-_.",
		"`{/:@[/+,":                       "%60%7B/%3A%40%5B/%2B%2C",
		"a/":                              "a/%",
		"/a":                              "%/a",
		"":                                "%",
		"..":                              "%2E.",
		"a/../b":                          "a/%2E./b",
		".tmp/x":                          "%2Etmp/x",
		"A@1":                             "%41%401",
		"%41":                             "%2541",
		"é+":                              "%C3%A9%2B",
		"a\\b:c":                          "a%5Cb%3Ac",
		long:                              long[:200] + "+/" + long[200:],
		long[:200]:                        long[:200] + "+/%",
		long[:199]:                        long[:199],
		long[:200] + "..":                 long[:200] + "+/%2E.",
	} {
		require.Equal(t, filepath.Join("/r", filepath.FromSlash(path)), objectPath("/r", key), "%q", key)
	}
}

func TestForeignNames(t *testing.T) {
	for _, name := range []string{"", ".tmp", ".", "..", ".DS_Store", "A", "README", "a b", "%4", "%zz", "%41b%2e", "%61", "a+", "a@2", "a@1@1", "@1", "@", "lost+found", strings.Repeat("x", 201), strings.Repeat("x", 200)} {
		k, _ := parseName(name)
		require.Equal(t, foreign, k, "%q", name)
	}
}

// FuzzNames: no two keys have one path, no key leaves the root, and each name
// on the way is read as what it stands for.
func FuzzNames(f *testing.F) {
	for _, key := range []string{"a/b", "..", "", "//", "A", "%", "a+", "é", ".", "a@1", strings.Repeat("é", 300), strings.Repeat("x", 200) + "/" + strings.Repeat(".", 600)} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		path := objectPath("/r", key) + firstMark
		rel, err := filepath.Rel("/r", path)
		require.NoError(t, err)
		var read strings.Builder
		names := strings.Split(filepath.ToSlash(rel), "/")
		for i, name := range names {
			require.LessOrEqual(t, len(name), 255)
			k, raw := parseName(name)
			read.WriteString(raw)
			switch {
			case i == len(names)-1:
				require.Equal(t, first, k)
			case k == inner:
				read.WriteByte('/')
			default:
				require.Equal(t, part, k)
			}
		}
		require.Equal(t, key, read.String())
	})
}

// FuzzParseName: what is not foreign is the only name for what it stands for.
func FuzzParseName(f *testing.F) {
	for _, name := range []string{"a", "a@1", "a@", "a+", "%", "%@1", "%41", ".tmp", strings.Repeat("x", 200) + "+"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		k, raw := parseName(name)
		if k == foreign {
			return
		}
		parts := split(raw)
		base := parts[0]
		if base == "" {
			base = emptyName
		}
		require.Equal(t, name, base+map[kind]string{inner: "", first: firstMark, versions: versionsMark, part: partMark}[k])
	})
}
