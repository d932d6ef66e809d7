package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

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

func (r run) tree() tree {
	return tree{cgroup: r.Cgroup, pid: r.PID, start: r.Start, host: r.Host, session: r.Session}
}

// KillLeftover ends what a dead agent left running for the host whose directory
// dir is, waits until no process of it lives, and removes the record. Nothing
// recorded is no error. A record of an earlier boot names nothing that could
// live. An unreadable record is an error: what it named may still run.
func KillLeftover(ctx context.Context, dir string) error {
	r, ok, err := readRun(dir)
	if err != nil || !ok {
		return err
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	if r.BootID == boot {
		if err := r.tree().end(ctx); err != nil {
			return fmt.Errorf("leftover run of %s: %w", r.Host, err)
		}
	}
	return removeRun(dir)
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

// A tree is every process of one run, found by its cgroup or, without one, by
// the process group that its first process leads.
type tree struct {
	cgroup  string
	pid     int
	start   uint64
	host    string
	session uint64
}

const emptyEvery = 5 * time.Millisecond

// end kills the tree until no process of it lives, and removes its cgroup. What
// cannot be read counts as alive. Its error is the last one when ctx ended.
func (t tree) end(ctx context.Context) error {
	tick := time.NewTicker(emptyEvery)
	defer tick.Stop()
	for {
		empty, err := t.empty()
		if err == nil && empty {
			return t.remove()
		}
		if err == nil {
			err = t.kill()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes may still live: %w", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// awaitEmpty waits until no process of the tree lives; false if done came first.
func (t tree) awaitEmpty(done <-chan time.Time) bool {
	tick := time.NewTicker(emptyEvery)
	defer tick.Stop()
	for {
		if empty, err := t.empty(); err == nil && empty {
			return true
		}
		select {
		case <-done:
			return false
		case <-tick.C:
		}
	}
}
