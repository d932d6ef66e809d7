package stopevidence_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

var theContext = context.Background()

// host is one whose writer is looked for.
type host struct{ stopevidence.Subject }

// newHost makes the files of a database that nothing holds, and an empty cgroup.
func newHost(t *testing.T) host {
	t.Helper()
	h := host{stopevidence.Subject{Cgroup: stoptest.Cgroup(t), Database: filepath.Join(t.TempDir(), "app.db")}}
	for _, path := range []string{h.Database, h.Database + "-wal", h.Database + "-shm"} {
		require.NoError(t, os.WriteFile(path, make([]byte, os.Getpagesize()), 0o666))
	}
	return h
}

// known is what the host is known to have at its database's path.
func (h host) known(t *testing.T) []stopevidence.Descriptor {
	t.Helper()
	f, err := os.Open(h.Database)
	require.NoError(t, err)
	defer f.Close()
	held, err := stopevidence.ProcessDescriptors(h.Database)
	require.NoError(t, err)
	require.Len(t, held, 1)
	return held
}

// requireStopped wants a look to pass, by both its checks.
func (h host) requireStopped(t *testing.T, replicator ...stopevidence.Descriptor) {
	t.Helper()
	checks, err := stopevidence.WritersStopped(t.Context(), h.Subject, replicator)
	require.NoError(t, err)
	require.Len(t, checks, 2)
	require.Equal(t, stopevidence.CgroupEmpty, checks[0].Name)
	require.Equal(t, stopevidence.NoHolders, checks[1].Name)
	for _, c := range checks {
		require.True(t, c.Passed)
		require.NotEmpty(t, c.Saw)
		require.Less(t, len(c.Saw), 500)
	}
}

// requireHeld wants a look to find exactly one holder.
func (h host) requireHeld(t *testing.T, replicator ...stopevidence.Descriptor) stopevidence.Holder {
	t.Helper()
	checks, err := stopevidence.WritersStopped(t.Context(), h.Subject, replicator)
	require.Empty(t, checks)
	require.NotErrorIs(t, err, stopevidence.ErrIncomplete)
	var held *stopevidence.HeldError
	require.ErrorAs(t, err, &held)
	require.Empty(t, held.Cgroup)
	require.Len(t, held.Holders, 1, err)
	require.Zero(t, held.More)
	require.NotZero(t, held.Holders[0].Start)
	require.NotEmpty(t, held.Holders[0].Command)
	return held.Holders[0]
}

// requireRuns wants a look to find the cgroup not empty.
func (h host) requireRuns(t *testing.T, saw string) {
	t.Helper()
	_, err := stopevidence.Collect(t.Context(), h.Subject)
	require.NotErrorIs(t, err, stopevidence.ErrIncomplete)
	var held *stopevidence.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, saw, held.Cgroup)
}

// requireIncomplete wants a look to say nothing.
func (h host) requireIncomplete(t *testing.T, reason string) {
	t.Helper()
	checks, err := stopevidence.Collect(t.Context(), h.Subject)
	require.Empty(t, checks)
	require.ErrorIs(t, err, stopevidence.ErrIncomplete)
	require.ErrorContains(t, err, reason)
	require.False(t, errors.As(err, new(*stopevidence.HeldError)))
}

// enter puts what is started into a cgroup.
func enter(t *testing.T, cgroup string) func(*exec.Cmd) {
	t.Helper()
	dir, err := os.Open(cgroup)
	require.NoError(t, err)
	t.Cleanup(func() { dir.Close() })
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	}
}

func TestNothingThatHoldsIsStopped(t *testing.T) { newHost(t).requireStopped(t) }

func TestAHolderIsFoundAndLetGo(t *testing.T) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		h := newHost(t)
		of := h
		of.Database += suffix
		a := of.play(t, "hold", nil)
		got := h.requireHeld(t)
		require.Equal(t, a.Process.Pid, got.PID)
		require.Equal(t, a.Process.Pid, got.TID)
		require.Equal(t, of.Database, got.Path)
		require.Equal(t, a.descriptors(t)[0].FD, got.FD)
		a.end()
		h.requireStopped(t)
	}
}

