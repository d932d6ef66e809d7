package stopevidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxCgroups bounds how many cgroups of one host are looked at.
const maxCgroups = 10_000

// cgroup is what the kernel says of a cgroup and of all below it.
type cgroup struct {
	populated bool // its own word for whether there is a live process
	members   int  // the processes that it lists
	groups    int
}

// empty is where the kernel's two answers agree that nothing is left. Where they
// differ, something is on its way in or out, or they are not both the kernel's.
func (c cgroup) empty() bool { return !c.populated && c.members == 0 }

func (c cgroup) String() string {
	populated := 0
	if c.populated {
		populated = 1
	}
	return fmt.Sprintf("populated %d, %d processes in %d cgroups", populated, c.members, c.groups)
}

// readCgroup looks at the cgroup in a directory. One that is gone is empty, since
// only an empty one can be removed: but it is gone only where the directory above
// it is of cgroup v2 itself, and so has shown what it holds.
func readCgroup(ctx context.Context, dir string) (cgroup, error) {
	switch err := checkCgroup2(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return cgroup{}, checkCgroup2(filepath.Dir(dir))
	case err != nil:
		return cgroup{}, err
	}
	populated, err := readPopulated(dir)
	if err != nil {
		return cgroup{}, ignoreRemoved(err)
	}
	c := cgroup{populated: populated}
	err = c.walk(ctx, dir, maxCgroups)
	return c, err
}

// walk counts a cgroup and all below it, at most so many.
func (c *cgroup) walk(ctx context.Context, dir string, most int) error {
	for left := []string{dir}; len(left) > 0; {
		at := left[len(left)-1]
		left = left[:len(left)-1]
		below, err := c.add(at)
		if err != nil {
			return err
		}
		left = append(left, below...)
		if c.groups+len(left) > most {
			return fmt.Errorf("%s has more than %d cgroups", dir, most)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func checkCgroup2(dir string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if s.Type != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("%s is not in a cgroup v2 file system", dir)
	}
	return nil
}

// add counts one cgroup and its own processes, and returns those below it.
func (c *cgroup) add(dir string) (below []string, err error) {
	members, err := countMembers(dir)
	if err != nil {
		return nil, ignoreRemoved(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, ignoreRemoved(err)
	}
	c.groups++
	c.members += members
	for _, e := range entries {
		if e.IsDir() {
			below = append(below, filepath.Join(dir, e.Name()))
		}
	}
	return below, nil
}

// countMembers counts the processes of a cgroup, or the threads of one that holds
// threads only.
func countMembers(dir string) (int, error) {
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if errors.Is(err, unix.EOPNOTSUPP) {
		procs, err = os.ReadFile(filepath.Join(dir, "cgroup.threads"))
	}
	return bytes.Count(procs, []byte("\n")), err
}

func readPopulated(dir string) (bool, error) {
	path := filepath.Join(dir, "cgroup.events")
	events, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	for line := range bytes.Lines(events) {
		switch string(bytes.TrimSpace(line)) {
		case "populated 0":
			return false, nil
		case "populated 1":
			return true, nil
		}
	}
	return false, fmt.Errorf("%s says %.80q, expected populated 0 or 1", path, events)
}

// ignoreRemoved is nil for a cgroup that was removed while it was read.
func ignoreRemoved(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
