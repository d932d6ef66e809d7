package console

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/objstore/storetest"
	"github.com/carlosframework/regionha/roster"
)

type initCommand struct {
	Control string `help:"Store URL of the control bucket." placeholder:"URL" required:""`
	Region  string `help:"Placement code of the first region, such as ie." placeholder:"CODE" required:""`
	place
	Out string `help:"New directory for the keys and settings." placeholder:"DIR" required:"" env:"-"`
}

// Run makes the deployment and says what comes next.
func (cmd *initCommand) Run(ctx context.Context, s *session) error {
	out, err := filepath.Abs(cmd.Out)
	if err != nil {
		return err
	}
	store, bucket, err := s.Open(ctx, cmd.Control)
	if err != nil {
		return fmt.Errorf("--control: %w", err)
	}
	if _, _, err := s.Open(ctx, cmd.Data); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	d := Deployment{Control: cmd.Control, Bucket: bucket, Region: cmd.Region, Out: out, Place: cmd.region()}
	if err := Init(ctx, store, d); err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, afterInit, bucket, cmd.Region, cmd.AWSRegion, cmd.Account, out)
	return nil
}

const afterInit = `A deployment is made in %[1]s, with region %[2]s (%[3]s of account %[4]s).

In %[5]s:
  roster.key    signs the roster: keep it, and give it to no box
  roster.pub    what everyone verifies the roster with
  secret        what the boxes know each other by: each box needs a copy
  agent.yaml, worker.yaml, console.yaml   settings to start from

Next:
  1. On each box: copy secret and agent.yaml, set box and advertise in it, start the agent.
  2. On one machine of the region or more: the same with worker.yaml.
  3. Enroll each of them, by the instance id that your cloud shows:
       console --config %[5]s/console.yaml box enroll box-1 --instance-id i-...
  4. Create a host:
       console --config %[5]s/console.yaml host create notes.example.com \
         --account demo --app notes --command /usr/local/bin/notes
`

type checkCommand struct {
	URL string `arg:"" help:"Store URL, such as s3://bucket/prefix or dir:///path."`
	output
}

// Run prints a line as each check ends.
func (cmd *checkCommand) Run(ctx context.Context, s *session) error {
	store, name, err := s.Open(ctx, cmd.URL)
	if err != nil {
		return err
	}
	list := []checkResult{}
	err = storetest.Check(ctx, store, func(r storetest.Result) {
		list = append(list, viewResult(r))
		if cmd.Output != "json" {
			printResult(s.Stdout, r)
		}
	})
	if cmd.Output == "json" {
		if err := printJSON(s.Stdout, list); err != nil {
			return err
		}
	}
	if err != nil {
		return &Refusal{What: name + " is not fit for a deployment", Err: err,
			Next: "use a store that keeps the contract; each failed check says what would go wrong on this one"}
	}
	if cmd.Output != "json" {
		fmt.Fprintf(s.Stdout, "%s keeps the contract.\n", name)
	}
	return nil
}

type enrollCommand struct {
	config.Deployment
	Box              string        `arg:"" help:"Name of the box, as its agent's --box says."`
	RosterPrivateKey string        `help:"File of the key that signs the roster." placeholder:"FILE" required:""`
	Region           string        `help:"Placement code of the box's region." placeholder:"CODE" required:""`
	Pool             string        `help:"Which hosts it may run: those of the same pool (${default})." placeholder:"NAME" default:"default" env:"-"`
	InstanceID       string        `help:"The instance that you expect it to be." placeholder:"ID" required:"" env:"-"`
	Wait             bool          `help:"Wait until the box has published its identity." env:"-"`
	Timeout          time.Duration `help:"How long --wait waits (${default})." placeholder:"TIME" default:"10m" env:"-"`
}

// Run enrolls the box and says what it is now.
func (cmd *enrollCommand) Run(ctx context.Context, s *session) error {
	c, err := s.openToSign(ctx, cmd.Deployment, cmd.RosterPrivateKey)
	if err != nil {
		return err
	}
	if c.Certs, err = cmd.Certs(s.log); err != nil {
		return err
	}
	e := Enrollment{Ref: cmd.Box, Region: cmd.Region, Pool: cmd.Pool, InstanceID: cmd.InstanceID}
	var box roster.Box
	if cmd.Wait {
		box, err = c.EnrollWhenPublished(ctx, e, cmd.Timeout, s.say)
	} else {
		box, err = c.Enroll(ctx, e)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "box %s is enrolled in region %s, pool %s, as instance %s (enrollment %s)\n",
		box.Ref, box.Region, box.Pool, box.Cloud.InstanceID, box.Enrollment)
	return nil
}
