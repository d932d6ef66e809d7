package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/regionfile"
)

// drained is a host that serves on box-1 of two while rows are written, and a
// worker that drains it.
type drained struct {
	*deployment
	source, target *rig
	load           *load
	end            func() // of load and worker
}

func newDrained(t *testing.T) *drained {
	if os.Geteuid() != 0 {
		t.Skip("a stop is proven by root only")
	}
	cgroup := "/regionha-test-" + record.Nonce()
	own, err := machine.OpenCgroups(cgroup, "")
	if err != nil {
		t.Skip("needs cgroup v2: ", err)
	}
	t.Cleanup(func() { removeCgroups(t, own.Parent()) })
	d := &drained{deployment: newDeployment(t, 2, cgroup)}
	d.source, d.target = d.rigs[0], d.rigs[1]
	d.source.create()
	return d
}

func removeCgroups(t *testing.T, dir string) {
	children, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, c := range children {
		if c.IsDir() {
			removeCgroups(t, filepath.Join(dir, c.Name()))
		}
	}
	require.Eventually(t, func() bool { return os.Remove(dir) == nil }, 10*time.Second, 10*time.Millisecond)
}

// drive makes the worker's steps until ctx ends.
func (d *drained) drive(ctx context.Context) {
	hints := hint.NewSender(hint.Sender{Secret: d.secret, Peers: d.internals,
		Bump: func(ctx context.Context, changes ...regionfile.Change) error {
			return regionfile.Tell(ctx, d.control, "ie", changes...)
		}})
	w := &hostrelocate.Worker{Control: d.control, Data: d.data, Region: "ie", Self: hostclaim.Member{Box: "box-9", Enrollment: "enr-9"},
		Roster: d.roster, Changed: func(_ context.Context, c *hostclaim.Claim) { hints.Send(hintOf(c)) }}
	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() { _ = hints.Run(ctx) })
	for again := time.Duration(0); pause.For(ctx, again); {
		again = 20 * time.Millisecond
		o, err := hostclaim.Read(ctx, d.control, testHost)
		if err != nil {
			continue
		}
		turn, err := w.Step(ctx, o)
		if err == nil && o.Claim.Op.Kind == hostclaim.Serving && o.Claim.Op.Exec == "box-1" {
			turn, err = w.Drain(ctx, o, hostclaim.Drain, hostclaim.Member{Box: "box-2", Enrollment: "enr-2"})
		}
		if err == nil && turn.Did != "" {
			again = 0
		}
	}
}

// internals is where the boxes take hints.
func (d *drained) internals([]string) (list []string) {
	for _, r := range d.rigs {
		if addr, err := os.ReadFile(filepath.Join(r.data, "internal.addr")); err == nil {
			list = append(list, strings.TrimSpace(string(addr)))
		}
	}
	return list
}

// begin starts the load, through a box's ingress, and then the drain.
func (d *drained) begin(through *rig) {
	ctx, stop := context.WithCancel(d.t.Context())
	var loops sync.WaitGroup
	d.load = &load{through: through}
	loops.Go(func() { d.load.run(ctx) })
	d.end = func() { stop(); loops.Wait() }
	d.t.Cleanup(d.end)
	through.eventually(func() bool { return d.load.count() > 5 })
	loops.Go(func() { d.drive(ctx) })
}

// finish waits until box-2 serves what is written.
func (d *drained) finish() *hostclaim.Claim {
	c := d.target.claim(func(c *hostclaim.Claim) bool { return c.Op.Kind == hostclaim.Serving && c.Op.Exec == "box-2" })
	n := d.load.count()
	d.target.eventually(func() bool { return d.load.count() > n+5 })
	d.end()
	return c
}

// load writes rows through a box's ingress, one after the other.
type load struct {
	through *rig
	mu      sync.Mutex
	acked   []string
	failed  []string // what became of these is not known
}

