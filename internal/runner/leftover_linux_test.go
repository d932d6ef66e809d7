package runner

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/machine"
)

// killedAgent runs an agent that runs the app, lets the app fork, and kills the
// agent. It returns the app's and the fork's process.
func killedAgent(t *testing.T, c Config, fork string) (app, forked int) {
	parent := ""
	if m, ok := c.Machine.(machine.Cgroups); ok {
		parent = m.Parent()
	}
	c.Log, c.pickPort, c.Machine = nil, nil, nil
	cfg, err := json.Marshal(c)
	require.NoError(t, err)
	cmd := exec.Command(c.Command[0])
	cmd.Env = []string{"TEST_APP=agent", "TEST_CONFIG=" + string(cfg), "TEST_CGROUPS=" + parent}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var addr string
	_, err = fmt.Sscan(line, &app, &addr)
	require.NoError(t, err)
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	require.NoError(t, err)
	forked, err = strconv.Atoi(getAt(t, tcp, fork))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	return app, forked
}

func TestTheAppDiesWithItsAgentAndTheRestIsALeftover(t *testing.T) {
	for name, tc := range map[string]struct {
		cgroup bool
		fork   string
	}{"cgroup": {true, "/fork?setsid"}, "group": {false, "/fork"}} {
		t.Run(name, func(t *testing.T) {
			c := testApp(t, "serve")
			if tc.cgroup {
				c.Machine = testMachine(t)
			}
			app, forked := killedAgent(t, c, tc.fork)
			awaitDead(t, app)
			require.True(t, alive(forked), "nobody has ended it yet")

			_, err := Start(c)
			require.ErrorIs(t, err, ErrLeftover)
			require.NoError(t, KillLeftover(t.Context(), c.Machine, c.Dir))
			require.False(t, alive(forked))
			require.NoFileExists(t, c.Dir+"/run.json")
			startReady(t, c)
		})
	}
}

func TestWithoutARecordThereIsNoLeftover(t *testing.T) {
	require.NoError(t, KillLeftover(t.Context(), nil, t.TempDir()))
}

func TestAnUnreadableRecordIsAnError(t *testing.T) {
	c := testApp(t, "serve")
	require.NoError(t, os.WriteFile(c.Dir+"/run.json", []byte("{}"), 0o600))
	require.Error(t, KillLeftover(t.Context(), c.Machine, c.Dir))
	_, err := Start(c)
	require.Error(t, err)
	require.FileExists(t, c.Dir+"/run.json")
}

// bystander starts a process that leads its own group.
func bystander(t *testing.T) run {
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	start, err := machine.StartTime(cmd.Process.Pid)
	require.NoError(t, err)
	boot, err := machine.BootID()
	require.NoError(t, err)
	return run{V: 1, Host: "notes.example", Session: 3, BootID: boot, PID: cmd.Process.Pid, Start: start}
}

func TestOnlyTheRecordedProcessIsKilled(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*run)
		lives  bool
	}{
		"the very process":     {func(*run) {}, false},
		"a recycled number":    {func(r *run) { r.Start-- }, true},
		"an earlier boot's":    {func(r *run) { r.BootID = "another" }, true},
		"a group it is not in": {func(r *run) { r.PID++ }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := bystander(t)
			pid, dir := r.PID, t.TempDir()
			tc.change(&r)
			require.NoError(t, writeRun(dir, r))
			require.NoError(t, KillLeftover(t.Context(), nil, dir))
			require.Equal(t, tc.lives, alive(pid))
			require.NoFileExists(t, dir+"/run.json")
		})
	}
}

func TestAGroupWithoutItsLeaderIsKnownByItsEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		env   []string
		lives bool
	}{
		"the run's":         {[]string{"CARLOS_HOST=notes.example", "CARLOS_SESSION=3"}, false},
		"another host's":    {[]string{"CARLOS_HOST=x.notes.example", "CARLOS_SESSION=3"}, true},
		"another session's": {[]string{"CARLOS_HOST=notes.example", "CARLOS_SESSION=31"}, true},
		"a stranger's":      {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			self, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.Command(self)
			cmd.Env = append(tc.env, "TEST_APP=parent", "PATH="+os.Getenv("PATH"))
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := cmd.Output()
			require.NoError(t, err)
			member, err := strconv.Atoi(strings.TrimSpace(string(out)))
			require.NoError(t, err)
			t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })

			boot, err := machine.BootID()
			require.NoError(t, err)
			dir := t.TempDir()
			require.NoError(t, writeRun(dir, run{V: 1, Host: "notes.example", Session: 3, BootID: boot,
				PID: cmd.Process.Pid, Start: 1}))
			require.NoError(t, KillLeftover(t.Context(), nil, dir))
			require.Equal(t, tc.lives, alive(member))
		})
	}
}
