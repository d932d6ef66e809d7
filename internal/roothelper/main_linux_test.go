package roothelper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

const (
	patience = 60 * time.Second
	agentUID = 65534
	agentGID = 65533
)

// The test binary is also an agent that is told what to do, and a helper that
// can be killed.
func TestMain(m *testing.M) {
	switch os.Getenv("ROOTHELPER_TEST") {
	case "agent":
		beAgent()
	case "helper":
		cfg := Config{Socket: os.Args[1], Agent: machine.Owner{UID: agentUID, GID: agentGID}}
		var err error
		if cfg.Parent, err = machine.OpenCgroups(os.Args[2], ""); err == nil {
			err = Serve(context.Background(), cfg)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	default:
		stoptest.Main(m)
	}
}

// An order tells an agent to do one thing.
type order struct {
	Do     string
	Socket string // of dial
	Box    string
	Host   string
	Script string // of spawn, for a shell
	As     *machine.Owner
	Raw    []byte // of raw
	Files  int
	Port   int
	Look   stopevidence.Subject
	Except []stopevidence.Descriptor
}

// A report is what came of it.
type report struct {
	Err    string
	Kind   string // held, incomplete, stranger
	PID    int
	Status string
	Cgroup string
	Empty  bool
	Output string
	Checks []stopevidence.Check
	Seen   machine.Seen
	Held   *stopevidence.HeldError
}

// running is a run that an agent started.
type running struct {
	machine.Process
	output *bufio.Reader
}

// beAgent does what its stdin says until that ends.
func beAgent() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	clients, runs := map[string]*Client{}, map[string]running{}
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			os.Exit(0)
		}
		var r report
		err := do(o, &r, clients, runs)
		switch {
		case errors.As(err, &r.Held):
			r.Kind = failHeld
		case errors.Is(err, stopevidence.ErrIncomplete):
			r.Kind = failIncomplete
		case errors.Is(err, machine.ErrStranger):
			r.Kind = failStranger
		}
		if err != nil {
			r.Err = err.Error()
		}
		if err := out.Encode(r); err != nil {
			os.Exit(1)
		}
	}
}

func do(o order, r *report, clients map[string]*Client, runs map[string]running) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, p := clients[o.Box], runs[o.Box+" "+o.Host]
	switch o.Do {
	case "dial":
		c, err = Dial(ctx, o.Socket, o.Box)
		clients[o.Box] = c
	case "spawn":
		read, write, perr := os.Pipe()
		if perr != nil {
			return perr
		}
		p.output = bufio.NewReader(read)
		p.Process, err = c.Spawn(ctx, machine.Spec{Host: o.Host, Command: []string{"/bin/sh", "-c", o.Script}, Dir: "/",
			Env: []string{"PATH=/usr/bin:/bin"}, Output: write, As: o.As})
		write.Close()
		if err == nil {
			runs[o.Box+" "+o.Host] = p
			r.PID, r.Cgroup = p.PID(), c.Cgroup(o.Host)
		}
	case "line":
		r.Output, err = p.output.ReadString('\n')
	case "exited":
		<-p.Exited()
	case "terminate":
		err = p.Terminate()
	case "empty":
		r.Empty, err = p.Empty()
	case "listens":
		err = p.Listens(o.Port)
	case "end":
		r.Status, err = p.End(ctx)
	case "end-host":
		err = c.End(ctx, o.Host)
	case "stopped":
		r.Checks, err = c.WritersStopped(ctx, o.Host, o.Look, o.Except)
	case "collect":
		r.Seen, err = c.Collect(ctx, o.Host, o.Look)
	case "raw":
		r.Output, err = raw(o)
	case "pose":
		var l *net.UnixListener
		if l, err = net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: o.Socket}); err == nil {
			for err == nil {
				_, err = l.AcceptUnix()
			}
		}
	}
	return err
}

// raw sends bytes, with files, and says what came back.
func raw(o order) (string, error) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Net: "unixpacket", Name: o.Socket})
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetWriteBuffer(2 * maxMessage); err != nil {
		return "", err
	}
	var fds []int
	for range o.Files {
		fds = append(fds, 2)
	}
	var oob []byte
	if len(fds) > 0 {
		oob = syscall.UnixRights(fds...)
	}
	if o.Raw != nil {
		if _, _, err := c.WriteMsgUnix(o.Raw, oob, nil); err != nil {
			return "", err
		}
	}
	buf := make([]byte, maxMessage)
	n, err := c.Read(buf)
	if errors.Is(err, io.EOF) {
		return "", nil
	}
	return string(buf[:n]), err
}