func TestAFileOfTheSameNameElsewhereIsAnother(t *testing.T) {
	h, other := newHost(t), newHost(t)
	other.play(t, "hold", nil)
	h.requireStopped(t)
}

func TestALiveReplicatorPassesStepOneAndFailsStepFourUntilClosed(t *testing.T) {
	h := newHost(t)
	shm, err := mapped(h.Database + "-shm") // as SQLite does
	require.NoError(t, err)
	var files []*os.File
	for _, suffix := range []string{"", "", "-wal", "-shm"} {
		f, err := os.Open(h.Database + suffix)
		require.NoError(t, err)
		files = append(files, f)
	}
	replicator, err := stopevidence.ProcessDescriptors(h.Database, h.Database+"-wal", h.Database+"-shm")
	require.NoError(t, err)
	require.Len(t, replicator, len(files))
	h.requireStopped(t, replicator...)

	var held *stopevidence.HeldError
	_, err = stopevidence.Collect(t.Context(), h.Subject)
	require.ErrorAs(t, err, &held)
	require.Len(t, held.Holders, len(files)+1, "and the mapping")
	unnamed := slices.IndexFunc(replicator, func(d stopevidence.Descriptor) bool { return d.Path == h.Database })
	named := slices.Delete(slices.Clone(replicator), unnamed, unnamed+1)
	require.Equal(t, replicator[unnamed].FD, h.requireHeld(t, named...).FD, "exactly the descriptors that are named")

	for _, f := range files {
		require.NoError(t, f.Close())
	}
	require.Equal(t, -1, h.requireHeld(t, replicator...).FD, "a mapping goes with descriptors that are there")
	require.NoError(t, unix.Munmap(shm))
	_, err = stopevidence.Collect(t.Context(), h.Subject)
	require.NoError(t, err)
}

func TestACopyOfTheReplicatorsDescriptorIsAnothers(t *testing.T) {
	h := newHost(t)
	f, err := os.Open(h.Database)
	require.NoError(t, err)
	defer f.Close()
	replicator, err := stopevidence.ProcessDescriptors(h.Database)
	require.NoError(t, err)
	child := exec.Command("sleep", "infinity")
	child.ExtraFiles = []*os.File{f}
	require.NoError(t, child.Start())
	defer func() { _, _ = child.Process.Kill(), child.Wait() }()
	require.Equal(t, child.Process.Pid, h.requireHeld(t, replicator...).PID)
}

func TestADescriptorThatAChildInAnotherCgroupInheritedIsFound(t *testing.T) {
	for _, role := range []string{"hand-on", "hand-down"} {
		h, outside := newHost(t), stoptest.Cgroup(t)
		a := h.play(t, role, func(cmd *exec.Cmd) {
			enter(t, h.Cgroup)(cmd)
			cmd.Env = append(cmd.Env, actorCgroup+"="+outside)
		})
		require.NoError(t, a.Wait())
		eventually(t, h, func(held *stopevidence.HeldError) bool { return held.Cgroup == "" })
		got := h.requireHeld(t)
		require.Equal(t, a.says, strconv.Itoa(got.PID))
		require.Equal(t, "sleep", got.Command)
		require.NoError(t, unix.Kill(got.PID, unix.SIGKILL))
		eventuallyStopped(t, h)
	}
}

// eventually looks again while what was killed goes, until enough is seen; an
// error of nil is always enough.
func eventually(t *testing.T, h host, enough func(*stopevidence.HeldError) bool) {
	t.Helper()
	for range 10_000 {
		_, err := stopevidence.Collect(t.Context(), h.Subject)
		if err == nil {
			return
		}
		var held *stopevidence.HeldError
		require.ErrorAs(t, err, &held)
		if enough(held) {
			return
		}
	}
	t.Fatal("it never was")
}

func eventuallyStopped(t *testing.T, h host) {
	t.Helper()
	eventually(t, h, func(*stopevidence.HeldError) bool { return false })
}

func TestADeletedDatabaseIsHeld(t *testing.T) {
	h := newHost(t)
	h.play(t, "hold", nil)
	require.NoError(t, os.Remove(h.Database))
	require.Equal(t, h.Database+" (deleted)", h.requireHeld(t).Path)
	require.NoError(t, os.WriteFile(h.Database, nil, 0o666))
	h.requireHeld(t)
	require.NoError(t, os.RemoveAll(filepath.Dir(h.Database)))
	h.requireHeld(t)
}

