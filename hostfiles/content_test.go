package hostfiles

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore/memstore"
)

func fileOf(t *testing.T, body []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, body, 0o600))
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

func TestContentIsReadAgainAsItWas(t *testing.T) {
	for _, size := range []int{0, 1, blockSize - 1, blockSize, blockSize + 1, 3*blockSize + 5} {
		body := bytes.Repeat([]byte("regionha"), size/8+1)[:size]
		for _, hint := range []int64{0, int64(size), int64(size) + 7, math.MaxInt64 - 1} {
			c, err := readContent(fileOf(t, body), hint)
			require.NoError(t, err)
			require.Equal(t, int64(size), c.size)
			require.Equal(t, digest(body), c.sum)
			for range 2 {
				_, err = c.Seek(0, io.SeekStart)
				require.NoError(t, err)
				again, err := io.ReadAll(c)
				require.NoError(t, err)
				require.True(t, bytes.Equal(body, again))
			}
			end, err := c.Seek(0, io.SeekEnd)
			require.NoError(t, err)
			require.Equal(t, int64(size), end)
			_, err = c.Seek(-1, io.SeekStart)
			require.Error(t, err)
		}
	}
}

func TestContentNeverYieldsOtherBytes(t *testing.T) {
	for name, change := range map[string]func(f *os.File) error{
		"written": func(f *os.File) error { _, err := f.WriteAt([]byte("x"), 5); return err },
		"cut":     func(f *os.File) error { return f.Truncate(blockSize / 2) },
	} {
		t.Run(name, func(t *testing.T) {
			file := fileOf(t, make([]byte, 2*blockSize+1))
			c, err := readContent(file, 2*blockSize+1)
			require.NoError(t, err)
			require.NoError(t, change(file))
			_, err = io.ReadAll(c)
			require.ErrorIs(t, err, errChanged)
			require.True(t, c.changed)
		})
	}
	t.Run("grown", func(t *testing.T) {
		file := fileOf(t, make([]byte, 2*blockSize+1))
		c, err := readContent(file, 2*blockSize+1)
		require.NoError(t, err)
		_, err = file.WriteAt([]byte("more"), 2*blockSize+1)
		require.NoError(t, err)
		again, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, make([]byte, 2*blockSize+1), again)
	})
}

func TestAFileThatRestedIsNotReadAgain(t *testing.T) {
	root, platform := t.TempDir(), t.TempDir()
	path := filepath.Join(root, "a")
	require.NoError(t, os.WriteFile(path, []byte("one"), 0o600))
	p, err := New(context.Background(), memstore.New(), Config{Root: root, Platform: platform, Target: goldenTarget})
	require.NoError(t, err)
	unread := func() bool {
		v, err := scanTree(p.root)
		require.NoError(t, err)
		_, done := p.unread(&v.found[1])
		return done
	}
	_, err = p.SyncDir(context.Background())
	require.NoError(t, err)
	require.False(t, unread(), "it changed too lately to be sure")

	f := &found{name: "files/a"}
	info, err := os.Stat(path)
	require.NoError(t, err)
	f.stat = statOf(info)
	e, _ := p.durable.get("files/a")
	p.read["files/a"] = reading{stat: f.stat, sum: e.SHA256} // as if it had rested
	require.True(t, unread())
	p.read["files/a"] = reading{stat: f.stat, sum: digest([]byte("other"))} // read, and not published
	require.False(t, unread())
	p.read["files/a"] = reading{stat: f.stat, sum: e.SHA256}
	require.NoError(t, os.Chtimes(path, time.Time{}, info.ModTime())) // a new ctime, on Linux
	require.False(t, unread())
}

func TestTimesStayInTheRangeOfTheSystem(t *testing.T) {
	for in, want := range map[time.Time]time.Time{
		time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC): time.Unix(0, math.MaxInt64).UTC(),
		time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC): time.Unix(0, math.MinInt64).UTC(),
		goldenTime: goldenTime,
	} {
		require.Equal(t, want, clampTime(in))
	}
	e := goldenFile("files/a", 1)
	e.MTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	require.ErrorContains(t, e.check(goldenTarget.Location), "mtime")
}

func TestKeysAreTakenApartOnlyAsTheyAreBuilt(t *testing.T) {
	sum := digest(nil)
	key := goldenTarget.objectKey(12, sum)
	generation, seq, got, err := parseObjectKey(goldenTarget.Location, key)
	require.NoError(t, err)
	require.Equal(t, []any{"g2", uint64(12), sum}, []any{generation, seq, got})
	prefix := goldenTarget.Location + "/files/g2/objects/"
	for _, bad := range []string{"", prefix, prefix + "12-", prefix + "012-" + sum, prefix + "+1-" + sum, prefix + "-" + sum,
		prefix + "1-" + sum + "/x", prefix + "1-" + sum[1:] + "G", goldenTarget.Location + "/files/.g/objects/1-" + sum,
		goldenTarget.Location + "/db/g2/objects/1-" + sum, goldenTarget.Location + "2/files/g2/objects/1-" + sum} {
		_, _, _, err := parseObjectKey(goldenTarget.Location, bad)
		require.Error(t, err, bad)
	}
	location, generation, err := parseManifestKey(goldenTarget.manifestKey())
	require.NoError(t, err)
	require.Equal(t, []string{goldenTarget.Location, "g2"}, []string{location, generation})
	for _, bad := range []string{"", "/manifest.json", "a/files/g", "a/files//manifest.json", "a/../b/files/g/manifest.json",
		"files/g/manifest.json", "a/files/g/h/manifest.json"} {
		_, _, err := parseManifestKey(bad)
		require.Error(t, err, bad)
	}
}

