package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// machineFlags give a box processes and mounts of its own, so that what it sees
// running is what runs on it.
const machineFlags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS

// machinesPossible reports whether boxes can be machines of their own, by making
// one on which nothing runs. It takes root.
func machinesPossible(self string) bool {
	cmd := exec.Command(self, boxCommand)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: machineFlags}
	return cmd.Run() == nil
}

// serveBox is the first process of a box: it runs one program until that ends,
// and again where it was killed, as a machine's service manager does. Whatever
// is orphaned on the box becomes its child and is reaped.
func serveBox(ctx context.Context, argv []string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts apart: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if len(argv) == 0 {
		return nil
	}
	for {
		status, err := runToEnd(ctx, argv)
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return nil
		case !status.Signaled() || status.Signal() != syscall.SIGKILL:
			return fmt.Errorf("%s ended with status %d", argv[0], status.ExitStatus())
		}
	}
}

// runToEnd runs argv until it ends, and asks it to when ctx does.
func runToEnd(ctx context.Context, argv []string) (syscall.WaitStatus, error) {
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", argv[0], err)
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(pid, syscall.SIGTERM) })
	defer stop()
	for {
		var status syscall.WaitStatus
		switch ended, err := syscall.Wait4(-1, &status, 0, nil); {
		case err != nil && !errors.Is(err, syscall.EINTR):
			return 0, err
		case err == nil && ended == pid:
			return status, nil
		}
	}
}

// killProgram kills the processes of the session that execute the program at
// path, and returns how many those were.
func (p *process) killProgram(path string) (int, error) {
	all, err := p.executing(path)
	for _, m := range all {
		_ = syscall.Kill(m.pid, syscall.SIGKILL) // it may be gone by now
	}
	return len(all), err
}

// peakMemory is the most memory that a process of the session which executes the
// program at path has held, in bytes.
func (p *process) peakMemory(path string) (peak int64, err error) {
	all, err := p.executing(path)
	for _, m := range all {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
		if err != nil {
			return 0, err
		}
		kilobytes := field(string(status), func(f []string) (string, bool) {
			return f[min(1, len(f)-1)], f[0] == "VmHWM:"
		})
		n, err := strconv.ParseInt(kilobytes, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("VmHWM of process %d: %w", m.pid, err)
		}
		peak = max(peak, n<<10)
	}
	return peak, err
}
