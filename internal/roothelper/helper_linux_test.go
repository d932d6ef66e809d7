package roothelper

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/stopevidence"
)

const host = "notes.example"

func on(do string) order { return order{Do: do, Box: "box-1", Host: host} }

func TestARunStartsAnswersAndEnds(t *testing.T) {
	r := newRig(t)
	r.serve()
	a := r.agent()
	s := a.spawn(host, "id -u; id -G; echo $0 >&2; exec sleep 1000")
	require.Equal(t, "65534\n", a.do(on("line")).Output, "it is the agent's user")
	require.Equal(t, "65533\n", a.do(on("line")).Output, "with no other group")
	require.Equal(t, "/bin/sh\n", a.do(on("line")).Output, "and both of its outputs arrive")
	procs, err := os.ReadFile(filepath.Join(s.Cgroup, "cgroup.procs"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintln(s.PID), string(procs))
	require.Equal(t, filepath.Join(r.cfg.Parent.Parent(), "box-1", "app-"+host), s.Cgroup)
	require.False(t, a.do(on("empty")).Empty)
	require.Equal(t, failStranger, a.try(order{Do: "listens", Box: "box-1", Host: host, Port: 1}).Kind)
	a.do(on("terminate"))
	a.do(on("exited"))
	require.Equal(t, "signal: terminated", a.do(on("end")).Status)
	require.Equal(t, "signal: terminated", a.do(on("end")).Status, "asked again, it is the same")
	require.NoDirExists(t, s.Cgroup)
	require.True(t, a.do(on("empty")).Empty)
}

func TestAnExitIsToldAndItsForksAreEnded(t *testing.T) {
	r := newRig(t)
	r.serve()
	a := r.agent()
	a.spawn(host, "setsid sleep 1000 & echo $!; exit 4")
	fork := a.number(host)
	a.do(on("exited"))
	require.False(t, a.do(on("empty")).Empty)
	require.Equal(t, "exit status 4", a.do(on("end")).Status)
	require.False(t, alive(fork))
}

func TestACommandThatDoesNotStartIsSaid(t *testing.T) {
	r := newRig(t)
	r.serve()
	a := r.agent()
	body := encoded(t, validSpawn(func(q *request) { q.Run.Command = []string{"/no/such/program"} }))
	got := a.do(order{Do: "raw", Socket: r.cfg.Socket, Raw: body, Files: 1})
	require.Contains(t, got.Output, "no such file or directory")
	a.spawn(host, "true")
}

// TestADeadAgentsRunsAreKilled: whatever they forked, and wherever to.
func TestADeadAgentsRunsAreKilled(t *testing.T) {
	r := newRig(t)
	r.serve()
	a, other := r.agent(), r.agent()
	var pids []int
	for i := range 5 {
		name := fmt.Sprintf("h%d.example", i)
		s := a.spawn(name, "trap '' TERM; setsid sleep 1000 & echo $!; while :; do sleep 1; done")
		pids = append(pids, s.PID, a.number(name))
	}
	kept := other.spawn("kept.example", "exec sleep 1000")
	a.kill()
	awaitDead(t, time.Second, pids...)
	require.True(t, alive(kept.PID), "another agent's lives on")
	next := r.agent()
	next.spawn("h0.example", "exec sleep 1000")
}

// TestADeadHelpersRunsDie: the kernel kills each run's first process with it,
// the next helper what they forked, and the agent's End waits for that.
func TestADeadHelpersRunsDie(t *testing.T) {
	r := newRig(t)
	kill := r.process()
	a := r.agent()
	s := a.spawn(host, "setsid sleep 1000 & echo $!; while :; do sleep 1; done")
	fork := a.number(host)
	kill()
	awaitDead(t, time.Second, s.PID)
	a.do(on("exited"))
	require.True(t, alive(fork))
	require.False(t, a.do(on("empty")).Empty, "which the agent sees")
	require.NotEmpty(t, a.try(on("terminate")).Err)
	require.NotEmpty(t, a.try(order{Do: "spawn", Box: "box-1", Host: "b.example", Script: "true"}).Err)

	r.process()
	awaitDead(t, time.Second, fork)
	require.Contains(t, a.do(on("end")).Status, "helper is gone")
	next := a.spawn(host, "exec sleep 1000")
	require.True(t, alive(next.PID), "the next one serves the same agent")
	a.do(on("end"))
}

func TestAHelperThatIsToldToEndEndsItsRuns(t *testing.T) {
	r := newRig(t)
	stop := r.serve()
	a := r.agent()
	s := a.spawn(host, "setsid sleep 1000 & echo $!; exec sleep 1000")
	fork := a.number(host)
	stop()
	require.False(t, alive(s.PID))
	require.False(t, alive(fork))
	require.Equal(t, "the root helper is gone", a.do(on("end")).Status)
}

func TestEndReachesWhatNoConnectionRuns(t *testing.T) {
	r := newRig(t)
	r.cfg.wait = 500 * time.Millisecond
	r.serve()
	a := r.agent()
	a.do(on("end-host"))
	s := a.spawn(host, "exec sleep 1000")
	require.Contains(t, a.try(on("end-host")).Err, "another connection runs this host")
	require.True(t, alive(s.PID))
	a.kill()
	b := r.agent()
	require.Eventually(t, func() bool { return b.try(on("end-host")).Err == "" }, patience, time.Millisecond)
	require.False(t, alive(s.PID))
}

func TestOneHostRunsOnceInEachBox(t *testing.T) {
	r := newRig(t)
	r.cfg.wait = 500 * time.Millisecond
	r.serve()
	a, b := r.agent(), r.agent()
	s := a.spawn(host, "exec sleep 1000")
	require.Contains(t, b.try(order{Do: "spawn", Box: "box-1", Host: host, Script: "true"}).Err, "another connection runs this host")
	require.True(t, alive(s.PID))

	b.do(order{Do: "dial", Socket: r.cfg.Socket, Box: "box-2"})
	second := b.do(order{Do: "spawn", Box: "box-2", Host: host, Script: "exec sleep 1000"})
	b.do(order{Do: "end", Box: "box-2", Host: host})
	require.False(t, alive(second.PID))
	require.True(t, alive(s.PID))
}

// TestCgroupsAreMadeForFewBoxes, whatever a peer asks for, and for none that
// nothing runs of and nobody looks for.
func TestCgroupsAreMadeForFewBoxes(t *testing.T) {
	r := newRig(t)
	r.serve()
	a := r.agent()
	a.do(on("end-host"))
	below := func(box string) string { return filepath.Join(r.cfg.Parent.Parent(), box) }
	require.NoDirExists(t, below("box-1"))
	look := func(box string) string {
		a.do(order{Do: "dial", Socket: r.cfg.Socket, Box: box})
		return a.try(order{Do: "collect", Box: box, Host: host, Look: stopevidence.Subject{Database: "/none"}}).Err
	}
	require.Empty(t, look("box-1"))
	spawn := func(box string) string {
		a.do(order{Do: "dial", Socket: r.cfg.Socket, Box: box})
		return a.try(order{Do: "spawn", Box: box, Host: host, Script: "true"}).Err
	}
	for i := range maxBoxes - 1 {
		require.Empty(t, spawn(fmt.Sprint("try-", i)))
		require.DirExists(t, below(fmt.Sprint("try-", i)))
	}
	require.Contains(t, spawn("one-more"), "takes no more")
	require.Contains(t, look("one-more"), "takes no more")
	require.NoDirExists(t, below("one-more"))
	a.do(order{Do: "end", Box: "try-0", Host: host})
	require.Empty(t, spawn("try-0"))
}

func TestOnlyTheAgentsUserIsAnswered(t *testing.T) {
	r := newRig(t)
	r.serve()
	require.NoError(t, os.Chmod(r.cfg.Socket, 0o666), "the socket's mode is not what keeps others out")
	_, err := Dial(t.Context(), r.cfg.Socket, "box-1")
	require.Error(t, err, "not even root")
	b := startAgent(t, 65532)
	require.NotEmpty(t, b.try(order{Do: "dial", Socket: r.cfg.Socket, Box: "box-1"}).Err)
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "uid=65532 want=65534") }, patience, time.Millisecond)
}

