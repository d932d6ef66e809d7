package machine

import (
	"bufio"
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

func cgroupParent(path, name string) (string, error) {
	mount, err := cgroupMount()
	if err != nil {
		return "", err
	}
	if path == "" {
		own, err := ownCgroup()
		if err != nil {
			return "", err
		}
		path = filepath.Join(own, name)
	}
	dir := filepath.Join(mount, path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cgroup %s: %w", path, err)
	}
	return dir, checkCgroup(dir)
}

// checkCgroup refuses a directory that is not a cgroup v2.
func checkCgroup(dir string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("cgroup %s: %w", dir, err)
	}
	if s.Type != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("cgroup %s: not in a cgroup v2 file system", dir)
	}
	return nil
}

// cgroupMount finds where the cgroup v2 hierarchy's root is mounted: alone, or
// beside version 1 under another name.
func cgroupMount() (string, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		mount, source, ok := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		if ok && len(fields) >= 5 && strings.HasPrefix(source, "cgroup2 ") {
			return unescapeMount.Replace(fields[4]), nil
		}
	}
	return "", fmt.Errorf("no cgroup v2 is mounted: %w", errors.ErrUnsupported)
}

// unescapeMount undoes what mountinfo escapes.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func ownCgroup() (string, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(path, "\n"), nil
		}
	}
	return "", fmt.Errorf("this process is in no cgroup v2: %w", errors.ErrUnsupported)
}

// cgroupEmpty reads the kernel's own answer for the cgroup and all below it. A
// cgroup that is gone was empty: only an empty one can be removed.
func cgroupEmpty(dir string) (bool, error) {
	if err := checkCgroup(dir); err != nil {
		return gone(err), ignore(err, gone)
	}
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	if gone(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte("populated ")); ok {
			return bytes.Equal(bytes.TrimSpace(v), []byte("0")), nil
		}
	}
	return false, fmt.Errorf("cgroup %s: cgroup.events does not say populated", dir)
}

// killCgroup ends every process in the cgroup and below, in one write where the
// kernel has cgroup.kill (5.14), else one by one; the caller repeats it.
func killCgroup(dir string) error {
	err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return ignore(err, gone)
	}
	return killEach(dir)
}

func killEach(dir string) error {
	pids, err := cgroupPIDs(dir)
	for _, pid := range pids {
		err = errors.Join(err, ignore(unix.Kill(pid, unix.SIGKILL), noProcess))
	}
	return err
}

// cgroupPIDs lists the processes in the cgroup and below.
func cgroupPIDs(dir string) ([]int, error) {
	var pids []int
	err := eachCgroup(dir, func(dir string) error {
		f, err := os.Open(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return err
		}
		defer f.Close() // only read
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			pid, err := strconv.Atoi(lines.Text())
			if err != nil {
				return err
			}
			pids = append(pids, pid)
		}
		return lines.Err()
	})
	return pids, err
}

// removeCgroup removes an empty cgroup and those that the app made below it.
func removeCgroup(dir string) error {
	var dirs []string
	err := eachCgroup(dir, func(dir string) error {
		dirs = append(dirs, dir)
		return nil
	})
	for i := len(dirs) - 1; i >= 0; i-- {
		err = errors.Join(err, ignore(os.Remove(dirs[i]), gone))
	}
	return err
}

// eachCgroup visits the cgroup and those below it, parents first. One that goes
// away meanwhile is passed over.
func eachCgroup(root string, visit func(dir string) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = visit(path)
		}
		return ignore(err, gone)
	})
}

// gone: the cgroup was removed, before the file was opened or since.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
}

// ignore is err, or nil if it is one of the expected.
func ignore(err error, expected func(error) bool) error {
	if expected(err) {
		return nil
	}
	return err
}