func TestADeletedDatabaseIsHeldThroughALinkOfItsDirectory(t *testing.T) {
	h := newHost(t)
	link := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Symlink(filepath.Dir(h.Database), link))
	h.Database = filepath.Join(link, "app.db")
	h.play(t, "hold", nil)
	require.NoError(t, os.Remove(h.Database))
	h.requireHeld(t)
}

func TestADeletedDatabaseIsHeldByAMapping(t *testing.T) {
	h := newHost(t)
	h.play(t, "map", nil)
	require.NoError(t, os.Remove(h.Database))
	require.Equal(t, -1, h.requireHeld(t).FD)
}

func TestARenamedDatabaseIsHeldWhereItIsKnown(t *testing.T) {
	h := newHost(t)
	h.Known = h.known(t)
	h.play(t, "hold", nil)
	aside := h.Database + ".aside"
	require.NoError(t, os.Rename(h.Database, aside))
	require.Equal(t, aside, h.requireHeld(t).Path)

	require.NoError(t, os.Remove(aside))
	require.Equal(t, aside+" (deleted)", h.requireHeld(t).Path)
}

func TestALaterFileWithTheNumberOfAKnownOneIsAnother(t *testing.T) {
	h := newHost(t)
	known := h.known(t)[0]
	require.NotZero(t, known.Born)
	h.play(t, "hold", nil)
	require.NoError(t, os.Rename(h.Database, h.Database+".log"))
	h.Known = []stopevidence.Descriptor{{Dev: known.Dev, Ino: known.Ino, Born: known.Born - 1}}
	h.requireStopped(t)
	h.Known[0].Born = 0
	h.requireHeld(t)
}

func TestAHardLinkIsTheDatabase(t *testing.T) {
	h := newHost(t)
	other := host{stopevidence.Subject{Cgroup: h.Cgroup, Database: filepath.Join(t.TempDir(), "other")}}
	require.NoError(t, os.Link(h.Database, other.Database))
	other.play(t, "hold", nil)
	require.Equal(t, other.Database, h.requireHeld(t).Path)
}

func TestABindMountIsTheDatabase(t *testing.T) {
	h := newHost(t)
	other := host{stopevidence.Subject{Cgroup: h.Cgroup, Database: filepath.Join(t.TempDir(), "app.db")}}
	require.NoError(t, unix.Mount(filepath.Dir(h.Database), filepath.Dir(other.Database), "", unix.MS_BIND, ""))
	defer unix.Unmount(filepath.Dir(other.Database), unix.MNT_DETACH)
	other.play(t, "hold", nil)
	h.requireHeld(t)
}

func TestAnotherMountNamespaceHidesNothing(t *testing.T) {
	h := newHost(t)
	a := h.play(t, "elsewhere", func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	})
	require.Equal(t, a.Process.Pid, h.requireHeld(t).PID)
}

func TestAMappingHoldsWithoutADescriptor(t *testing.T) {
	h := newHost(t)
	a := h.play(t, "map", nil)
	got := h.requireHeld(t)
	require.Equal(t, a.Process.Pid, got.PID)
	require.Equal(t, -1, got.FD)
	require.Equal(t, h.Database, got.Path)
}

func TestAThreadsOwnTableIsLookedAt(t *testing.T) {
	h := newHost(t)
	a := h.play(t, "unshared", nil)
	got := h.requireHeld(t)
	require.Equal(t, a.Process.Pid, got.PID)
	require.NotEqual(t, got.PID, got.TID)
}

func TestAThreadThatReopenedTheFileOnTheLeadersNumberIsForeign(t *testing.T) {
	h := newHost(t)
	a := h.play(t, "reopened", nil)
	replicator := a.descriptors(t)
	got := h.requireHeld(t, replicator...)
	require.Equal(t, replicator[0].FD, got.FD)
	require.NotEqual(t, got.PID, got.TID)

	honest := newHost(t)
	honest.requireStopped(t, honest.play(t, "hold", nil).descriptors(t)...)
}

