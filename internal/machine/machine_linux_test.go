package machine

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const patience = 60 * time.Second

func testCgroups(t *testing.T) Cgroups {
	c, err := OpenCgroups("", "regionha-test-"+strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		t.Skip("this machine lets the test make no cgroup v2: ", err)
	}
	t.Cleanup(func() { require.NoError(t, os.Remove(c.Parent()), "the runs' own cgroups are gone") })
	return c
}

func shell(t *testing.T, script string) Spec {
	return Spec{Host: "notes.example", Command: []string{"/bin/sh", "-c", script}, Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func end(t *testing.T, p Process) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	status, err := p.End(ctx)
	require.NoError(t, err)
	return status
}

func TestARunEndsWholeAndSaysHow(t *testing.T) {
	c := testCgroups(t)
	p, err := c.Spawn(t.Context(), shell(t, "setsid sleep 1000 & exit 4"))
	require.NoError(t, err)
	<-p.Exited()
	empty, err := p.Empty()
	require.NoError(t, err)
	require.False(t, empty, "the sleep left the group, but not the cgroup")
	require.Equal(t, "exit status 4", end(t, p))
	require.Equal(t, "exit status 4", end(t, p), "asked again, it is the same")
	require.NoError(t, p.Terminate(), "which is nobody's any more")
	require.NoDirExists(t, c.Cgroup("notes.example"))
}

func TestTerminateReachesTheGroup(t *testing.T) {
	p, err := Groups{}.Spawn(t.Context(), shell(t, "sleep 1000"))
	require.NoError(t, err)
	require.NoError(t, p.Terminate())
	<-p.Exited()
	require.Equal(t, "signal: terminated", end(t, p))
}

func TestSpawnEndsWhatAnEarlierRunLeft(t *testing.T) {
	c := testCgroups(t)
	first, err := c.Spawn(t.Context(), shell(t, "sleep 1000"))
	require.NoError(t, err)
	second, err := c.Spawn(t.Context(), shell(t, "sleep 1000"))
	require.NoError(t, err)
	<-first.Exited()
	_, err = os.Stat(procPath(second.PID(), "stat"))
	require.NoError(t, err)
	require.NoError(t, c.End(t.Context(), "notes.example"))
	require.Equal(t, "signal: killed", end(t, second))
	end(t, first)
}

func TestARunIsWhoItWasToldToBeAndHasNoOtherGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs as another")
	}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	s := shell(t, "id -u; id -G")
	s.Dir, s.Output, s.As = "/", write, &Owner{UID: 65534, GID: 65533}
	p, err := testCgroups(t).Spawn(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, write.Close())
	out := make([]byte, 100)
	<-p.Exited()
	require.Equal(t, "exit status 0", end(t, p))
	n, err := read.Read(out)
	require.NoError(t, err)
	require.Equal(t, "65534\n65533\n", string(out[:n]))
	require.NoError(t, read.Close())
}

func TestACommandThatDoesNotStartLeavesNoCgroup(t *testing.T) {
	c := testCgroups(t)
	s := shell(t, "")
	s.Command = []string{"/no/such/program"}
	_, err := c.Spawn(t.Context(), s)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoDirExists(t, c.Cgroup(s.Host))
}

func TestAHostIsOneName(t *testing.T) {
	c := testCgroups(t)
	for _, host := range []string{"", ".", "..", "a/b", "../b", "a\x00b"} {
		s := shell(t, "")
		s.Host = host
		_, err := c.Spawn(t.Context(), s)
		require.ErrorContains(t, err, "want a DNS name", host)
		require.Error(t, c.End(t.Context(), host))
		_, err = c.Below(host)
		require.Error(t, err)
	}
}

func TestWithoutCgroupKillEachProcessIsKilled(t *testing.T) {
	c := testCgroups(t)
	p, err := c.Spawn(t.Context(), shell(t, "setsid sleep 1000 & sleep 1000"))
	require.NoError(t, err)
	require.NoError(t, killEach(c.Cgroup("notes.example")))
	<-p.Exited()
	require.Eventually(t, func() bool {
		require.NoError(t, killEach(c.Cgroup("notes.example")))
		empty, err := p.Empty()
		return err == nil && empty
	}, patience, time.Millisecond)
	end(t, p)
}

func TestADirectoryThatIsNoCgroupIsNeverEmpty(t *testing.T) {
	_, err := cgroupEmpty(t.TempDir())
	require.ErrorContains(t, err, "not in a cgroup v2")
	empty, err := cgroupEmpty(filepath.Join(t.TempDir(), "gone"))
	require.NoError(t, err)
	require.True(t, empty, "only an empty one can be removed")
}

func TestAGroupWithoutLeaderOrMarksIsNobodys(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "sleep 1000")
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	require.NoError(t, Tree{PID: cmd.Process.Pid, Start: 1}.End(t.Context()))
	require.NoError(t, cmd.Process.Signal(unix.Signal(0)), "it lives")
}

func TestStatIsReadWhateverTheProcessIsCalled(t *testing.T) {
	s, err := parseStat("77 (a) b) (c) Z 1 70 60 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 987654 0 0")
	require.NoError(t, err)
	require.Equal(t, stat{dead: true, group: 70, start: 987654}, s)
	for _, bad := range []string{"", "77 (a) S 1", "77 (a) S 1 x 60 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 9 0", "77 (a) S 1 7 60 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 x 0"} {
		_, err := parseStat(bad)
		require.Error(t, err, bad)
	}
	own, err := readStat(os.Getpid())
	require.NoError(t, err)
	require.Equal(t, unix.Getpgrp(), own.group)
	_, err = readStat(1 << 30)
	require.True(t, errors.Is(err, errNoProcess))
}
