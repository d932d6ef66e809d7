package roothelper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/record"
)

// spawn starts a host's command and stays with it: the run lives at most as long
// as its connection.
func (s *server) spawn(ctx context.Context, c conn, r request, output *os.File) error {
	as := machine.Owner{UID: r.Run.UID, GID: r.Run.GID}
	if as != s.cfg.Agent {
		err := fmt.Errorf("uid %d, gid %d: commands run as uid %d, gid %d only", as.UID, as.GID, s.cfg.Agent.UID, s.cfg.Agent.GID)
		return errors.Join(err, c.send(failed(r.Do, err), nil))
	}
	box, err := s.cfg.Parent.Below(r.Box)
	if err == nil {
		err = s.boxes.make(r.Box, box)
	}
	if err != nil {
		return errors.Join(err, c.send(failed(r.Do, err), nil))
	}
	waiting, cancel := context.WithTimeout(ctx, s.cfg.wait)
	defer cancel()
	release, err := s.hosts.take(waiting, box.Cgroup(r.Host))
	if err != nil {
		return errors.Join(err, c.send(failed(r.Do, err), nil))
	}
	defer release()
	child, err := box.Spawn(waiting, machine.Spec{
		Host: r.Host, Command: r.Run.Command, Dir: r.Run.Dir, Env: r.Run.Env, Output: output, As: &as,
	})
	if err != nil {
		return c.send(failed(r.Do, err), nil) // the agent's to log: its app does not start
	}
	log := s.cfg.Log.With("box", r.Box, "host", r.Host, "pid", child.PID())
	log.Info("started")
	_ = output.Close() // the run's copy is the last one: its reader sees the run's end
	err = follow(c, child)
	status := kill(child, func(err error) { log.Warn("a run does not end", "err", err) })
	log.Info("ended", "status", status)
	if errors.Is(err, errEnded) {
		return c.send(reply{V: 1, Do: doEnd, Status: status}, nil)
	}
	return nil
}

// errEnded: the agent asked for the end, and waits for its answer.
var errEnded = errors.New("asked to end")

// follow does what the run's connection asks for, until that is the end of the
// run: asked for, the connection's own, or the helper's.
func follow(c conn, child machine.Process) error {
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if err := c.send(reply{V: 1, Do: doSpawn, PID: child.PID()}, nil); err != nil {
		return err
	}
	over := make(chan struct{})
	told := make(chan struct{})
	go func() {
		defer close(told)
		select {
		case <-child.Exited():
			_ = c.send(reply{V: 1, Do: doExited}, nil) // a peer that is gone is seen by the reader
		case <-over:
		}
	}()
	defer func() { close(over); <-told }()
	buf := make([]byte, 4<<10)
	for {
		b, file, err := c.receive(buf)
		if err != nil {
			return err
		}
		if file != nil {
			return errors.Join(errors.New("a file came where none is taken"), file.Close())
		}
		answer, err := obey(b, child)
		if err != nil {
			return err
		}
		if err := c.send(answer, nil); err != nil {
			return err
		}
	}
}

// obey does one request on a run's connection. An error ends the run.
func obey(b []byte, child machine.Process) (reply, error) {
	r, err := record.Decode[request](b)
	if err != nil {
		return reply{}, err
	}
	switch r {
	case request{V: 1, Do: doEnd}:
		return reply{}, errEnded
	case request{V: 1, Do: doTerminate}:
		err = child.Terminate()
	case request{V: 1, Do: doListens, Port: r.Port}:
		err = child.Listens(r.Port)
	default:
		return reply{}, fmt.Errorf("a run is not asked for %.20q", r.Do)
	}
	if err != nil {
		return failed(r.Do, err), nil
	}
	return reply{V: 1, Do: r.Do}, nil
}

// kill ends a run, however long that takes: nothing is answered, and nothing
// else starts for the host, while a process of it may live.
func kill(child machine.Process, warn func(error)) (status string) {
	for {
		bound, cancel := context.WithTimeout(context.Background(), sayTime)
		status, err := child.End(bound)
		cancel()
		if err == nil {
			return status
		}
		warn(err)
	}
}
