package stoptest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Cgroup makes a cgroup v2 of the test's own, and kills what is in it and removes
// it when the test ends. Without root or without cgroup v2 the test is skipped.
func Cgroup(tb testing.TB) string {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("not root")
	}
	dir, err := os.MkdirTemp(mount(tb), "stoptest-") // a number says nothing: every test binary may be number 1
	require.NoError(tb, err)
	require.NoError(tb, os.Chmod(dir, 0o755))
	tb.Cleanup(func() { remove(tb, dir) })
	return dir
}

// mount is where cgroup v2 is: alone, or beside version 1 under another name.
func mount(tb testing.TB) string {
	tb.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(tb, err)
	for line := range strings.Lines(string(b)) {
		at, source, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(at); len(fields) > 4 && strings.HasPrefix(source, "cgroup2 ") {
			return fields[4]
		}
	}
	tb.Skip("no cgroup v2 is mounted")
	return ""
}

// remove ends what runs in a cgroup and below, and removes it. What was killed
// leaves a moment later, and nothing says when.
func remove(tb testing.TB, dir string) {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		tb.Errorf("kill %s: %v", dir, err)
	}
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		below, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
		for _, procs := range below {
			_ = os.Remove(filepath.Dir(procs)) // the one above says whether it worked
		}
		if err = os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	tb.Errorf("remove: %v", err)
}
