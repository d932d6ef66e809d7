package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/machine"
)

const patience = 60 * time.Second

// testApp is a configuration that runs the test binary as the app.
func testApp(t *testing.T, mode string) Config {
	self, err := os.Executable()
	require.NoError(t, err)
	c := validConfig(t)
	c.Command = []string{self}
	c.Env = map[string]string{"TEST_APP": mode}
	c.StopTimeout = 200 * time.Millisecond
	return c
}

// testMachine holds the test's runs in cgroups.
func testMachine(t *testing.T) machine.Cgroups {
	m, err := machine.OpenCgroups("", "regionha-test-"+strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		t.Skip("this machine lets the test make no cgroup v2: ", err)
	}
	t.Cleanup(func() { require.NoError(t, os.Remove(m.Parent()), "the runs' own cgroups are gone") })
	return m
}

func startApp(t *testing.T, c Config) *App {
	a, err := Start(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Stop(context.Background())) })
	return a
}

func startReady(t *testing.T, c Config) *App {
	a := startApp(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, a.WaitReady(ctx))
	return a
}

// get asks the app; an answer that breaks off is "".
func get(t *testing.T, a *App, path string) string {
	return getAt(t, a.Addr(), path)
}

func getAt(t *testing.T, addr net.Addr, path string) string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial(addr.Network(), addr.String())
		}}}
	resp, err := client.Get("http://app" + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(b)
}

// awaitState waits for a state that ok accepts.
func awaitState(t *testing.T, a *App, ok func(State) bool) State {
	deadline := time.After(patience)
	for {
		s, changed := a.State()
		if ok(s) {
			return s
		}
		select {
		case <-changed:
		case <-deadline:
			require.Failf(t, "state", "it stays %+v", s)
		}
	}
}

// alive reports whether a process lives: the state follows its name.
func alive(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, state, ok := bytes.Cut(b, []byte(") "))
	return err == nil && ok && state[0] != 'Z' && state[0] != 'X'
}

func awaitDead(t *testing.T, pid int) {
	require.Eventually(t, func() bool { return !alive(pid) }, patience, time.Millisecond)
}

func TestAnAppGetsItsDirectoryAndACleanEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the agent's own")
	for _, listen := range []string{ListenPort, ListenSocket} {
		t.Run(listen, func(t *testing.T) {
			c := testApp(t, "serve")
			c.Listen = listen
			a := startReady(t, c)
			require.NoError(t, a.Probe(t.Context()))
			require.Equal(t, c.Dir+"/work", get(t, a, "/cwd"))
			var env []string
			require.NoError(t, json.Unmarshal([]byte(get(t, a, "/env")), &env))
			names := make([]string, len(env))
			for i, e := range env {
				names[i], _, _ = strings.Cut(e, "=")
			}
			slices.Sort(names)
			want := []string{"CARLOS_HOST", "CARLOS_INSTANCE_KEY", "CARLOS_REGION", "CARLOS_SESSION", "DATABASE_PATH",
				"FILES_DIR", "HOME", "LANG", "PATH", "TEST_APP", "TZ",
				map[string]string{ListenPort: "PORT", ListenSocket: "LISTEN_SOCKET"}[listen]}
			slices.Sort(want)
			require.Equal(t, want, names)
		})
	}
}

func TestStopAsksFirstAndLeavesNothing(t *testing.T) {
	c := testApp(t, "serve")
	c.Listen, c.Machine, c.StopTimeout = ListenSocket, testMachine(t), patience
	a := startReady(t, c)
	s, _ := a.State()
	require.Equal(t, Ready, s.Phase)
	require.FileExists(t, c.Dir+"/run.json")
	require.NoError(t, a.Stop(t.Context()))
	require.FileExists(t, c.Dir+"/work/terminated", "the app saw TERM")
	require.False(t, alive(s.PID))
	require.NoFileExists(t, c.Dir+"/run.json")
	require.NoDirExists(t, filepath.Dir(s.Addr.String()))
	s, _ = a.State()
	require.Equal(t, State{Phase: Stopped, Starts: 1}, s)
	require.ErrorIs(t, a.WaitReady(t.Context()), ErrStopped)
	require.Error(t, a.Probe(t.Context()))
}

func TestAnAppThatIgnoresTermIsKilled(t *testing.T) {
	a := startReady(t, testApp(t, "deaf"))
	s, _ := a.State()
	require.NoError(t, a.Stop(t.Context()))
	require.False(t, alive(s.PID))
}