func TestAProcessWhoseLeaderExitedIsLookedAt(t *testing.T) {
	h := newHost(t)
	a := h.play(t, "leaderless", nil)
	_, err := stopevidence.Collect(t.Context(), h.Subject)
	var held *stopevidence.HeldError
	require.ErrorAs(t, err, &held)
	ways := map[bool]bool{}
	for _, got := range held.Holders {
		require.Equal(t, a.Process.Pid, got.PID)
		require.NotEqual(t, got.PID, got.TID)
		ways[got.FD < 0] = true
	}
	require.Len(t, ways, 2, "by descriptors and by mappings: %v", err)
}

func TestARecycledPIDIsNotExempt(t *testing.T) {
	h := newHost(t)
	first := h.play(t, "hold", nil)
	replicator := first.descriptors(t)
	h.requireStopped(t, replicator...)
	first.end()
	h.requireStopped(t, replicator...)
	for range 100 {
		again := h.play(t, "hold", func(*exec.Cmd) { nextPID(t, first.Process.Pid) })
		now := again.descriptors(t)
		if now[0].PID == replicator[0].PID && now[0].Start != replicator[0].Start {
			require.Equal(t, replicator[0].FD, now[0].FD)
			require.Equal(t, again.Process.Pid, h.requireHeld(t, replicator...).PID)
			h.requireStopped(t, now...)
			return
		}
		again.end()
	}
	t.Fatal("the number was never given again")
}

// nextPID makes pid the number of the next process of this machine.
func nextPID(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0))
}

// hooked is a context that calls do each time it is asked whether it has ended:
// a look asks before each process.
type hooked struct {
	context.Context
	asked atomic.Int64
	do    func(n int64)
}

func (c *hooked) Err() error {
	c.do(c.asked.Add(1))
	return c.Context.Err()
}

func TestAProcessThatOpensTheFileInMidScanIsFound(t *testing.T) {
	look := func(h host, do func(int64)) (int64, error) {
		ctx := &hooked{Context: t.Context(), do: do}
		_, err := stopevidence.Collect(ctx, h.Subject)
		return ctx.asked.Load(), err
	}
	h := newHost(t)
	h.play(t, "hold-later", nil)
	twice, err := look(h, func(int64) {})
	require.NoError(t, err)
	for at := int64(1); at <= twice/2; at++ {
		a := h.play(t, "hold-later", nil)
		_, err := look(h, func(n int64) {
			if n == at {
				a.tell(t)
			}
		})
		require.ErrorAs(t, err, new(*stopevidence.HeldError), "opened before process %d of %d", at, twice)
		a.end()
	}
	for at := int64(1); at <= twice/2; at++ {
		var a *actor
		_, err := look(h, func(n int64) {
			if n == at {
				a = h.play(t, "hold", nil)
			}
		})
		require.ErrorAs(t, err, new(*stopevidence.HeldError), "appeared before process %d of %d", at, twice)
		a.end()
	}
}

func TestAPassInWhichTheNumbersStartOverCountsForNothing(t *testing.T) {
	h := newHost(t)
	count := func(do func(int64)) int64 {
		ctx := &hooked{Context: t.Context(), do: do}
		_, err := stopevidence.Collect(ctx, h.Subject)
		require.NoError(t, err)
		return ctx.asked.Load()
	}
	nextPID(t, 20_000)
	usual := count(func(int64) {})
	over := count(func(n int64) {
		if n == 2 { // the first is the cgroup
			nextPID(t, 400)
		}
	})
	require.Greater(t, over, usual)
}

