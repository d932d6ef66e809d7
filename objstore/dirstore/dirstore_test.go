package dirstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/dirstore"
	"github.com/carlosframework/regionha/objstore/storetest"
)

func open(t *testing.T, dir string) *dirstore.Store {
	t.Helper()
	s, err := dirstore.Open(dir)
	require.NoError(t, err)
	return s
}

func put(t *testing.T, s *dirstore.Store, key, body string, cond objstore.Condition) objstore.Info {
	t.Helper()
	info, err := s.Put(t.Context(), key, []byte(body), cond)
	require.NoError(t, err)
	return info
}

func list(t *testing.T, s *dirstore.Store, prefix string) []string {
	t.Helper()
	var keys []string
	for info, err := range s.List(t.Context(), prefix) {
		require.NoError(t, err)
		keys = append(keys, info.Key)
	}
	return keys
}

func versions(t *testing.T, s *dirstore.Store, key string) []objstore.Info {
	t.Helper()
	var infos []objstore.Info
	for info, err := range s.ListVersions(t.Context(), key) {
		require.NoError(t, err)
		infos = append(infos, info)
	}
	return infos
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) objstore.Store { return open(t, t.TempDir()) })
}

func TestTwoOpenStoresAreOne(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	one := put(t, a, "k", "one", objstore.IfAbsent())
	o, err := b.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, one, o.Info)
	put(t, b, "k", "two", objstore.IfMatch(one.ETag))
	_, err = a.Put(t.Context(), "k", []byte("three"), objstore.IfMatch(one.ETag))
	require.ErrorIs(t, err, objstore.ErrConflict)
}

func TestWhatIsStoredOutlivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	before := time.Now()
	one := put(t, open(t, dir), "a/b.json", "one", objstore.IfAbsent())
	require.WithinRange(t, one.ModTime, before.Add(-time.Second), time.Now().Add(time.Second))
	o, err := open(t, dir).Get(t.Context(), "a/b.json")
	require.NoError(t, err)
	require.Equal(t, one, o.Info, "the time and the version id are kept")
	require.FileExists(t, filepath.Join(dir, "a", "b.json@1"))
}

func TestTheFirstAndTheNewest63VersionsStay(t *testing.T) {
	s := open(t, t.TempDir())
	var all []objstore.Info
	cond := objstore.IfAbsent()
	for i := range 100 {
		info := put(t, s, "k", fmt.Sprint(i), cond)
		all, cond = append(all, info), objstore.IfMatch(info.ETag)
	}
	want := append([]objstore.Info{all[0]}, all[100-63:]...)
	slices.Reverse(want)
	require.Equal(t, want, versions(t, s, "k"))
	require.Equal(t, []string{"k"}, list(t, s, ""))
}

func TestADeletedNewestVersionKeepsItsNumberTaken(t *testing.T) {
	s := open(t, t.TempDir())
	one := put(t, s, "k", "one", objstore.IfAbsent())
	two := put(t, s, "k", "two", objstore.IfMatch(one.ETag))
	require.NoError(t, s.DeleteVersion(t.Context(), "k", two.VersionID))
	three := put(t, s, "k", "three", objstore.IfMatch(one.ETag))
	require.True(t, strings.HasPrefix(three.VersionID, "3-"), three.VersionID)
	require.NoError(t, s.DeleteVersion(t.Context(), "k", one.VersionID))
	require.Equal(t, []objstore.Info{three}, versions(t, s, "k"))
	_, err := s.Put(t.Context(), "k", []byte("again"), objstore.IfAbsent())
	require.ErrorIs(t, err, objstore.ErrConflict)
}

func TestADeletedOnlyVersionLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	one := put(t, s, "a/k", "one", objstore.IfAbsent())
	require.NoError(t, s.DeleteVersion(t.Context(), "a/k", one.VersionID))
	require.NoFileExists(t, filepath.Join(dir, "a", "k@1"))
	require.Empty(t, list(t, s, ""))
	again := put(t, s, "a/k", "one", objstore.IfAbsent())
	require.NotEqual(t, one.VersionID, again.VersionID)
	_, _, err := s.GetVersion(t.Context(), "a/k", one.VersionID)
	require.ErrorIs(t, err, objstore.ErrNotFound)
}

func TestForeignFilesSurviveAndAreReported(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "control/a", "1", objstore.IfAbsent())
	two := put(t, s, "control/a", "2", objstore.Always())
	foreign := map[string]string{
		"README.md":                "read me",
		"control/Notes.txt":        "hello",
		"control/b.json":           "{}",
		"control/a@/notes":         "x",
		"control/a@/07":            "x",
		"control/a@/1":             "no later version has this number",
		"control/a@/0":             "x",
		"lost+found/x":             "x",
		"control/damaged@1":        "not an object",
		".hidden":                  "x",
		"control/elsewhere/x.json": "a plain file where only keys belong",
	}
	for name, body := range foreign {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(body), 0o644))
	}
	var reported []string
	for path, err := range s.Foreign(t.Context()) {
		require.NoError(t, err)
		reported = append(reported, filepath.ToSlash(path))
	}
	require.ElementsMatch(t, []string{"README.md", "control/Notes.txt", "control/b.json", "control/a@/notes", "control/a@/07", "control/a@/1", "control/a@/0", "lost+found", "control/damaged@1", ".hidden", "control/elsewhere/x.json"}, reported)

	put(t, s, "control/b.json", "{1}", objstore.IfAbsent())
	put(t, s, "control/a", "3", objstore.IfMatch(two.ETag))
	for name, body := range foreign {
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		require.NoError(t, err)
		require.Equal(t, body, string(b))
	}
}