func TestStopsContextBoundsTheWaitingOnly(t *testing.T) {
	a := startReady(t, testApp(t, "deaf"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, a.Stop(ctx), context.Canceled)
	select {
	case <-a.Done():
	case <-time.After(patience):
		require.Fail(t, "the stopping did not go on")
	}
}

func TestAnAppThatExitsIsStartedAgainInItsSession(t *testing.T) {
	c := testApp(t, "serve")
	c.Machine = testMachine(t)
	a := startReady(t, c)
	first, _ := a.State()
	get(t, a, "/exit")
	second := awaitState(t, a, func(s State) bool { return s.Phase == Ready && s.Starts == 2 })
	require.NotEqual(t, first.PID, second.PID)
	require.ErrorContains(t, second.Failure, "exit status 4")
}

func TestAnAppThatKeepsFailingSaysWhyAndItsOutputIsKept(t *testing.T) {
	c := testApp(t, "fail")
	a := startApp(t, c)
	awaitState(t, a, func(s State) bool { return s.Starts >= 3 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := a.WaitReady(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "exit status 3")
	out, err := os.ReadFile(c.Dir + "/log/app.log")
	require.NoError(t, err)
	require.Contains(t, string(out), "no such table\n")
}

func TestACommandThatIsNotThereIsAFailureThatIsTriedAgain(t *testing.T) {
	c := testApp(t, "serve")
	c.Command = []string{c.Dir + "/no-such-program"}
	a := startApp(t, c)
	s := awaitState(t, a, func(s State) bool { return s.Phase == Waiting })
	require.ErrorIs(t, s.Failure, os.ErrNotExist)
	require.NoFileExists(t, c.Dir+"/run.json")
}

func TestAnAppThatIsNotReadyInTimeIsEndedAndStartedAgain(t *testing.T) {
	c := testApp(t, "silent")
	c.StartTimeout = 50 * time.Millisecond
	a := startApp(t, c)
	s := awaitState(t, a, func(s State) bool {
		require.NotEqual(t, Ready, s.Phase)
		return s.Starts == 2
	})
	require.ErrorContains(t, s.Failure, "not ready")
	require.ErrorContains(t, s.Failure, "killed")
}

func TestOnlyStatus200IsReady(t *testing.T) {
	for _, status := range []int{http.StatusNoContent, http.StatusFound, http.StatusServiceUnavailable} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			if r.URL.Path == "/healthz" {
				w.WriteHeader(status)
			}
		}))
		defer srv.Close()
		c, err := validConfig(t).withDefaults()
		require.NoError(t, err)
		require.ErrorContains(t, c.probe(t.Context(), srv.Listener.Addr()), strconv.Itoa(status))
	}
}

// A stranger that answers 200 to everything holds the first port.
func stranger(t *testing.T) (port int) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().(*net.TCPAddr).Port
}

func TestATakenPortIsReplacedByAnother(t *testing.T) {
	taken := stranger(t)
	c := testApp(t, "serve")
	ports := 0
	c.pickPort = func() (int, error) {
		if ports++; ports == 1 {
			return taken, nil
		}
		return freePort()
	}
	a := startReady(t, c)
	require.NotEqual(t, taken, a.Addr().(*net.TCPAddr).Port)
	require.Contains(t, get(t, a, "/env"), "CARLOS_HOST")
}

func TestAStrangerOnTheAppsPortIsNotTakenForTheApp(t *testing.T) {
	taken := stranger(t)
	c := testApp(t, "stubborn")
	c.StartTimeout = 100 * time.Millisecond
	c.pickPort = func() (int, error) { return taken, nil }
	a := startApp(t, c)
	awaitState(t, a, func(s State) bool {
		require.NotEqual(t, Ready, s.Phase)
		return errors.Is(s.Failure, machine.ErrStranger)
	})
}

func TestACgroupHoldsWhatLeavesTheProcessGroup(t *testing.T) {
	for _, how := range []string{"exit", "stop"} {
		t.Run(how, func(t *testing.T) {
			c := testApp(t, "serve")
			c.Machine = testMachine(t)
			a := startReady(t, c)
			pid, err := strconv.Atoi(get(t, a, "/fork?setsid"))
			require.NoError(t, err)
			require.True(t, alive(pid))
			if how == "exit" {
				get(t, a, "/exit")
				awaitState(t, a, func(s State) bool { return s.Phase == Waiting })
			} else {
				require.NoError(t, a.Stop(t.Context()))
			}
			require.False(t, alive(pid))
		})
	}
}

func TestAProcessGroupIsEndedWhole(t *testing.T) {
	a := startReady(t, testApp(t, "serve"))
	pid, err := strconv.Atoi(get(t, a, "/fork"))
	require.NoError(t, err)
	get(t, a, "/exit")
	awaitState(t, a, func(s State) bool { return s.Phase == Waiting })
	require.False(t, alive(pid))
}

func TestCgroupsThatTheAppMadeAreEndedToo(t *testing.T) {
	c := testApp(t, "serve")
	c.Machine = testMachine(t)
	a := startReady(t, c)
	pid := get(t, a, "/fork?setsid")
	below := filepath.Join(a.Cgroup(), "below")
	require.NoError(t, os.Mkdir(below, 0o755))
	require.NoError(t, os.WriteFile(below+"/cgroup.procs", []byte(pid), 0))
	require.NoError(t, a.Stop(t.Context()))
	require.NoDirExists(t, below)
	n, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.False(t, alive(n))
}
