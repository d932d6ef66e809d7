package agent

import (
	"context"
	"os"
	"slices"

	"github.com/carlosframework/regionha/hostclaim"
)

// crashPoints are the names that [CrashPoints] lists: a participant's effects
// and claim writes, and a release's steps, in the order in which a drain passes
// them.
var crashPoints = []string{
	"entering", "entered", "acknowledged",
	"warming", "warmed",
	"releasing", "fenced", "quiet", "stopped", "writers-stopped", "flushed", "files-flushed",
	"journaled", "closed", "collected", "ended", "receipted", "released",
	"building", "built",
	"installing", "installed",
	"admitting", "admitted",
	"starting", "started",
	"publishing", "published",
}

// CrashPoints lists where the setting crash can end this process as SIGKILL
// does, in the order in which a drain passes them: the source from releasing to
// released, the target from building on, each of them before.
func CrashPoints() []string { return slices.Clone(crashPoints) }

// crash ends the process here, with nothing run or written any more, if the
// settings name this point.
func (a *Agent) crash(at string) {
	if a.set.Crash != at {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Kill() == nil {
		select {}
	}
}

// wrote tells others of a claim that a participant of this box wrote.
func (a *Agent) wrote(ctx context.Context, c *hostclaim.Claim) {
	j := c.Op.Journal
	switch {
	case c.Op.Phase == hostclaim.Starting:
		a.crash("acknowledged")
	case j.Release != nil && j.Release.Box == a.self.Box && c.Op.Exec == a.self.Box:
		a.crash("released")
	case c.Op.Phase == hostclaim.Probing && j.Probe != nil:
		a.crash("published")
	}
	a.changed(ctx, c)
}
