package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func (t Tree) empty() (bool, error) {
	if t.Cgroup != "" {
		return cgroupEmpty(t.Cgroup)
	}
	pids, err := t.pids()
	return len(pids) == 0, err
}

func (t Tree) kill() error {
	if t.Cgroup != "" {
		return killCgroup(t.Cgroup)
	}
	pids, err := t.pids()
	for _, pid := range pids {
		err = errors.Join(err, t.killOne(pid))
	}
	return err
}

func (t Tree) remove() error {
	if t.Cgroup == "" {
		return nil
	}
	return removeCgroup(t.Cgroup)
}

// pids lists the living processes of the tree.
func (t Tree) pids() ([]int, error) {
	if t.Cgroup != "" {
		return cgroupPIDs(t.Cgroup)
	}
	leads, err := t.leads()
	if err != nil {
		return nil, err
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		member, err := t.has(pid, leads)
		if err != nil {
			return nil, err
		}
		if member {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// leads reports whether the recorded process, living or not yet reaped, still
// leads its group: then every member is the run's. A process that merely got
// its number later does not.
func (t Tree) leads() (bool, error) {
	s, err := readStat(t.PID)
	if errors.Is(err, errNoProcess) {
		return false, nil
	}
	return err == nil && s.start == t.Start, err
}

// has reports whether pid is a living process of the group. Where the group has
// no leader any more, its number may have gone to strangers: a member must then
// carry the run's marks in its environment.
func (t Tree) has(pid int, leads bool) (bool, error) {
	s, err := readStat(pid)
	if errors.Is(err, errNoProcess) {
		return false, nil
	}
	if err != nil || s.group != t.PID || s.dead {
		return false, err
	}
	if leads {
		return true, nil
	}
	return t.inEnviron(pid)
}

func (t Tree) inEnviron(pid int) (bool, error) {
	b, err := os.ReadFile(procPath(pid, "environ"))
	if noProcess(err) || errors.Is(err, fs.ErrPermission) {
		return false, nil // not ours to read: not ours
	}
	if err != nil {
		return false, err
	}
	env := append(append([]byte{0}, b...), 0)
	for _, mark := range t.Mark {
		if !bytes.Contains(env, []byte("\x00"+mark+"\x00")) {
			return false, nil
		}
	}
	return len(t.Mark) > 0, nil
}

// killOne kills a process that was found to be the tree's, unless another one
// has got its number since: the pidfd holds on to the one that is checked.
func (t Tree) killOne(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return ignore(err, noProcess)
	}
	defer unix.Close(fd)
	leads, err := t.leads()
	if err != nil {
		return err
	}
	member, err := t.has(pid, leads)
	if err != nil || !member {
		return err
	}
	return ignore(unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0), noProcess)
}

var errNoProcess = errors.New("no such process")

// A stat is what is read from /proc/<pid>/stat.
type stat struct {
	dead  bool // a zombie, or going
	group int
	start uint64
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile(procPath(pid, "stat"))
	if noProcess(err) {
		return stat{}, errNoProcess
	}
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(b))
}

// parseStat reads the fields after the name, which may itself hold spaces and
// parentheses: state is the third field, pgrp the fifth, starttime the 22nd.
func parseStat(s string) (stat, error) {
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 20 {
		return stat{}, fmt.Errorf("/proc stat %q: too few fields", s)
	}
	group, err := strconv.Atoi(f[2])
	if err != nil {
		return stat{}, fmt.Errorf("/proc stat pgrp: %w", err)
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("/proc stat starttime: %w", err)
	}
	return stat{dead: f[0] == "Z" || f[0] == "X", group: group, start: start}, nil
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// noProcess: the process ended before its file was opened, or since.
func noProcess(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// BootID names this boot of the machine.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}
