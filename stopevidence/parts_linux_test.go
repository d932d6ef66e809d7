package stopevidence

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// made is a directory with these files, open as the kernel's is. A name that ends
// in a slash is a directory.
func made(t *testing.T, files map[string]string) int {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if name[len(name)-1] == '/' {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestADirectoryThatIsNoProcIsRefused(t *testing.T) {
	require.ErrorContains(t, checkProc(made(t, map[string]string{"self/status": ""})), "file system type")
}

func TestMoreDescriptorsThanAHostHasAreRefused(t *testing.T) {
	s := Subject{Cgroup: "/sys/fs/cgroup/x", Database: "/data/app.db", Known: make([]Descriptor, maxKnown+1)}
	require.ErrorContains(t, checkSubject(s, nil), "expected at most")
	s.Known = s.Known[:maxKnown]
	require.NoError(t, checkSubject(s, nil))
	require.ErrorContains(t, checkSubject(s, make([]Descriptor, maxKnown+1)), "expected at most")
}

func TestAStatThatIsCutShortIsAnError(t *testing.T) {
	for _, body := range []string{"", "7 (app) S 1 7", strings.Repeat("7 ", 30), ") (" + strings.Repeat(" 7", 30)} {
		_, err := readStat(made(t, map[string]string{"stat": body}), "stat")
		require.Error(t, err, "%q", body)
	}
}

func TestNumbersThatCannotBeReadAreAnError(t *testing.T) {
	whole := map[string]string{"loadavg": "0.00 0.00 0.00 1/100 4711\n", "sys/kernel/pid_max": "32768\n", "stat": "cpu 1 2\nprocesses 90000\nprocs_running 1\n"}
	n, err := readNumbers(made(t, whole))
	require.NoError(t, err)
	require.Equal(t, numbers{last: 4711, given: 90_000, free: 32_768 - 300 - 100}, n)
	for name, cut := range map[string]string{"loadavg": "0.00 0.00 0.00 1/100", "sys/kernel/pid_max": "many", "stat": "cpu 1 2\nprocs_running 1\n"} {
		files := maps.Clone(whole)
		files[name] = cut
		_, err := readNumbers(made(t, files))
		require.ErrorContains(t, err, name)
		delete(files, name)
		_, err = readNumbers(made(t, files))
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	for name, load := range map[string]string{"no last": "0 0 0 1/100 x", "no tasks": "0 0 0 100 4711"} {
		files := maps.Clone(whole)
		files["loadavg"] = load
		_, err := readNumbers(made(t, files))
		require.Error(t, err, name)
	}
	whole["sys/kernel/pid_max"] = "301"
	n, err = readNumbers(made(t, whole))
	require.NoError(t, err)
	require.Zero(t, n.free, "every pass may start over")
}

// TestNumbersThatStartedOverAreSeen though they came past the one that was last.
func TestNumbersThatStartedOverAreSeen(t *testing.T) {
	then := numbers{last: 700, given: 5000, free: 1000}
	require.False(t, then.startedOver(then))
	require.False(t, numbers{last: 800, given: 5499}.startedOver(then))
	require.True(t, numbers{last: 699, given: 5002}.startedOver(then))
	require.True(t, numbers{last: 701, given: 6001}.startedOver(then), "a whole turn")
	require.True(t, numbers{last: 701, given: 5500}.startedOver(then))
	require.True(t, then.startedOver(numbers{last: 700, given: 5000}), "none is free")
}

func TestATaskThatIsNotThereIsNotTheSame(t *testing.T) {
	_, err := same(kcmpFiles, os.Getpid(), 1<<22+1, 0)
	require.ErrorIs(t, err, unix.ESRCH)
}

func TestADirectoryThatIsNotThereIsNotEmpty(t *testing.T) {
	err := newList().each(made(t, nil), "task", func(int, string) error { return nil })
	require.ErrorIs(t, err, unix.ENOENT)
}

func TestALinkThatLeadsNowhereIsClosed(t *testing.T) {
	dir := made(t, nil)
	require.NoError(t, unix.Symlinkat("/data/app.db (deleted)", dir, "7"))
	l := newLooker(newScan(-1, Subject{Database: "/data/app.db"}, nil))
	l.deleted["/data/app.db (deleted)"] = true
	_, _, ours, err := l.match(dir, "7")
	require.ErrorIs(t, err, unix.ENOENT)
	require.False(t, ours)
}

// TestWhatCannotBeReadOfAProcessIsAnError, each part of it alone.
func TestWhatCannotBeReadOfAProcessIsAnError(t *testing.T) {
	whole := map[string]string{"7/fd/": "", "7/maps": "", "7/task/": ""}
	look := func(change map[string]string, without ...string) error {
		files := map[string]string{}
		for name, body := range whole {
			files[name] = body
		}
		for _, name := range without {
			delete(files, name)
		}
		for name, body := range change {
			files[name] = body
		}
		return newLooker(newScan(made(t, files), Subject{Database: "/data/app.db"}, nil)).process(7)
	}
	require.NoError(t, look(nil))
	require.ErrorIs(t, look(map[string]string{"7/fd": "no directory"}, "7/fd/"), unix.ENOTDIR)
	require.ErrorIs(t, look(map[string]string{"7/maps/": ""}, "7/maps"), unix.EISDIR)
	require.ErrorContains(t, look(map[string]string{"7/task/x": ""}), "task x")
}

// TestAHolderThatCannotBeNamedIsAnError, by its descriptor and by its mapping.
func TestAHolderThatCannotBeNamedIsAnError(t *testing.T) {
	database := filepath.Join(t.TempDir(), "app.db")
	require.NoError(t, os.WriteFile(database, nil, 0o600))
	f, _, err := statPath(database)
	require.NoError(t, err)
	maps := fmt.Sprintf("1000-2000 r--s 00000000 fe:00 %d %s\n", f.ino, database)
	for link, files := range map[string]map[string]string{
		"7/fd/3":                {"7/fd/": "", "7/maps": "", "7/task/": "", "7/stat/": ""},
		"7/map_files/1000-2000": {"7/fd/": "", "7/maps": maps, "7/map_files/": "", "7/task/": "", "7/stat/": ""},
	} {
		proc := made(t, files)
		require.NoError(t, unix.Symlinkat(database, proc, link))
		s := newScan(proc, Subject{Database: database}, nil)
		require.NoError(t, s.locate())
		require.ErrorIs(t, newLooker(s).process(7), unix.EISDIR, link)
	}
}

// TestTheTableOfAThreadThatCannotBeReadIsAnError: another process stands for a
// thread with a table of its own.
func TestTheTableOfAThreadThatCannotBeReadIsAnError(t *testing.T) {
	other := exec.Command("sleep", "60")
	require.NoError(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	me := strconv.Itoa(os.Getpid()) + "/"
	proc := made(t, map[string]string{me + "fd/": "", me + "maps": "", me + "task/" + strconv.Itoa(other.Process.Pid) + "/fd": "no directory"})
	err := newLooker(newScan(proc, Subject{Database: "/data/app.db"}, nil)).process(os.Getpid())
	require.ErrorIs(t, err, unix.ENOTDIR)
}

func TestMoreCgroupsThanAHostHasAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".", "a", "a/b"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "cgroup.procs"), []byte("7\n"), 0o600))
	}
	var c cgroup
	require.NoError(t, c.walk(t.Context(), dir, 3))
	require.Equal(t, cgroup{members: 3, groups: 3}, c)
	require.ErrorContains(t, new(cgroup).walk(t.Context(), dir, 2), "more than 2 cgroups")
}

func TestASubjectWhosePlaceCannotBeReadIsAnError(t *testing.T) {
	s := newScan(made(t, nil), Subject{Database: "/dev/null/app.db"}, nil)
	_, err := s.pass(t.Context())
	require.ErrorIs(t, err, unix.ENOTDIR)
}