func TestTheSocketIsTheAgentsAlone(t *testing.T) {
	r := newRig(t)
	r.serve()
	info, err := os.Stat(r.cfg.Socket)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Contains(t, startAgent(t, 65532).try(order{Do: "dial", Socket: r.cfg.Socket, Box: "box-1"}).Err, "permission denied")
}

func TestNothingRunsAsAnyoneElse(t *testing.T) {
	r := newRig(t)
	r.serve()
	a := r.agent()
	for _, as := range []machine.Owner{{}, {UID: 0, GID: agentGID}, {UID: agentUID, GID: 0}, {UID: 1, GID: agentGID}, {UID: agentUID, GID: 1}} {
		got := a.try(order{Do: "spawn", Box: "box-1", Host: host, Script: "true", As: &as})
		require.Contains(t, got.Err, fmt.Sprintf("uid %d, gid %d", as.UID, as.GID))
	}
	require.NoDirExists(t, filepath.Join(r.cfg.Parent.Parent(), "box-1", "app-"+host))
}

func TestAHelperForRootIsRefused(t *testing.T) {
	r := newRig(t)
	for _, owner := range []machine.Owner{{}, {UID: 0, GID: 1}, {UID: 1, GID: 0}} {
		r.cfg.Agent = owner
		require.ErrorContains(t, Serve(t.Context(), r.cfg), "not root")
	}
	require.NoFileExists(t, r.cfg.Socket)
}

