package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// isolate makes cmd the leader of a session that dies with this program, in a
// cgroup of its own where one can be made. release is called once it started.
func isolate(cmd *exec.Cmd, p *process) (release func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if p.machine {
		cmd.SysProcAttr.Cloneflags = machineFlags
	}
	p.cgroup = makeCgroup(p.name)
	if p.cgroup == "" {
		return func() {}, nil
	}
	dir, err := os.Open(p.cgroup)
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return func() { dir.Close() }, nil
}

// kill ends the process and everything that it started: at once by its cgroup,
// else process by process of its session. It returns when none is left.
func (p *process) kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), killWithin)
	defer cancel()
	if p.cgroup != "" {
		// What an old kernel has no file for is done by the session below.
		_ = os.WriteFile(filepath.Join(p.cgroup, "cgroup.kill"), []byte("1"), 0)
	}
	return until(ctx, killWithin, "kill "+p.name, func(context.Context) (bool, error) {
		members, err := p.members()
		if err != nil {
			return false, err
		}
		for _, m := range members {
			_ = syscall.Kill(m.pid, syscall.SIGKILL) // it may be gone by now
		}
		return len(members) == 0, nil
	})
}

// freeze stops every process of the session in its tracks, and returns when
// none runs. They hold their sockets and files, as a machine does that hangs.
func (p *process) freeze(ctx context.Context) error {
	return until(ctx, killWithin, "freeze "+p.name, func(context.Context) (bool, error) {
		members, err := p.members()
		if err != nil {
			return false, err
		}
		running := 0
		for _, m := range members {
			if !m.frozen() {
				running++
				_ = syscall.Kill(m.pid, syscall.SIGSTOP)
			}
		}
		return running == 0, nil
	})
}

// wake lets a frozen session go on.
func (p *process) wake() error {
	members, err := p.members()
	for _, m := range members {
		err = errors.Join(err, syscall.Kill(m.pid, syscall.SIGCONT))
	}
	return err
}

// has reports whether a process of the session executes the program at path,
// frozen or not.
func (p *process) has(path string) (bool, error) {
	all, err := p.executing(path)
	return len(all) > 0, err
}

func (p *process) executing(path string) ([]member, error) {
	sessions, err := executing(path)
	return sessions[p.pid], err
}

// executing lists the live processes that execute the program at path, by their
// sessions.
func executing(path string) (map[int][]member, error) {
	sessions, err := sessions()
	for session, members := range sessions {
		sessions[session] = slices.DeleteFunc(members, func(m member) bool {
			exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", m.pid))
			return err != nil || exe != path // one that ended meanwhile has no program
		})
	}
	return sessions, err
}

// member is one live process of a session.
type member struct {
	pid   int
	state byte // as in /proc/<pid>/stat
}

// frozen reports whether the process was stopped in its tracks.
func (m member) frozen() bool { return m.state == 'T' }

// host is the host whose app the process is, by where it works:
// <data>/hosts/<host>/work. "" for another process, or one that has ended.
func (m member) host() string {
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", m.pid))
	host, ok := strings.CutSuffix(dir, "/work")
	if err != nil || !ok || filepath.Base(filepath.Dir(host)) != "hosts" {
		return ""
	}
	return filepath.Base(host)
}

// members lists the session's processes that are not dead.
func (p *process) members() ([]member, error) {
	sessions, err := sessions()
	return sessions[p.pid], err
}

// sessions lists the processes that are not dead, by session. One that ends
// meanwhile is left out.
func sessions() (map[int][]member, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := map[int][]member{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		state, session, err := stat(pid)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			return nil, err
		}
		if err == nil && state != 'Z' && state != 'X' {
			all[session] = append(all[session], member{pid, state})
		}
	}
	return all, nil
}

// stat reads a process's state and session: the first and fourth field after
// the name, which stands in parentheses and may hold anything.
func stat(pid int) (state byte, session int, err error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 4 {
		return 0, 0, fmt.Errorf("/proc/%d/stat: %d fields after the name", pid, len(fields))
	}
	session, err = strconv.Atoi(string(fields[3]))
	return fields[0][0], session, err
}

// makeCgroup makes a cgroup v2 beside this program's own, and returns "" where
// that is not possible: then the session stands in for it.
func makeCgroup(name string) string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	mount, path := field(string(mounts), func(f []string) (string, bool) {
		return f[1], len(f) > 2 && f[2] == "cgroup2"
	}), field(string(own), func(f []string) (string, bool) {
		return strings.CutPrefix(f[0], "0::")
	})
	if mount == "" || path == "" {
		return ""
	}
	dir := filepath.Join(mount, path, fmt.Sprintf("regionha-quickstart-%d-%s", os.Getpid(), name))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return ""
	}
	return dir
}

// field returns what pick takes from the first line that it accepts.
func field(text string, pick func(fields []string) (string, bool)) string {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 {
			if s, ok := pick(f); ok {
				return s
			}
		}
	}
	return ""
}

// removeCgroup removes the process's cgroup, with those that were made in it,
// once the kernel has let go of the last process there.
func (p *process) removeCgroup() {
	if p.cgroup == "" {
		return
	}
	// What cannot be removed is an empty directory of the kernel's: no loss.
	_ = until(context.Background(), removeWithin, "remove "+p.cgroup, func(context.Context) (bool, error) {
		return removeTree(p.cgroup), nil
	})
}

const removeWithin = 2 * time.Second

// removeTree removes a cgroup from the leaves up, and reports whether it is gone.
func removeTree(dir string) bool {
	inner, _ := os.ReadDir(dir)
	for _, e := range inner {
		if e.IsDir() {
			removeTree(filepath.Join(dir, e.Name()))
		}
	}
	err := os.Remove(dir) // rmdir: the kernel refuses while a process is left
	return err == nil || errors.Is(err, os.ErrNotExist)
}
