package runner

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// A child is one run's first process. Its goroutine owns it from start to reap.
type child struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it exited; its number is kept until reap
	reap   chan struct{}
	status chan error
}

// run runs the app once, from its start until no process of it lives. Its error
// says why it ended by itself; when ctx, the session, ended, it means nothing.
func (a *App) run(ctx context.Context) (err error) {
	l, err := a.cfg.newListener()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.remove()) }()
	c, t, err := a.launch(ctx, l)
	if err != nil {
		return err
	}
	a.set(func(s *State) { s.Phase, s.PID, s.Starts = Starting, t.pid, s.Starts+1 })
	notReady := a.watch(ctx, c, t, l)
	ended := a.end(ctx, c, t)
	if notReady != nil {
		return fmt.Errorf("%w; %w", notReady, ended)
	}
	return ended
}

// launch starts the process and records the run, so that a crash of the agent
// at any point leaves a record of what may live.
func (a *App) launch(ctx context.Context, l listener) (*child, tree, error) {
	boot, err := bootID()
	if err != nil {
		return nil, tree{}, err
	}
	r := run{V: 1, Host: a.cfg.Host, Session: a.cfg.Session, BootID: boot}
	if a.cfg.Cgroup != "" {
		// No file of the kernel's has this prefix; a host may be called
		// cgroup.procs.
		r.Cgroup = filepath.Join(a.cfg.Cgroup, "app-"+a.cfg.Host)
		// What is in it now is an earlier run's whose record was lost.
		if err := r.tree().end(ctx); err != nil {
			return nil, tree{}, err
		}
		if err := writeRun(a.cfg.Dir, r); err != nil {
			return nil, tree{}, err
		}
	}
	t := r.tree()
	c, err := a.spawn(l, t)
	if err != nil {
		return nil, tree{}, errors.Join(err, t.remove(), removeRun(a.cfg.Dir))
	}
	t.pid = c.cmd.Process.Pid
	t.start, err = startTime(t.pid)
	if err == nil && r.Cgroup == "" {
		r.PID, r.Start = t.pid, t.start
		err = writeRun(a.cfg.Dir, r)
	}
	if err != nil {
		return nil, tree{}, errors.Join(err, a.end(ctx, c, t))
	}
	return c, t, nil
}

// spawn starts the process in its tree.
func (a *App) spawn(l listener, t tree) (*child, error) {
	cmd := exec.Command(a.cfg.Command[0], a.cfg.Command[1:]...)
	cmd.Dir = a.cfg.workDir()
	cmd.Env = a.cfg.environ(l)
	cmd.Stdout, cmd.Stderr = a.out, a.out
	cmd.WaitDelay = time.Second // a process that left the group may hold its output open
	c := &child{cmd: cmd, exited: make(chan struct{}), reap: make(chan struct{}), status: make(chan error, 1)}
	started := make(chan error)
	go c.own(t, started)
	return c, <-started
}

// watch makes the app ready and returns when it exited, was not ready in time,
// or the session ended.
func (a *App) watch(ctx context.Context, c *child, t tree, l listener) error {
	asking, cancel := context.WithTimeout(ctx, a.cfg.StartTimeout)
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- a.cfg.awaitReady(asking, t, l) }()
	select {
	case err := <-ready:
		if err != nil {
			return err
		}
	case <-c.exited:
		cancel()
		<-ready
		return nil
	}
	a.set(func(s *State) { s.Phase, s.Addr = Ready, l.addr })
	select {
	case <-c.exited:
	case <-ctx.Done():
	}
	return nil
}

// end brings the run to its end and returns why the process exited. While the
// session lasts there is nothing to be gentle to: the process exited, or never
// answered. It returns only when nothing of the run lives, however long that
// takes.
func (a *App) end(ctx context.Context, c *child, t tree) error {
	if ctx.Err() != nil {
		a.set(func(s *State) { s.Phase = Stopping })
		grace := time.NewTimer(a.cfg.StopTimeout)
		defer grace.Stop()
		if err := t.terminate(); err != nil {
			a.cfg.Log.Warn("app cannot be asked to stop", "err", err)
		}
		t.awaitEmpty(grace.C)
	}
	for {
		bound, cancel := context.WithTimeout(context.Background(), warnAfter)
		err := t.end(bound)
		cancel()
		if err == nil {
			break
		}
		a.cfg.Log.Warn("app does not end", "err", err)
	}
	close(c.reap)
	status := <-c.status
	if status == nil {
		status = errors.New("exit status 0")
	}
	return errors.Join(fmt.Errorf("process %d ended: %w", t.pid, status), removeRun(a.cfg.Dir))
}

const warnAfter = 10 * time.Second
