package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/record"
)

// ErrLeftover: run.json names a run that nobody ended. KillLeftover ends it.
var ErrLeftover = errors.New("a recorded run was not ended")

const runFile = "run.json"

// run is what run.json holds: how to find a run again after the agent died.
// Cgroup is written before the run starts; without one, PID and Start directly
// after.
type run struct {
	V       int    `json:"v"`
	Host    string `json:"host"`
	Session uint64 `json:"session"`
	BootID  string `json:"boot_id"`
	Cgroup  string `json:"cgroup"`
	PID     int    `json:"pid"`
	Start   uint64 `json:"start"` // of PID, in the kernel's clock ticks since the boot
}

// tree finds the run's processes, whoever started them.
func (r run) tree() machine.Tree {
	return machine.Tree{Cgroup: r.Cgroup, PID: r.PID, Start: r.Start,
		Mark: []string{envHost + "=" + r.Host, envSession + "=" + strconv.FormatUint(r.Session, 10)}}
}

// KillLeftover ends what a dead agent left running for the host whose directory
// dir is, waits until no process of it lives, and removes the record. A cgroup
// of m is ended through m; a nil m ends what this process may. Nothing recorded
// is no error. A record of an earlier boot names nothing that could live. An
// unreadable record is an error: what it named may still run.
func KillLeftover(ctx context.Context, m Machine, dir string) error {
	r, ok, err := readRun(dir)
	if err != nil || !ok {
		return err
	}
	boot, err := machine.BootID()
	if err != nil {
		return err
	}
	if r.BootID == boot {
		if err := r.end(ctx, m); err != nil {
			return fmt.Errorf("leftover run of %s: %w", r.Host, err)
		}
	}
	return removeRun(dir)
}

func (r run) end(ctx context.Context, m Machine) error {
	if m != nil && r.Cgroup != "" && m.Cgroup(r.Host) == r.Cgroup {
		return m.End(ctx, r.Host)
	}
	return r.tree().End(ctx)
}

func readRun(dir string) (run, bool, error) {
	path := filepath.Join(dir, runFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return run{}, false, nil
	}
	if err != nil {
		return run{}, false, err
	}
	r, err := record.Decode[run](b)
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return run{}, false, fmt.Errorf("%s: %w", path, err)
	}
	return r, true, nil
}

func (r run) check() error {
	switch {
	case r.V != 1:
		return fmt.Errorf("v is %d, want 1", r.V)
	case r.BootID == "":
		return errors.New("boot_id is empty")
	case (r.Cgroup == "") == (r.PID == 0):
		return fmt.Errorf("cgroup %q and pid %d: want one of them", r.Cgroup, r.PID)
	case r.PID < 0 || r.PID == 1:
		return fmt.Errorf("pid is %d, want above 1", r.PID)
	case r.Cgroup != "" && !filepath.IsAbs(r.Cgroup):
		return fmt.Errorf("cgroup %q: want an absolute path", r.Cgroup)
	}
	return nil
}

// writeRun replaces run.json whole. A record is worth nothing after the
// machine's own end, but half of one would then be an error for ever: its bytes
// are on disk before its name, which need not be.
func writeRun(dir string, r run) error {
	b, err := record.Encode(r)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, runFile)
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

func removeRun(dir string) error {
	if err := os.Remove(filepath.Join(dir, runFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
