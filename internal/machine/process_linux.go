package machine

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A run is a child of this process. Its goroutine owns the first process from
// start to reap.
type run struct {
	cmd    *exec.Cmd
	tree   Tree
	exited chan struct{} // closed when it exited; its number is kept until reap
	reap   chan struct{}
	status chan error

	ending sync.Mutex
	ended  string // how it ended, once it was reaped
}

// start starts the command as the leader of a process group, in the tree's
// cgroup, which must not be there yet, if it has one.
func start(s Spec, t Tree) (*run, error) {
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Dir, cmd.Env = s.Dir, s.Env
	if s.Output != nil {
		cmd.Stdout, cmd.Stderr = s.Output, s.Output
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if s.As != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: s.As.UID, Gid: s.As.GID}
	}
	r := &run{cmd: cmd, tree: t, exited: make(chan struct{}), reap: make(chan struct{}), status: make(chan error, 1)}
	started := make(chan error)
	go r.own(started)
	if err := <-started; err != nil {
		return nil, err
	}
	r.tree.PID = cmd.Process.Pid
	var err error
	if r.tree.Start, err = StartTime(r.tree.PID); err != nil {
		_, ended := r.End(context.Background())
		return nil, errors.Join(err, ended)
	}
	return r, nil
}

// own starts the process and keeps it until it may be reaped. It holds on to its
// thread all that time, because the kernel ends the child when the thread that
// started it ends.
func (r *run) own(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := startIn(r.cmd, r.tree.Cgroup)
	started <- err
	if err != nil {
		return
	}
	awaitExit(r.cmd.Process.Pid)
	close(r.exited)
	<-r.reap
	r.status <- r.cmd.Wait()
}

func startIn(cmd *exec.Cmd, cgroup string) error {
	if cgroup == "" {
		return cmd.Start()
	}
	if err := os.Mkdir(cgroup, 0o755); err != nil {
		return err
	}
	dir, err := os.Open(cgroup)
	if err != nil {
		return err
	}
	defer dir.Close()
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return cmd.Start()
}

// awaitExit waits until pid, a child, exited, and leaves it unreaped: as long as
// it is a zombie nobody else gets its number, nor its group's.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return // any other error: it is no child any more
		}
	}
}

func (r *run) PID() int { return r.tree.PID }

func (r *run) Exited() <-chan struct{} { return r.exited }

// Terminate is refused once the process was reaped: its group's number may then
// be a stranger's.
func (r *run) Terminate() error {
	r.ending.Lock()
	defer r.ending.Unlock()
	if r.ended != "" {
		return nil
	}
	return ignore(unix.Kill(-r.tree.PID, unix.SIGTERM), noProcess)
}

func (r *run) Empty() (bool, error) { return r.tree.empty() }

func (r *run) Listens(port int) error { return r.tree.listens(port) }

func (r *run) End(ctx context.Context) (string, error) {
	r.ending.Lock()
	defer r.ending.Unlock()
	if r.ended != "" {
		return r.ended, nil
	}
	if err := r.tree.End(ctx); err != nil {
		return "", err
	}
	close(r.reap)
	r.ended = "exit status 0"
	if err := <-r.status; err != nil {
		r.ended = err.Error()
	}
	return r.ended, nil
}

// StartTime is when a process started, in the kernel's clock ticks since the
// boot: it and the number name a process that lives or is not yet reaped.
func StartTime(pid int) (uint64, error) {
	s, err := readStat(pid)
	return s.start, err
}