// A copy of an object is as foreign as its name, and a listing is not disturbed
// by either.
func TestWhatIsForeignIsNeverListed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "control/a", "1", objstore.IfAbsent())
	put(t, s, "control/a", "2", objstore.Always())
	put(t, s, "2026/01/k", "1", objstore.IfAbsent())
	object, err := os.ReadFile(filepath.Join(dir, "control", "a@1"))
	require.NoError(t, err)
	foreign := []string{"control/Copy", "control/Copy@1", "control/a@/copy", "control/b.json"}
	for _, name := range foreign {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), object, 0o644))
	}
	require.Equal(t, []string{"2026/01/k", "control/a"}, list(t, s, ""))
	require.Len(t, versions(t, s, ""), 3)
	var reported []string
	for path, err := range s.Foreign(t.Context()) {
		require.NoError(t, err)
		reported = append(reported, filepath.ToSlash(path))
	}
	require.ElementsMatch(t, foreign, reported)
}

func TestADamagedObjectIsAnErrorAndNeverAbsent(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"cut off":     func(path string) error { return os.Truncate(path, 165) },
		"empty":       func(path string) error { return os.Truncate(path, 0) },
		"grown":       func(path string) error { return appendTo(path, "x") },
		"other bytes": func(path string) error { return overwrite(path, 162, "X") },
		"other head":  func(path string) error { return overwrite(path, 0, "X") },
		"a directory": func(path string) error { return replace(path, func() error { return os.Mkdir(path, 0o755) }) },
		"a link":      func(path string) error { return replace(path, func() error { return os.Symlink("/nowhere", path) }) },
		"a link to an object": func(path string) error {
			moved := filepath.Join(filepath.Dir(path), ".tmp", "moved")
			return errors.Join(os.Rename(path, moved), os.Symlink(moved, path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			info := put(t, s, "k", "0123456789", objstore.IfAbsent())
			require.NoError(t, damage(filepath.Join(dir, "k@1")))
			_, err := s.Get(t.Context(), "k")
			require.Error(t, err)
			require.NotErrorIs(t, err, objstore.ErrNotFound)
			if name == "other bytes" {
				return // only a read of the whole body can see it
			}
			_, err = s.Put(t.Context(), "k", []byte("new"), objstore.IfAbsent())
			require.ErrorIs(t, err, objstore.ErrUnknown)
			_, err = s.Put(t.Context(), "k", []byte("new"), objstore.IfMatch(info.ETag))
			require.ErrorIs(t, err, objstore.ErrUnknown)
			failed := false
			for _, err := range s.List(t.Context(), "") {
				failed = failed || err != nil
			}
			require.True(t, failed, "a listing that cannot read an object is not whole")
		})
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

func overwrite(path string, at int64, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte(text), at)
	return err
}

func replace(path string, with func() error) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return with()
}

func TestOpenRemovesOnlyStaleUnfinishedWrites(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	stale, fresh := filepath.Join(dir, ".tmp", "stale"), filepath.Join(dir, ".tmp", "fresh")
	for _, path := range []string{stale, fresh} {
		require.NoError(t, os.WriteFile(path, []byte("half"), 0o644))
	}
	old := time.Now().Add(-25 * time.Hour)
	require.NoError(t, os.Chtimes(stale, old, old))
	open(t, dir)
	require.NoFileExists(t, stale)
	require.FileExists(t, fresh)
}

func TestAFailedWriteLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := s.PutReader(t.Context(), "k", strings.NewReader("short"), 100, objstore.IfAbsent())
	require.ErrorIs(t, err, objstore.ErrUnknown)
	_, err = s.PutReader(t.Context(), "k", strings.NewReader("long"), 1, objstore.IfAbsent())
	require.ErrorIs(t, err, objstore.ErrUnknown)
	put(t, s, "k", "x", objstore.IfAbsent())
	_, err = s.Put(t.Context(), "k", []byte("y"), objstore.IfAbsent())
	require.ErrorIs(t, err, objstore.ErrConflict)
	left, err := os.ReadDir(filepath.Join(dir, ".tmp"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestOpenRefusesWhatIsNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err := dirstore.Open(file)
	require.ErrorContains(t, err, file)
}

func TestAStoreComesBackAfterItsDirectoriesWereRemoved(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "a/b/k", "1", objstore.IfAbsent())
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "a")))
	_, err := s.Put(t.Context(), "a/b/k", []byte("2"), objstore.IfAbsent())
	require.ErrorIs(t, err, objstore.ErrUnknown)
	put(t, s, "a/b/k", "2", objstore.IfAbsent())
}

func BenchmarkPut(b *testing.B) {
	s, err := dirstore.Open(b.TempDir())
	require.NoError(b, err)
	body := make([]byte, 1000)
	for i := 0; b.Loop(); i++ {
		_, err := s.Put(b.Context(), fmt.Sprintf("k/%d", i), body, objstore.IfAbsent())
		require.NoError(b, err)
	}
}

func BenchmarkReplace(b *testing.B) {
	s, err := dirstore.Open(b.TempDir())
	require.NoError(b, err)
	cond := objstore.IfAbsent()
	for i := 0; b.Loop(); i++ {
		info, err := s.Put(b.Context(), "k", fmt.Append(nil, i), cond)
		require.NoError(b, err)
		cond = objstore.IfMatch(info.ETag)
	}
}

func BenchmarkGet(b *testing.B) {
	s, err := dirstore.Open(b.TempDir())
	require.NoError(b, err)
	for range 3 {
		_, err = s.Put(b.Context(), "k", []byte("body"), objstore.Always())
		require.NoError(b, err)
	}
	for b.Loop() {
		_, err := s.Get(b.Context(), "k")
		require.NoError(b, err)
	}
}