func TestOneHelperHasACgroupAndASocket(t *testing.T) {
	r := newRig(t)
	r.serve()
	a := r.agent()
	s := a.spawn(host, "exec sleep 1000")
	second := r.cfg
	second.Socket += "2"
	require.ErrorContains(t, Serve(t.Context(), second), "another helper has the cgroup")
	second = newRig(t).cfg
	second.Socket = r.cfg.Socket
	require.ErrorContains(t, Serve(t.Context(), second), "another helper answers")
	require.True(t, alive(s.PID))

	second.Socket = filepath.Join(filepath.Dir(r.cfg.Socket), "file")
	require.NoError(t, os.WriteFile(second.Socket, []byte("mine"), 0o600))
	require.ErrorContains(t, Serve(t.Context(), second), "no socket")
	require.FileExists(t, second.Socket)
}

func TestAHelperThatIsNotRootIsNotBelieved(t *testing.T) {
	r := newRig(t)
	dir := filepath.Dir(r.cfg.Socket)
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Chown(dir, agentUID, agentGID))
	impostor, a := startAgent(t, agentUID), startAgent(t, agentUID)
	require.NoError(t, impostor.in.Encode(order{Do: "pose", Socket: r.cfg.Socket}))
	r.awaitSocket()
	require.Contains(t, a.try(order{Do: "dial", Socket: r.cfg.Socket, Box: "box-1"}).Err, "want root")
}

// TestWhatIsNotARequestIsRefused: and the helper serves on.
func TestWhatIsNotARequestIsRefused(t *testing.T) {
	r := newRig(t)
	r.serve()
	a := r.agent()
	good := encoded(t, validSpawn(func(*request) {}))
	for name, o := range map[string]order{
		"garbage":           {Raw: []byte("\x00\xff garbage")},
		"cut":               {Raw: good[:len(good)-1], Files: 1},
		"one byte":          {Raw: []byte("{")},
		"too long":          {Raw: bytes.Repeat([]byte("x"), maxMessage+1)},
		"spawn, no output":  {Raw: good},
		"two outputs":       {Raw: good, Files: 2},
		"nine outputs":      {Raw: good, Files: 9},
		"an output of none": {Raw: encoded(t, request{V: 1, Do: doHello, Box: "box-1"}), Files: 1},
	} {
		t.Run(name, func(t *testing.T) {
			o.Do, o.Socket = "raw", r.cfg.Socket
			got := a.try(o)
			if got.Output != "" {
				require.Contains(t, got.Output, `"fail":"failed"`)
			}
		})
	}
	require.NoDirExists(t, filepath.Join(r.cfg.Parent.Parent(), "box-1", "app-"+host))
	before, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for range 50 {
		a.try(order{Do: "raw", Socket: r.cfg.Socket, Raw: good, Files: 9})
	}
	require.Eventually(t, func() bool {
		after, err := os.ReadDir("/proc/self/fd")
		return err == nil && len(after) <= len(before)
	}, patience, time.Millisecond, "no descriptor that came is kept")
	a.spawn(host, "true")
}