// agent is such a process.
type agent struct {
	t   *testing.T
	cmd *exec.Cmd
	in  *json.Encoder
	out *json.Decoder
}

func startAgent(t *testing.T, uid uint32) *agent {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "ROOTHELPER_TEST=agent")
	cmd.Dir, cmd.Stderr = "/", os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: agentGID}}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	a := &agent{t: t, cmd: cmd, in: json.NewEncoder(in), out: json.NewDecoder(out)}
	t.Cleanup(a.kill)
	return a
}

func (a *agent) kill() {
	if a.cmd.ProcessState == nil {
		require.NoError(a.t, a.cmd.Process.Kill())
		require.Error(a.t, a.cmd.Wait())
	}
}

// try has the agent do something.
func (a *agent) try(o order) (r report) {
	a.t.Helper()
	require.NoError(a.t, a.in.Encode(o))
	require.NoError(a.t, a.out.Decode(&r))
	return r
}

// do has the agent do what must not fail.
func (a *agent) do(o order) report {
	a.t.Helper()
	r := a.try(o)
	require.Empty(a.t, r.Err)
	return r
}

// spawn starts a script as a host of box-1.
func (a *agent) spawn(host, script string) report {
	a.t.Helper()
	return a.do(order{Do: "spawn", Box: "box-1", Host: host, Script: script})
}

// number reads one line of a run's output.
func (a *agent) number(host string) int {
	a.t.Helper()
	n, err := strconv.Atoi(trim(a.do(order{Do: "line", Box: "box-1", Host: host}).Output))
	require.NoError(a.t, err)
	return n
}

func trim(s string) string { return s[:len(s)-1] }

// rig is a helper's place.
type rig struct {
	t      *testing.T
	cfg    Config
	cgroup string // of cfg.Parent, in the hierarchy
	log    *logged
}

// logged is a log that several write.
type logged struct {
	mu   sync.Mutex
	text []byte
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	return len(b), nil
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

func newRig(t *testing.T) *rig {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		require.NoError(t, os.Chmod(d, 0o755)) // the agent is another user
	}
	made := stoptest.Cgroup(t)
	r := &rig{t: t, cgroup: "/" + filepath.Base(made) + "/regionha", log: &logged{}}
	parent, err := machine.OpenCgroups(r.cgroup, "")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, parent.EndAll(context.Background()))
		require.NoError(t, os.Remove(parent.Parent()))
	})
	r.cfg = Config{Socket: filepath.Join(dir, "helper", "sock"), Parent: parent, Agent: machine.Owner{UID: agentUID, GID: agentGID},
		Log: slog.New(slog.NewTextHandler(r.log, nil))}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

// serve runs the helper in this process until the test or stop ends.
func (r *rig) serve() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, r.cfg) }()
	r.awaitSocket()
	stop = sync.OnceFunc(func() { cancel(); require.NoError(r.t, <-done) })
	r.t.Cleanup(stop)
	return stop
}

// process runs the helper as one that can be killed.
func (r *rig) process() (kill func()) {
	cmd := exec.Command("/proc/self/exe", r.cfg.Socket, r.cgroup)
	cmd.Env, cmd.Stderr = append(os.Environ(), "ROOTHELPER_TEST=helper"), r.log
	require.NoError(r.t, cmd.Start())
	kill = sync.OnceFunc(func() { require.NoError(r.t, cmd.Process.Kill()); _ = cmd.Wait() })
	r.t.Cleanup(kill)
	r.awaitSocket()
	return kill
}

func (r *rig) awaitSocket() {
	require.Eventually(r.t, func() bool {
		c, err := net.Dial("unixpacket", r.cfg.Socket)
		return err == nil && c.Close() == nil
	}, patience, time.Millisecond)
}

// agent is an agent of box-1 that has found the helper.
func (r *rig) agent() *agent {
	a := startAgent(r.t, agentUID)
	a.do(order{Do: "dial", Socket: r.cfg.Socket, Box: "box-1"})
	return a
}

func alive(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	var state string
	for i := len(b) - 1; i > 0; i-- {
		if b[i] == ')' {
			state = string(b[i+2 : i+3])
			break
		}
	}
	return state != "Z" && state != "X"
}

func awaitDead(t *testing.T, within time.Duration, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !alive(pid) }, within, time.Millisecond)
	}
}
