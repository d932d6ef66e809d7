package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/carlosframework/regionha/stopevidence"
)

// Spec is one run of a host's app.
type Spec struct {
	Host    string   // names the run's cgroup: a file name
	Command []string // argv; the first is an absolute path
	Dir     string   // the working directory, absolute
	Env     []string // the whole environment, as NAME=value
	Output  *os.File // its stdout and stderr; nil: none. The caller closes its own copy
	As      *Owner   // who it runs as, with no other group; nil: as this process does
}

// Owner is whom a process runs as.
type Owner struct{ UID, GID uint32 }

func (s Spec) check() error {
	switch {
	case len(s.Command) == 0 || !filepath.IsAbs(s.Command[0]):
		return fmt.Errorf("command is %q, want an absolute path first", s.Command)
	case !filepath.IsAbs(s.Dir):
		return fmt.Errorf("dir is %q, want an absolute path", s.Dir)
	}
	return checkName(s.Host)
}

// checkName refuses what is not one file's name.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("host %q: want a DNS name", name)
	}
	return nil
}

// A Process is one run: the process that was started and all that it forked.
// Its owner ends it with End, whatever happened before.
type Process interface {
	// PID is the number of the first process. It stays its own until End.
	PID() int
	// Exited is closed when the first process exited, or is out of reach.
	Exited() <-chan struct{}
	// Terminate asks the first process and its process group to end.
	Terminate() error
	// Empty reports whether no process of the run lives.
	Empty() (bool, error)
	// Listens is nil if a process of the run holds a TCP socket that listens on
	// port, and ErrStranger if none does.
	Listens(port int) error
	// End kills every process of the run, waits until none lives, and says how
	// the first one had ended. On an error some may live still: call it again.
	End(ctx context.Context) (status string, err error)
}

// ErrStranger: no process of the run listens there.
var ErrStranger = errors.New("another process listens there")

// Seen is root's half of a stop receipt: a complete look that found nothing.
type Seen struct {
	Checks []stopevidence.Check
	BootID string    // of the boot in which root looked
	At     time.Time // when the look was over, UTC
}

const emptyEvery = 5 * time.Millisecond

// A Tree names every process of one run: by its cgroup or, without one, by the
// process group that its first process leads. It stays good when who started the
// run is gone.
type Tree struct {
	Cgroup string // absolute directory; "": the process group of PID
	PID    int
	Start  uint64   // of PID, in the kernel's clock ticks since the boot
	Mark   []string // what the environment of each of the run's processes holds, as NAME=value
}

// Empty reports whether no process of the run lives. A cgroup that is gone is
// empty; one that cannot be read is an error.
func (t Tree) Empty() (bool, error) { return t.empty() }

// End kills the run until no process of it lives, and removes its cgroup. What
// cannot be read counts as alive. Its error is the last one when ctx ended.
func (t Tree) End(ctx context.Context) error {
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
