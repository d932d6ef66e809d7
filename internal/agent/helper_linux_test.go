package agent

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/roothelper"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

// nobody is the user that the test's agent is.
var nobody = machine.Owner{UID: 65534, GID: 65534}

// helped makes the rig's agent one that is not root, with a root helper.
func (r *rig) helped() machine.Cgroups {
	made := stoptest.Cgroup(r.t)
	parent, err := machine.OpenCgroups("/"+filepath.Base(made)+"/regionha", "")
	require.NoError(r.t, err)
	dir := filepath.Dir(r.data)
	socket := filepath.Join(dir, "helper.sock")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- roothelper.Serve(ctx, roothelper.Config{Socket: socket, Agent: nobody, Parent: parent, Log: slog.New(slog.DiscardHandler)})
	}()
	r.t.Cleanup(func() {
		cancel()
		require.NoError(r.t, <-done)
		require.NoError(r.t, parent.EndAll(context.Background()))
		require.NoError(r.t, os.Remove(parent.Parent()))
	})
	r.eventually(func() bool { info, err := os.Stat(socket); return err == nil && info.Mode().Perm() == 0o600 })
	r.args = append(r.args, "--helper", socket)
	require.NoError(r.t, os.Chmod(filepath.Dir(dir), 0o755))
	require.NoError(r.t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(nobody.UID), int(nobody.GID))
	}))
	return parent
}

// startAsNobody starts the agent. The test's own program lies where only root
// finds it by name.
func (r *rig) startAsNobody() {
	r.agent = exec.Command("/proc/self/exe", r.args...)
	r.agent.Env, r.agent.Stdout, r.agent.Stderr, r.agent.Dir = r.env, r.log, r.log, "/"
	r.agent.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody.UID, Gid: nobody.GID}}
	require.NoError(r.t, r.agent.Start())
}

// appProcesses are the processes in the cgroups of box-1, with their users.
func (r *rig) appProcesses(helper machine.Cgroups) map[int]string {
	list := map[int]string{}
	found, err := filepath.Glob(filepath.Join(helper.Parent(), "box-1", "app-*", "cgroup.procs"))
	require.NoError(r.t, err)
	for _, path := range found {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for _, line := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(line)
			require.NoError(r.t, err)
			status, _ := os.ReadFile("/proc/" + line + "/status")
			_, uids, _ := strings.Cut(string(status), "\nUid:\t")
			list[pid], _, _ = strings.Cut(uids, "\t")
		}
	}
	return list
}

// TestAnAgentThatIsNotRootServesThroughTheHelper: from the host's creation, over
// its own sudden death, to its orderly end; and its app dies with it.
func TestAnAgentThatIsNotRootServesThroughTheHelper(t *testing.T) {
	r := newRig(t)
	r.createAs("/proc/self/exe")
	helper := r.helped()
	r.startAsNobody()
	first := r.claim(served(0))
	r.put("a")
	before := r.appProcesses(helper)
	require.NotEmpty(t, before)
	for _, uid := range before {
		require.Equal(t, "65534", uid)
	}

	r.stop(syscall.SIGKILL)
	require.Eventually(t, func() bool { return len(r.appProcesses(helper)) == 0 }, time.Second, time.Millisecond, "no app without its replicator")

	r.startAsNobody()
	second := r.claim(served(first.Holder.Session))
	require.Equal(t, "a", r.rows())
	require.Nil(t, second.Holder.Admissions[len(second.Holder.Admissions)-1].WritesLost)
	r.put("b")
	r.stop(syscall.SIGTERM)
	require.Empty(t, r.appProcesses(helper))
	ended := r.claim(served(0))
	require.Equal(t, second.Holder.Session, ended.Holder.Ended.Session)
	require.NotContains(t, r.log.String(), "process groups only")
}
