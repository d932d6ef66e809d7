package runner

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// own starts the process and keeps it until it may be reaped. It holds on to its
// thread all that time, because the kernel ends the child when the thread that
// started it ends.
func (c *child) own(t tree, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := startIn(c.cmd, t)
	started <- err
	if err != nil {
		return
	}
	awaitExit(c.cmd.Process.Pid)
	close(c.exited)
	<-c.reap
	c.status <- c.cmd.Wait()
}

// startIn starts cmd as the leader of a process group, in the tree's cgroup if
// it has one.
func startIn(cmd *exec.Cmd, t tree) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if t.cgroup == "" {
		return cmd.Start()
	}
	if err := os.Mkdir(t.cgroup, 0o755); err != nil {
		return err
	}
	dir, err := os.Open(t.cgroup)
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

func startTime(pid int) (uint64, error) {
	s, err := readStat(pid)
	return s.start, err
}
