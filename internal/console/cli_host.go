package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/internal/hostrecord"
)

type createCommand struct {
	config.Deployment
	config.SecretFile
	Host                  string            `arg:"" help:"The hostname: a lower-case DNS name."`
	Account               string            `help:"Who owns it: one DNS label." placeholder:"NAME" required:"" env:"-"`
	App                   string            `help:"Which app it is an instance of: one DNS label." placeholder:"NAME" required:"" env:"-"`
	Region                string            `help:"Placement code of its region." placeholder:"CODE" required:""`
	Pool                  string            `help:"Which boxes may run it (${default})." placeholder:"NAME" default:"default" env:"-"`
	Command               string            `help:"The program, by its absolute path on the boxes." placeholder:"PATH" required:"" env:"-"`
	Arg                   []string          `help:"One argument of it; may stand several times; --arg=-v where it starts with a dash." placeholder:"TEXT" sep:"none" env:"-"`
	Env                   map[string]string `help:"One variable of its environment; may stand several times." placeholder:"NAME=VALUE" mapsep:"none" env:"-"`
	ReadyPath             string            `help:"GET it: 200 means ready (${default})." placeholder:"PATH" default:"/healthz" env:"-"`
	StartTimeout          time.Duration     `help:"How long the app may take to get ready (${default})." placeholder:"TIME" default:"30s" env:"-"`
	StopTimeout           time.Duration     `help:"How long it may take to stop (${default})." placeholder:"TIME" default:"10s" env:"-"`
	FilesSnapshotInterval time.Duration     `help:"How often the app's files are published (${default})." placeholder:"TIME" default:"15m" env:"-"`
	NoWait                bool              `help:"Do not wait until the app answers." env:"-"`
	Timeout               time.Duration     `help:"How long to wait; a box that has not taken the host by then loses it (${default})." placeholder:"TIME" default:"10m" env:"-"`
}

// Run creates the host and, unless told otherwise, waits until its app answers.
func (cmd *createCommand) Run(ctx context.Context, s *session) error {
	secret, err := boxauth.LoadSecret(cmd.SecretFile.SecretFile, s.log)
	if err != nil {
		return err
	}
	c, err := s.openToWrite(ctx, cmd.Deployment)
	if err != nil {
		return err
	}
	c.SecretFP = secret.Fingerprint()
	creation, err := c.Create(ctx, NewHost{
		Host: cmd.Host, Account: cmd.Account, App: cmd.App, Region: cmd.Region, Pool: cmd.Pool,
		Command: append([]string{cmd.Command}, cmd.Arg...), Env: cmd.Env, ReadyPath: cmd.ReadyPath,
		StartTimeout: hostrecord.Duration(cmd.StartTimeout), StopTimeout: hostrecord.Duration(cmd.StopTimeout),
		FilesSnapshotInterval: hostrecord.Duration(cmd.FilesSnapshotInterval),
	})
	if err != nil {
		return err
	}
	s.say(fmt.Sprintf("%s is placed on %s", creation.Host, creation.Box))
	if cmd.NoWait {
		fmt.Fprintf(s.Stdout, "%s is being created on %s; watch it with: console host show %s\n", creation.Host, creation.Box, creation.Host)
		return nil
	}
	if err := c.Await(ctx, creation, cmd.Timeout, s.say); err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "%s is served by %s\n", creation.Host, creation.Box)
	return nil
}

type hostListCommand struct {
	config.Deployment
	output
}

// Run prints the hosts. One whose claim cannot be read makes it fail, after all
// were printed.
func (cmd *hostListCommand) Run(ctx context.Context, s *session) error {
	c, err := s.open(ctx, cmd.Deployment)
	if err != nil {
		return err
	}
	hosts, err := c.Hosts(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, h := range hosts {
		if h.Problem != "" {
			problems = append(problems, fmt.Errorf("%s: %s", h.Host, h.Problem))
		}
	}
	return errors.Join(append([]error{show(s.Stdout, cmd.output, hosts, printHosts)}, problems...)...)
}

type showCommand struct {
	config.Deployment
	Host string `arg:"" help:"The hostname."`
	output
}

// Run prints one host.
func (cmd *showCommand) Run(ctx context.Context, s *session) error {
	c, err := s.open(ctx, cmd.Deployment)
	if err != nil {
		return err
	}
	host, err := c.Host(ctx, cmd.Host)
	if err != nil {
		return err
	}
	return show(s.Stdout, cmd.output, host, printHost)
}
