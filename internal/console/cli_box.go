package console

import (
	"context"
	"fmt"

	"github.com/carlosframework/regionha/internal/config"
)

type boxListCommand struct {
	config.Deployment
	output
}

// Run prints the boxes, and the machines that wait to be enrolled.
func (cmd *boxListCommand) Run(ctx context.Context, s *session) error {
	c, err := s.open(ctx, cmd.Deployment)
	if err != nil {
		return err
	}
	boxes, err := c.Boxes(ctx)
	if err != nil {
		return err
	}
	return show(s.Stdout, cmd.output, boxes, printBoxes(c.now()))
}

type boxShowCommand struct {
	config.Deployment
	Box string `arg:"" help:"The box's reference."`
	output
}

// Run prints one box.
func (cmd *boxShowCommand) Run(ctx context.Context, s *session) error {
	c, err := s.open(ctx, cmd.Deployment)
	if err != nil {
		return err
	}
	box, err := c.Box(ctx, cmd.Box)
	if err != nil {
		return err
	}
	return show(s.Stdout, cmd.output, box, printBox(c.now()))
}

type retireCommand struct{ signing }

// Help says what the command does that its name does not.
func (retireCommand) Help() string {
	return `For a box that was read terminated or declared lost, once no claim names it any more. Its entry stays for ever,
and its reference is never used again. A machine that was declared lost and runs after all comes back with: console box readmit`
}

// Run retires the box.
func (cmd *retireCommand) Run(ctx context.Context, s *session) error {
	c, err := cmd.open(ctx, s)
	if err != nil {
		return err
	}
	box, err := c.Retire(ctx, cmd.Box)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "box %s is retired (enrollment %s)\n", box.Ref, box.Enrollment)
	return nil
}

type readmitCommand struct {
	signing
	As string `help:"Name under which the machine's agent runs now." placeholder:"REF" required:"" env:"-"`
}

// Help says what the command does that its name does not.
func (readmitCommand) Help() string {
	return `For a machine that was declared lost, is retired, and runs after all. It comes back as a new box: start its agent
under another --box first, and name that with --as. What the old box left on its disks is not taken up.`
}

// Run enrolls the machine anew.
func (cmd *readmitCommand) Run(ctx context.Context, s *session) error {
	c, err := cmd.open(ctx, s)
	if err != nil {
		return err
	}
	if c.Certs, err = cmd.Certs(s.log); err != nil {
		return err
	}
	box, err := c.Readmit(ctx, Readmission{Ref: cmd.Box, As: cmd.As})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "the machine of box %s is enrolled as box %s in region %s, pool %s (enrollment %s)\n",
		cmd.Box, box.Ref, box.Region, box.Pool, box.Enrollment)
	return nil
}

type requireProtocolCommand struct {
	config.Deployment
	Protocol         int    `arg:"" help:"The oldest protocol that may act from now on."`
	RosterPrivateKey string `help:"File of the key that signs the roster." placeholder:"FILE" required:""`
}

// Help says what the command does that its name does not.
func (requireProtocolCommand) Help() string {
	return `Every build that speaks an older protocol refuses to act from then on, and this is never taken back. It is done
only once every active box was heard of a short while ago and speaks it: see console box show.`
}

// Run raises the floor.
func (cmd *requireProtocolCommand) Run(ctx context.Context, s *session) error {
	c, err := s.openToSign(ctx, cmd.Deployment, cmd.RosterPrivateKey)
	if err != nil {
		return err
	}
	if err := c.RequireProtocol(ctx, cmd.Protocol); err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "protocol %d is required of every box\n", cmd.Protocol)
	return nil
}
