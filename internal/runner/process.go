package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/carlosframework/regionha/internal/machine"
)

// run runs the app once, from its start until no process of it lives. Its error
// says why it ended by itself; when ctx, the session, ended, it means nothing.
func (a *App) run(ctx context.Context) (err error) {
	l, err := a.cfg.newListener()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.remove()) }()
	p, err := a.launch(ctx, l)
	if err != nil {
		return err
	}
	a.set(func(s *State) { s.Phase, s.PID, s.Starts = Starting, p.PID(), s.Starts+1 })
	notReady := a.watch(ctx, p, l)
	ended := a.end(ctx, p)
	if notReady != nil {
		return fmt.Errorf("%w; %w", notReady, ended)
	}
	return ended
}

// launch starts the process and records the run, so that a crash of the agent
// at any point leaves a record of what may live.
func (a *App) launch(ctx context.Context, l listener) (*process, error) {
	boot, err := machine.BootID()
	if err != nil {
		return nil, err
	}
	r := run{V: 1, Host: a.cfg.Host, Session: a.cfg.Session, BootID: boot, Cgroup: a.cfg.spawner().Cgroup(a.cfg.Host)}
	if r.Cgroup != "" {
		if err := writeRun(a.cfg.Dir, r); err != nil {
			return nil, err
		}
	}
	p, err := a.spawn(ctx, l)
	if err != nil {
		return nil, errors.Join(err, removeRun(a.cfg.Dir))
	}
	if r.Cgroup == "" {
		r.PID = p.PID()
		if r.Start, err = machine.StartTime(r.PID); err == nil {
			err = writeRun(a.cfg.Dir, r)
		}
	}
	if err != nil {
		return nil, errors.Join(err, a.end(ctx, p))
	}
	return p, nil
}

// spawn starts the process, with its output going to the log.
func (a *App) spawn(ctx context.Context, l listener) (*process, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	child, err := a.cfg.spawner().Spawn(ctx, machine.Spec{
		Host: a.cfg.Host, Command: a.cfg.Command, Dir: a.cfg.workDir(), Env: a.cfg.environ(l), Output: write,
	})
	err = errors.Join(err, write.Close())
	if child == nil {
		return nil, errors.Join(err, read.Close())
	}
	p := &process{Process: child, output: read, copied: make(chan struct{})}
	go func() {
		defer close(p.copied)
		_, _ = io.Copy(a.out, read) // its writes never fail, and it ends with the pipe
	}()
	return p, nil
}

// process is one run, with what it writes.
type process struct {
	machine.Process
	output *os.File
	copied chan struct{} // closed when all output was read
}

// outputDelay is how long the output of an ended run is waited for: a process
// that left the group may hold it open.
const outputDelay = time.Second

func (p *process) closeOutput() {
	select {
	case <-p.copied:
	case <-time.After(outputDelay):
	}
	_ = p.output.Close() // only read
	<-p.copied
}

// watch makes the app ready and returns when it exited, was not ready in time,
// or the session ended.
func (a *App) watch(ctx context.Context, p *process, l listener) error {
	asking, cancel := context.WithTimeout(ctx, a.cfg.StartTimeout)
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- a.cfg.awaitReady(asking, p, l) }()
	select {
	case err := <-ready:
		if err != nil {
			return err
		}
	case <-p.Exited():
		cancel()
		<-ready
		return nil
	}
	a.set(func(s *State) { s.Phase, s.Addr = Ready, l.addr })
	select {
	case <-p.Exited():
	case <-ctx.Done():
	}
	return nil
}

// end brings the run to its end and returns why the process exited. While the
// session lasts there is nothing to be gentle to: the process exited, or never
// answered. It returns only when nothing of the run lives, however long that
// takes.
func (a *App) end(ctx context.Context, p *process) error {
	if ctx.Err() != nil {
		a.set(func(s *State) { s.Phase = Stopping })
		if err := p.Terminate(); err != nil {
			a.cfg.Log.Warn("app cannot be asked to stop", "err", err)
		}
		awaitEmpty(p, a.cfg.StopTimeout)
	}
	for {
		bound, cancel := context.WithTimeout(context.Background(), warnAfter)
		status, err := p.End(bound)
		cancel()
		if err == nil {
			p.closeOutput()
			return errors.Join(fmt.Errorf("process %d ended: %s", p.PID(), status), removeRun(a.cfg.Dir))
		}
		a.cfg.Log.Warn("app does not end", "err", err)
	}
}

const (
	warnAfter  = 10 * time.Second
	emptyEvery = 5 * time.Millisecond
)

// awaitEmpty waits until no process of the run lives, for at most grace.
func awaitEmpty(p machine.Process, grace time.Duration) {
	done := time.NewTimer(grace)
	defer done.Stop()
	tick := time.NewTicker(emptyEvery)
	defer tick.Stop()
	for {
		if empty, err := p.Empty(); err == nil && empty {
			return
		}
		select {
		case <-done.C:
			return
		case <-tick.C:
		}
	}
}
