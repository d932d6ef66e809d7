package stopevidence_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

// live starts a process in a cgroup.
func live(t *testing.T, cgroup string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "infinity")
	enter(t, cgroup)(cmd)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return cmd
}

// write writes a file of a cgroup.
func write(t *testing.T, cgroup, name, value string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(cgroup, name), []byte(value), 0o644))
}

func TestWhatRunsInTheCgroupHasNotStopped(t *testing.T) {
	h := newHost(t)
	live(t, h.Cgroup)
	h.requireRuns(t, "populated 1, 1 processes in 1 cgroups")
}

func TestWhatRunsBelowTheCgroupHasNotStopped(t *testing.T) {
	h := newHost(t)
	below := filepath.Join(h.Cgroup, "below")
	require.NoError(t, os.Mkdir(below, 0o755))
	h.requireStopped(t)
	live(t, below)
	h.requireRuns(t, "populated 1, 1 processes in 2 cgroups")
}

func TestACgroupOfThreadsIsLookedAt(t *testing.T) {
	h := newHost(t)
	below := filepath.Join(h.Cgroup, "below")
	require.NoError(t, os.Mkdir(below, 0o755))
	write(t, below, "cgroup.type", "threaded")
	live(t, below)
	h.requireRuns(t, "populated 1, 2 processes in 2 cgroups")
}

func TestAFrozenProcessHasNotStopped(t *testing.T) {
	h := newHost(t)
	live(t, h.Cgroup)
	write(t, h.Cgroup, "cgroup.freeze", "1")
	h.requireRuns(t, "populated 1, 1 processes in 1 cgroups")

	other, outside := newHost(t), stoptest.Cgroup(t)
	other.play(t, "hold", enter(t, outside))
	write(t, outside, "cgroup.freeze", "1")
	other.requireHeld(t)
}

func TestTheKernelsTwoAnswersMustAgree(t *testing.T) {
	fake := func(t *testing.T, cgroup, name, content string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		over := filepath.Join(cgroup, name)
		require.NoError(t, unix.Mount(path, over, "", unix.MS_BIND, ""))
		t.Cleanup(func() { require.NoError(t, unix.Unmount(over, unix.MNT_DETACH)) })
	}
	t.Run("populated 0 with a process", func(t *testing.T) {
		h := newHost(t)
		live(t, h.Cgroup)
		fake(t, h.Cgroup, "cgroup.events", "populated 0\nfrozen 0\n")
		h.requireRuns(t, "populated 0, 1 processes in 1 cgroups")
	})
	t.Run("populated 1 without a process", func(t *testing.T) {
		h := newHost(t)
		live(t, h.Cgroup)
		fake(t, h.Cgroup, "cgroup.procs", "")
		h.requireRuns(t, "populated 1, 0 processes in 1 cgroups")
	})
	t.Run("no answer", func(t *testing.T) {
		h := newHost(t)
		fake(t, h.Cgroup, "cgroup.events", "frozen 0\n")
		h.requireIncomplete(t, "expected populated 0 or 1")
	})
}

func TestWhatEntersTheCgroupInMidScanHasNotStopped(t *testing.T) {
	h := newHost(t)
	ctx := &hooked{Context: t.Context()}
	ctx.do = func(n int64) {
		if n == 3 {
			live(t, h.Cgroup)
		}
	}
	_, err := collect(ctx, h)
	require.ErrorContains(t, err, "populated 1")
}

func TestACgroupThatIsGoneIsEmptyOnlyWhereItWas(t *testing.T) {
	h := newHost(t)
	root := h.Cgroup
	h.Cgroup = filepath.Join(root, "gone")
	h.requireStopped(t)
	h.Cgroup = filepath.Join(root, "gone", "gone")
	h.requireIncomplete(t, "no such file or directory")
	h.Cgroup = filepath.Join(t.TempDir(), "gone")
	h.requireIncomplete(t, "not in a cgroup v2 file system")
	h.Cgroup = t.TempDir()
	h.requireIncomplete(t, "not in a cgroup v2 file system")
}

func TestASubjectIsNamedInFull(t *testing.T) {
	for _, path := range []string{"", "relative", "/not/../clean", "/"} {
		h := newHost(t)
		h.Cgroup = path
		h.requireIncomplete(t, "")
		if path == "/" {
			continue
		}
		h = newHost(t)
		h.Database = path
		h.requireIncomplete(t, "Database")
	}
}