func TestAForkStormNeitherHidesAHolderNorDelaysALook(t *testing.T) {
	nextPID(t, 1000) // the numbers do not start over soon
	storm := func(t *testing.T, script string, extra ...*os.File) {
		cmd := exec.Command("sh", "-c", script)
		cmd.ExtraFiles = extra
		enter(t, stoptest.Cgroup(t))(cmd)
		require.NoError(t, cmd.Start())
		go func() { _ = cmd.Wait() }() // it is killed with its cgroup
	}
	t.Run("of strangers", func(t *testing.T) {
		h := newHost(t)
		storm(t, "while :; do /bin/true; done")
		first := lastPID(t)
		for range 30 {
			h.requireStopped(t)
		}
		require.Greater(t, lastPID(t), first)
	})
	t.Run("in which each hands the file to the next", func(t *testing.T) {
		h := newHost(t)
		f, err := os.Open(h.Database)
		require.NoError(t, err)
		storm(t, "r() { r & }; r", f)
		require.NoError(t, f.Close())
		first := lastPID(t)
		for range 30 {
			_, err := stopevidence.Collect(t.Context(), h.Subject)
			require.ErrorAs(t, err, new(*stopevidence.HeldError))
		}
		require.Greater(t, lastPID(t), first)
	})
}

// lastPID is how many numbers this machine has given away.
func lastPID(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/kernel/ns_last_pid")
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	require.NoError(t, err)
	return n
}

func TestWhoMayNotSeeEveryProcessSaysNothing(t *testing.T) {
	h := newHost(t)
	other := func(flags uintptr, uid uint32) func(*exec.Cmd) {
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
		attr := &syscall.SysProcAttr{Cloneflags: flags, Credential: &syscall.Credential{Uid: uid}}
		if flags&unix.CLONE_NEWUSER != 0 {
			attr.UidMappings, attr.GidMappings = ids, ids
		}
		return func(cmd *exec.Cmd) { cmd.SysProcAttr = attr }
	}
	for reason, prepare := range map[string]func(*exec.Cmd){
		"user is 65534, expected root":   other(0, 65534),
		"it is of another pid namespace": other(unix.CLONE_NEWPID, 0),
		// of a descriptor or of a mapping, whichever a looker comes to first
		": (permission denied|operation not permitted)": other(unix.CLONE_NEWUSER, 0),
	} {
		a := h.play(t, "look", prepare)
		require.Contains(t, a.says, stopevidence.ErrIncomplete.Error())
		require.Regexp(t, reason, a.says)
	}
	var a *actor
	done := make(chan bool)
	go func() {
		defer close(done)
		runtime.LockOSThread() // and this thread ends with the goroutine
		require.NoError(t, unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_PTRACE, 0, 0, 0))
		a = h.play(t, "look", nil)
	}()
	<-done
	require.Contains(t, a.says, "expected CAP_SYS_PTRACE")
}

func TestAZombieHoldsNothingAndItsChildDoes(t *testing.T) {
	h, outside := newHost(t), stoptest.Cgroup(t)
	parent := h.play(t, "hand-on", func(cmd *exec.Cmd) {
		enter(t, h.Cgroup)(cmd)
		cmd.Env = append(cmd.Env, actorCgroup+"="+outside)
	})
	eventually(t, h, func(held *stopevidence.HeldError) bool { return held.Cgroup == "" })
	require.True(t, zombie(t, parent.Process.Pid))
	got := h.requireHeld(t)
	require.NoError(t, unix.Kill(got.PID, unix.SIGKILL))
	eventuallyStopped(t, h)
	require.True(t, zombie(t, parent.Process.Pid))
}

func zombie(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	return strings.Contains(string(stat), ") Z ")
}

func TestALookEndsWithItsContext(t *testing.T) {
	h := newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := stopevidence.Collect(ctx, h.Subject)
	require.ErrorIs(t, err, stopevidence.ErrIncomplete)
	require.ErrorIs(t, err, context.Canceled)
}

func TestManyHoldersAreCountedAndSomeListed(t *testing.T) {
	h := newHost(t)
	var files []*os.File
	for range 20 {
		f, err := os.Open(h.Database)
		require.NoError(t, err)
		files = append(files, f)
	}
	_, err := stopevidence.Collect(t.Context(), h.Subject)
	var held *stopevidence.HeldError
	require.ErrorAs(t, err, &held)
	require.Len(t, held.Holders, 16)
	require.Equal(t, 4, held.More)
	require.ErrorContains(t, err, "4 more")
	for _, f := range files {
		require.NoError(t, f.Close())
	}
}

// collect looks under a context.
func collect(ctx context.Context, h host) ([]stopevidence.Check, error) {
	return stopevidence.Collect(ctx, h.Subject)
}
