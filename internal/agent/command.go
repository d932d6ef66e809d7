package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/roothelper"
)

// description is the first words of the binary's help.
const description = "A box of a regionha deployment: runs the hosts that claims name it for, and serves every host of its region."

// commands is the command line.
type commands struct {
	config.Base

	Run        runCommand    `cmd:"" default:"withargs" help:"Be the box until told to end; what is done where no command is named."`
	Helper     helperCommand `cmd:"" help:"Be the root helper of an agent that is not root: run as root."`
	UpdateGate struct {
		Begin beginCommand `cmd:"" help:"Say that the agent's executable is about to be changed; it fails where that has to wait."`
		End   endCommand   `cmd:"" help:"Say that the change is over, done or undone."`
	} `cmd:"" help:"For package scripts: keep updates of the agent and operations of the box apart."`
	CrashPoints crashPointsCommand `cmd:"" help:"List the points at which a test may end the agent."`
}

// invocation is what a command has beside its own settings.
type invocation struct {
	base           config.Base
	stdout, stderr io.Writer
}

// Command runs one command line of the agent. Its error is for config.Exit.
func Command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c commands
	parsed, err := config.Parse(&c, config.App{Name: "agent", Description: description, Stdout: stdout, Stderr: stderr}, args)
	if err != nil {
		return err
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	return parsed.Run(&invocation{base: c.Base, stdout: stdout, stderr: stderr})
}

type runCommand struct{ BoxSettings }

// Run is [Run].
func (c runCommand) Run(ctx context.Context, i *invocation) error {
	return Run(ctx, Settings{Base: i.base, BoxSettings: c.BoxSettings})
}

type crashPointsCommand struct{}

// Run prints [CrashPoints], one a line.
func (crashPointsCommand) Run(i *invocation) error {
	_, err := fmt.Fprintln(i.stdout, strings.Join(CrashPoints(), "\n"))
	return err
}

// gate says whose agent is updated. The gate works on files there, and needs
// nobody that runs.
type gate struct {
	DataDir string `help:"Where hosts live on this box (${default})." placeholder:"DIR" default:"/var/lib/regionha"`
}

type beginCommand struct{ gate }

// Run is [hostguard.BeginUpdate].
func (c beginCommand) Run() error {
	err := hostguard.BeginUpdate(c.DataDir)
	if errors.Is(err, hostguard.ErrDeferred) {
		return fmt.Errorf("%w: try again later", err)
	}
	return err
}

type endCommand struct{ gate }

// Run is [hostguard.EndUpdate].
func (c endCommand) Run() error { return hostguard.EndUpdate(c.DataDir) }

type helperCommand struct {
	Socket    string `help:"Where the agent finds the helper (${default})." placeholder:"PATH" default:"/run/regionha/helper.sock"`
	AgentUser string `help:"The user that the agent, and every app, runs as." placeholder:"NAME" required:""`
	Cgroup    string `help:"Cgroup v2 path for the apps, the helper's own; its last part begins with regionha. Empty: regionha below the helper's own." placeholder:"PATH"`
}

// Run is [roothelper.Serve].
func (c helperCommand) Run(ctx context.Context, i *invocation) error {
	owner, err := lookUp(c.AgentUser)
	if err != nil {
		return err
	}
	switch {
	case owner.UID == 0:
		return fmt.Errorf("%w: agent-user %s is root, which needs no helper", config.ErrUsage, c.AgentUser)
	case !filepath.IsAbs(c.Socket):
		return fmt.Errorf("%w: socket is %q, want an absolute path", config.ErrUsage, c.Socket)
	case c.Cgroup != "" && !strings.HasPrefix(filepath.Base(c.Cgroup), "regionha"):
		// What is found below it is killed: it must be nobody else's.
		return fmt.Errorf("%w: cgroup is %q, want a path whose last part begins with regionha", config.ErrUsage, c.Cgroup)
	}
	parent, err := machine.OpenCgroups(c.Cgroup, "regionha")
	if err != nil {
		return err
	}
	return roothelper.Serve(ctx, roothelper.Config{Socket: c.Socket, Agent: owner, Parent: parent, Log: i.base.Logger(i.stderr)})
}

// lookUp finds a user, by name or number, and its own group.
func lookUp(name string) (machine.Owner, error) {
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return machine.Owner{}, fmt.Errorf("%w: agent-user: %w", config.ErrUsage, err)
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return machine.Owner{}, fmt.Errorf("agent-user %s: uid: %w", name, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return machine.Owner{}, fmt.Errorf("agent-user %s: gid: %w", name, err)
	}
	return machine.Owner{UID: uint32(uid), GID: uint32(gid)}, nil
}