func TestADirectoryThatCannotBeReadHidesWhatIsInIt(t *testing.T) {
	st := &state{base: byName([]Entry{goldenFile("files/d/x", 1), goldenFile("files/dx", 1), goldenFile(EnvFile, 1)})}
	v := view{opaque: []string{"files/d"}}
	require.Equal(t, []string{"files/dx"}, v.missing(st))

	dir, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	require.NoError(t, dir.Mkdir("d", 0o755))
	other, err := os.Stat(t.TempDir())
	require.NoError(t, err)
	v = view{found: []found{{name: FilesRoot}, {name: "files/d"}}}
	v.descend(dir, 1, other) // another directory took its place
	require.Equal(t, []string{"files/d"}, v.opaque)
	require.Equal(t, skipUnreadable, v.found[1].skipped)

	root, platform := t.TempDir(), t.TempDir()
	closed := filepath.Join(root, "d")
	require.NoError(t, os.MkdirAll(filepath.Join(closed, "e"), 0o755))
	p, err := New(context.Background(), memstore.New(), Config{Root: root, Platform: platform, Target: goldenTarget})
	require.NoError(t, err)
	_, err = p.SyncDir(context.Background())
	require.NoError(t, err)
	for _, mode := range []os.FileMode{0, 0o444} { // not listed; listed, and what is in it not seen
		require.NoError(t, os.Chmod(closed, mode))
		if _, err := os.Stat(filepath.Join(closed, "e")); err == nil {
			t.Skip("root may read every directory")
		}
		_, err = p.SyncDir(context.Background())
		require.NoError(t, os.Chmod(closed, 0o755))
		require.NoError(t, err)
		_, kept := p.durable.get("files/d/e")
		require.True(t, kept)
		d, _ := p.durable.get("files/d")
		require.Equal(t, skipUnreadable, d.Skipped)
	}
}

func TestAMissingPathIsLookedForAgain(t *testing.T) {
	st := &state{base: byName([]Entry{goldenFile("files/d/x", 1)})}
	scans := []view{{}, {found: []found{{name: "files/d/x"}}}}
	next := func() (view, error) {
		v := scans[0]
		scans = scans[1:]
		return v, nil
	}
	v, err := scanTwice(st, next)
	require.NoError(t, err)
	require.Empty(t, v.missing(st))
	scans = []view{v}
	_, err = scanTwice(st, next)
	require.NoError(t, err, "once is enough where nothing is missing")
}

func TestWhatTookAFilesPlaceIsNotRead(t *testing.T) {
	root, platform := t.TempDir(), t.TempDir()
	p, err := New(context.Background(), memstore.New(), Config{Root: root, Platform: platform, Target: goldenTarget})
	require.NoError(t, err)
	none := func() map[string]string { return nil }
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "a"), 0o600)) // an open for reading would wait for a writer
	r, err := p.examineFile(context.Background(), &found{name: "files/a", kind: KindFile}, none)
	require.NoError(t, err)
	require.Equal(t, skipUnreadable, r.entry.Skipped)

	item := filepath.Join(platform, "env")
	require.NoError(t, os.WriteFile(item, []byte("A=1"), 0o600))
	_, err = p.SyncDir(context.Background())
	require.NoError(t, err)
	v, err := p.scanItems()
	require.NoError(t, err)
	require.NoError(t, os.Remove(item))
	p.read = map[string]reading{}
	_, gone, err := p.compare(context.Background(), v)
	require.NoError(t, err)
	require.Empty(t, gone, "a platform item is never deleted")
}

func TestADeviceIsNotOpenedAsAFile(t *testing.T) {
	dev, err := os.OpenRoot("/dev")
	if err != nil {
		t.Skip("no /dev")
	}
	_, _, err = (&Publisher{root: dev}).openFile("files/null")
	require.ErrorIs(t, err, errChanged)
}

func TestAFileOfAnotherSizeThanItSaysDoesNotHoldStill(t *testing.T) {
	proc, err := os.OpenRoot("/proc/self")
	if err != nil {
		t.Skip("no /proc")
	}
	p := &Publisher{root: proc, durable: &state{}} // a file of size 0 with content
	_, err = p.tryFile(context.Background(), &found{name: "files/status", kind: KindFile}, nil)
	require.ErrorIs(t, err, errChanged)
}