func TestASilentPeerIsLeft(t *testing.T) {
	r := newRig(t)
	r.cfg.wait = 10 * time.Millisecond
	r.serve()
	a := startAgent(t, agentUID)
	require.Empty(t, a.do(order{Do: "raw", Socket: r.cfg.Socket, Raw: nil}).Output)
}

func TestWhatARunIsNotAskedForEndsIt(t *testing.T) {
	for _, bad := range []request{{V: 2, Do: doEnd}, {V: 1, Do: doHello, Box: "box-1"}, {V: 1, Do: doEnd, Host: host}, {V: 1}} {
		_, err := obey(encoded(t, bad), nil)
		require.Error(t, err, bad)
	}
	_, err := obey([]byte("garbage"), nil)
	require.ErrorIs(t, err, record.ErrMalformed)
	_, err = obey(encoded(t, request{V: 1, Do: doEnd}), nil)
	require.ErrorIs(t, err, errEnded)
}

// TestLooksThroughTheHelperAreRootsOwn: the same as in this process, which is
// root.
func TestLooksThroughTheHelperAreRootsOwn(t *testing.T) {
	r := newRig(t)
	r.serve()
	a := r.agent()
	database := filepath.Join(t.TempDir(), "app.db")
	f, err := os.Create(database)
	require.NoError(t, err)
	defer f.Close()
	mine, err := stopevidence.ProcessDescriptors(database)
	require.NoError(t, err)
	require.NotEmpty(t, mine)
	box, err := r.cfg.Parent.Below("box-1")
	require.NoError(t, err)
	require.NoError(t, box.Make())
	subject := stopevidence.Subject{Database: database, Known: mine}

	want, err := box.WritersStopped(t.Context(), host, subject, mine)
	require.NoError(t, err)
	got := a.do(order{Do: "stopped", Box: "box-1", Host: host, Look: subject, Except: mine})
	require.Equal(t, names(want), names(got.Checks))

	var held *stopevidence.HeldError
	_, err = box.Collect(t.Context(), host, subject)
	require.ErrorAs(t, err, &held)
	refused := a.try(order{Do: "collect", Box: "box-1", Host: host, Look: subject})
	require.Equal(t, held, refused.Held)

	s := a.spawn(host, "exec sleep 1000")
	refused = a.try(order{Do: "stopped", Box: "box-1", Host: host, Look: subject, Except: mine})
	require.Contains(t, refused.Err, "not stopped")
	require.NotEmpty(t, refused.Held.Cgroup, "the helper fills in the cgroup, whatever the agent says")
	a.do(on("end"))
	require.False(t, alive(s.PID))

	require.NoError(t, f.Close())
	boot, err := machine.BootID()
	require.NoError(t, err)
	began := time.Now()
	seen := a.do(order{Do: "collect", Box: "box-1", Host: host, Look: subject}).Seen
	require.Equal(t, boot, seen.BootID)
	require.WithinRange(t, seen.At, began, time.Now())
	require.Equal(t, time.UTC, seen.At.Location())
	require.Equal(t, []string{stopevidence.CgroupEmpty, stopevidence.NoHolders}, names(seen.Checks))
}

func names(checks []stopevidence.Check) (list []string) {
	for _, c := range checks {
		if c.Passed {
			list = append(list, c.Name)
		}
	}
	return list
}
