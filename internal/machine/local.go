package machine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/carlosframework/regionha/stopevidence"
)

// Cgroups runs hosts as children of this process, each in a cgroup of its own
// below one parent. [OpenCgroups] makes it.
type Cgroups struct{ parent string }

// OpenCgroups makes the cgroup v2 under which hosts run. The path is one in the
// cgroup v2 hierarchy, such as /regionha-ie-1; if it is empty, it is name below
// this process's own. Where no cgroup v2 is mounted, or it may not be written,
// the error says so.
func OpenCgroups(path, name string) (Cgroups, error) {
	parent, err := cgroupParent(path, name)
	return Cgroups{parent: parent}, err
}

// Below is the same one level deeper, under name, which is one file's name. What
// is not there is empty; [Cgroups.Make] makes it.
func (c Cgroups) Below(name string) (Cgroups, error) {
	if err := checkName(name); err != nil {
		return Cgroups{}, err
	}
	return Cgroups{parent: filepath.Join(c.parent, name)}, nil
}

// Make makes the cgroup under which the hosts' are, which Spawn needs.
func (c Cgroups) Make() error { return os.MkdirAll(c.parent, 0o755) }

// Parent is the absolute directory of the cgroup under which the hosts' are.
func (c Cgroups) Parent() string { return c.parent }

// Cgroup is [HostCgroup] below the parent.
func (c Cgroups) Cgroup(host string) string { return HostCgroup(c.parent, host) }

// HostCgroup is the absolute directory of a host's cgroup, which is there only
// while a run is. No file of the kernel's has its prefix: a host may be called
// cgroup.procs.
func HostCgroup(parent, host string) string { return filepath.Join(parent, "app-"+host) }

// EndAll kills everything in the cgroups below the parent until nothing lives
// there, and removes them.
func (c Cgroups) EndAll(ctx context.Context) error {
	entries, err := os.ReadDir(c.parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, Tree{Cgroup: filepath.Join(c.parent, e.Name())}.End(ctx))
		}
	}
	return err
}

// Spawn ends what an earlier run left in the host's cgroup, and starts the
// command in a new one from its first instruction. The kernel kills the process
// when this one dies.
func (c Cgroups) Spawn(ctx context.Context, s Spec) (Process, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	t := Tree{Cgroup: c.Cgroup(s.Host)}
	if err := t.End(ctx); err != nil {
		return nil, err
	}
	r, err := start(s, t)
	if err != nil {
		return nil, errors.Join(err, t.remove())
	}
	return r, nil
}

// End kills what lives in the host's cgroup until nothing does, and removes it.
// Where there is none it does nothing.
func (c Cgroups) End(ctx context.Context, host string) error {
	if err := checkName(host); err != nil {
		return err
	}
	return Tree{Cgroup: c.Cgroup(host)}.End(ctx)
}

// WritersStopped is [stopevidence.WritersStopped] of the host, whose cgroup it
// fills in.
func (c Cgroups) WritersStopped(ctx context.Context, host string, s stopevidence.Subject, replicator []stopevidence.Descriptor) ([]stopevidence.Check, error) {
	if err := checkName(host); err != nil {
		return nil, err
	}
	s.Cgroup = c.Cgroup(host)
	return stopevidence.WritersStopped(ctx, s, replicator)
}

// Collect is [stopevidence.Collect] of the host, whose cgroup it fills in.
func (c Cgroups) Collect(ctx context.Context, host string, s stopevidence.Subject) (Seen, error) {
	if err := checkName(host); err != nil {
		return Seen{}, err
	}
	boot, err := BootID()
	if err != nil {
		return Seen{}, err
	}
	s.Cgroup = c.Cgroup(host)
	checks, err := stopevidence.Collect(ctx, s)
	if err != nil {
		return Seen{}, err
	}
	return Seen{Checks: checks, BootID: boot, At: time.Now().UTC()}, nil
}

// Groups runs hosts as children of this process, in process groups only: what
// leaves its group is not found, so nothing here can say that a writer stopped.
type Groups struct{}

// Cgroup is "": there is none.
func (Groups) Cgroup(string) string { return "" }

// Spawn starts the command as the leader of a process group. The kernel kills
// the process when this one dies.
func (Groups) Spawn(_ context.Context, s Spec) (Process, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	r, err := start(s, Tree{})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// End does nothing: a group is found by the record of its run only.
func (Groups) End(context.Context, string) error { return nil }