func (l *load) run(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		row := fmt.Sprint("r", n)
		_, err := l.through.ask(http.MethodPost, row)
		l.mu.Lock()
		if err == nil {
			l.acked = append(l.acked, row)
		} else {
			l.failed = append(l.failed, row+": "+err.Error())
		}
		l.mu.Unlock()
		pause.For(ctx, time.Millisecond)
	}
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// nothingLost holds what box-2 serves to what was acknowledged.
func (d *drained) nothingLost(c *hostclaim.Claim) {
	last := c.Holder.Admissions[len(c.Holder.Admissions)-1]
	for _, a := range c.Holder.Admissions {
		require.Nil(d.t, a.WritesLost)
	}
	require.Contains(d.t, []hostclaim.Coverage{hostclaim.Released, hostclaim.CleanReturn}, last.Coverage)
	stored := map[string]int{}
	for _, row := range strings.Fields(d.target.rows()) {
		stored[row]++
	}
	for _, row := range d.load.acked {
		require.Equal(d.t, 1, stored[row], row)
		require.FileExists(d.t, filepath.Join(d.target.data, "hosts", testHost, "files", row))
	}
}

func TestADrainLosesNothingAndNoClientSeesIt(t *testing.T) {
	d := newDrained(t)
	d.source.start()
	d.target.start()
	d.source.claim(served(0))
	d.target.put("first")
	d.begin(d.target)
	c := d.finish()
	d.nothingLost(c)
	require.Empty(t, d.load.failed)
	require.Equal(t, hostclaim.Released, c.Holder.Admissions[len(c.Holder.Admissions)-1].Coverage)
	require.NoDirExists(t, filepath.Join(d.target.data, "hosts", testHost, "warm"), "what was fetched early is gone")
}

// TestABoxThatDiesAnywhereInADrainLosesNothing kills the source or the target at
// each crash point, under load, and starts it again: the drain ends all the
// same, and what was flushed for it is never flushed again once that is
// journaled.
func TestABoxThatDiesAnywhereInADrainLosesNothing(t *testing.T) {
	points := CrashPoints()
	if testing.Short() {
		points = []string{"acknowledged", "stopped", "journaled", "receipted", "built", "admitted"}
	}
	journaled := slices.Index(crashPoints, "journaled")
	for _, at := range points {
		n := slices.Index(crashPoints, at)
		source := n >= slices.Index(crashPoints, "releasing") && n <= slices.Index(crashPoints, "released")
		if source || n <= slices.Index(crashPoints, "acknowledged") {
			t.Run(at+" on the source", func(t *testing.T) {
				t.Parallel()
				d := newDrained(t)
				d.target.start()
				d.dies(crashed{d.source, at}, d.target)
				d.source.stop(syscall.SIGTERM)
				flushed := strings.Count(d.source.log.String(), flushedForRelease)
				switch {
				case n < slices.Index(crashPoints, "releasing"):
					require.LessOrEqual(t, flushed, 1, "a session that ended before is released at its end")
				case n < journaled:
					require.Equal(t, 1, flushed)
				default:
					require.Zero(t, flushed, "the positions that were journaled are the release's")
				}
			})
		}
		if !source {
			t.Run(at+" on the target", func(t *testing.T) {
				t.Parallel()
				d := newDrained(t)
				d.source.start()
				d.dies(crashed{d.target, at}, d.source)
			})
		}
	}
}

// dies drains under load while a box dies at its crash point, once.
func (d *drained) dies(victim crashed, through *rig) {
	victim.start()
	d.source.claim(served(0))
	through.put("first")
	d.begin(through)
	victim.restart()
	d.nothingLost(d.finish())
}

// crashed is a box that ends at a crash point, and is started again.
type crashed struct {
	*rig
	at string
}

func (r crashed) start() {
	env := r.env
	r.env = append(slices.Clone(env), "REGIONHA_CRASH="+r.at)
	r.rig.start()
	r.env = env
}

// restart waits until the box died at its point, and starts it again.
func (r crashed) restart() {
	ended := make(chan error, 1)
	go func() { ended <- r.agent.Wait() }()
	select {
	case err := <-ended:
		exit, ok := errors.AsType[*exec.ExitError](err)
		require.True(r.t, ok, "%v", err)
		require.Equal(r.t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
	case <-time.After(60 * time.Second):
		require.Fail(r.t, "the point is never reached", r.at)
	}
	r.agent = nil
	r.log.Reset()
	r.rig.start()
}
