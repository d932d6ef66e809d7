package runner

import (
	"context"

	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/stopevidence"
)

// Machine is what takes root, or the writing of cgroups, for the hosts of a box:
// a [machine.Cgroups] where the agent may do that itself, else a client of the
// root helper.
type Machine interface {
	// Spawn ends what an earlier run left in the host's cgroup, and starts the
	// command in a new one. The process dies when this one does. On an error
	// nothing of the run lives.
	Spawn(ctx context.Context, s machine.Spec) (machine.Process, error)
	// End kills what lives in the host's cgroup until nothing does, and removes
	// it; nil where there is none. It takes no run from who holds its Process.
	End(ctx context.Context, host string) error
	// Cgroup is the absolute directory of the host's cgroup, which is there only
	// while a run is.
	Cgroup(host string) string
	// WritersStopped is [stopevidence.WritersStopped] of the host, whose cgroup
	// it fills in, with the same errors.
	WritersStopped(ctx context.Context, host string, s stopevidence.Subject, replicator []stopevidence.Descriptor) ([]stopevidence.Check, error)
	// Collect is [stopevidence.Collect] of the host, whose cgroup it fills in,
	// with the same errors.
	Collect(ctx context.Context, host string, s stopevidence.Subject) (machine.Seen, error)
}

// spawner is the part of a Machine that an App needs.
type spawner interface {
	Spawn(ctx context.Context, s machine.Spec) (machine.Process, error)
	Cgroup(host string) string
}

// spawner is the machine, or process groups where there is none.
func (c Config) spawner() spawner {
	if c.Machine == nil {
		return machine.Groups{}
	}
	return c.Machine
}
