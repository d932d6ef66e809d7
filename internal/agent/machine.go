package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/roothelper"
	"github.com/carlosframework/regionha/internal/runner"
	"github.com/carlosframework/regionha/stopevidence"
)

// errNoMachine: nothing here can show that a writer has stopped, so nothing is
// stopped for a release either.
var errNoMachine = fmt.Errorf(`%w: apps run in process groups only; run "agent helper" as root and give this agent its socket with --helper`, stopevidence.ErrIncomplete)

// openMachine finds what runs the apps, and says once what is missing: the root
// helper; the agent itself, where it is root; or nil: process groups, which
// cannot show that a writer has stopped, so that a drain is refused.
func (a *Agent) openMachine(ctx context.Context) (runner.Machine, error) {
	if a.set.Helper != "" {
		return roothelper.Dial(ctx, a.set.Helper, a.set.Box)
	}
	const groups = "apps run in process groups only, and no host can be drained from this box"
	switch {
	case a.set.Cgroup == "off":
		a.log.Warn(groups + ": cgroup is off")
		return nil, nil
	case os.Geteuid() != 0:
		a.log.Warn(groups + `: run "agent helper" as root and give this agent its socket with --helper`)
		return nil, nil
	}
	own, err := machine.OpenCgroups(a.set.Cgroup, "regionha-"+a.set.Box)
	if err != nil {
		a.log.Warn(groups, "err", err)
		return nil, nil
	}
	a.log.Warn(`the agent is root, and so is every app: run "agent helper" as root, and the agent as another user`)
	return own, nil
}

// tryWithin bounds a look that only asks whether one can be complete.
const tryWithin = 10 * time.Second

// canRelease reports whether a look at this machine can be complete, as every
// release needs: it once was. Where one process may not be read none can be, and
// a drain is refused before it begins.
func (a *Agent) canRelease() bool {
	if a.machine == nil || a.looked.Load() {
		return a.machine != nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), tryWithin)
	defer cancel()
	nobody := stopevidence.Subject{Database: filepath.Join(a.set.DataDir, "hosts", "none", "db", "app.db")}
	_, err := a.machine.WritersStopped(ctx, "none", nobody, nil)
	if err != nil {
		a.log.Warn("no host can be drained from this box: a look at the machine is not complete", "err", err)
	}
	a.looked.Store(err == nil)
	return err == nil
}
