package console

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/internal/hint"
)

// moving is what the commands that move one host have in common.
type moving struct {
	config.Deployment
	Host    string        `arg:"" help:"The hostname."`
	Wait    bool          `help:"Wait until it serves on its new box." env:"-"`
	Timeout time.Duration `help:"How long --wait waits; the move itself goes on (${default})." placeholder:"TIME" default:"30m" env:"-"`
}

type hostDrainCommand struct{ moving }

// Help says what the command does that its name does not.
func (hostDrainCommand) Help() string {
	return `The host is moved off its box, to one that is chosen now. It serves on while the other box gets ready, and
nothing that it wrote is lost. Its box has to be alive: it gives the host up itself and proves it.`
}

// Run begins the move.
func (cmd *hostDrainCommand) Run(ctx context.Context, s *session) error {
	return cmd.run(ctx, s, func(c *Console) (Move, error) { return c.Drain(ctx, cmd.Host) })
}

type relocateCommand struct {
	moving
	To string `help:"The box that is to serve it." placeholder:"BOX" required:"" env:"-"`
}

// Run begins the move.
func (cmd *relocateCommand) Run(ctx context.Context, s *session) error {
	return cmd.run(ctx, s, func(c *Console) (Move, error) { return c.Relocate(ctx, cmd.Host, cmd.To) })
}

func (cmd *moving) run(ctx context.Context, s *session, begin func(*Console) (Move, error)) error {
	c, err := s.openToWrite(ctx, cmd.Deployment)
	if err != nil {
		return err
	}
	move, err := begin(c)
	if err != nil {
		return err
	}
	s.say(fmt.Sprintf("%s moves from %s to %s", move.Host, move.From, move.To))
	if !cmd.Wait {
		fmt.Fprintf(s.Stdout, "%s moves from %s to %s; watch it with: console host show %s\n", move.Host, move.From, move.To, move.Host)
		return nil
	}
	box, err := c.AwaitMove(ctx, move, cmd.Timeout, s.say)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "%s serves on %s, moved in %.2f s\n", move.Host, box, c.now().Sub(move.StartedAt).Seconds())
	return nil
}

// signing is what the commands that change a box's entry have in common.
type signing struct {
	config.Deployment
	Box              string `arg:"" help:"The box's reference."`
	RosterPrivateKey string `help:"File of the key that signs the roster." placeholder:"FILE" required:""`
}

func (cmd *signing) open(ctx context.Context, s *session) (*Console, error) {
	return s.openToSign(ctx, cmd.Deployment, cmd.RosterPrivateKey)
}

type boxDrainCommand struct {
	signing
	SecretFile string        `help:"File that holds the deployment's secret; with it the workers are told at once." placeholder:"FILE"`
	Wait       bool          `help:"Wait until the box has no host." env:"-"`
	Timeout    time.Duration `help:"How long --wait waits; the box drains on (${default})." placeholder:"TIME" default:"2h" env:"-"`
}

// Help says what the command does that its name does not.
func (boxDrainCommand) Help() string {
	return `The box is given no host any more, and workers move those that it has, one by one, with nothing lost.
It stays enrolled and goes on serving what has not moved yet. Undo it with: console box undrain`
}

// Run sets the box draining and, where asked, waits until it is empty.
func (cmd *boxDrainCommand) Run(ctx context.Context, s *session) error {
	c, err := cmd.open(ctx, s)
	if err != nil {
		return err
	}
	if cmd.SecretFile != "" {
		secret, err := boxauth.LoadSecret(cmd.SecretFile, s.log)
		if err != nil {
			return err
		}
		c.Hint = post(secret, s.log)
	}
	began := c.now()
	if err := c.DrainBox(ctx, cmd.Box); err != nil {
		return err
	}
	if !cmd.Wait {
		fmt.Fprintf(s.Stdout, "box %s drains: workers move its hosts; watch them with: console host list\n", cmd.Box)
		return nil
	}
	left, err := c.AwaitEmpty(ctx, cmd.Box, cmd.Timeout, s.say)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "box %s is empty: hosts moved %d, in %.1f s\n", cmd.Box, left, c.now().Sub(began).Seconds())
	return nil
}

// post brings hints that are signed with the deployment's secret.
func post(secret boxauth.Secret, log *slog.Logger) func(context.Context, hint.Hint, []string) {
	return func(ctx context.Context, h hint.Hint, addrs []string) {
		sender := hint.NewSender(hint.Sender{Secret: secret, Log: log, Peers: func([]string) []string { return addrs }})
		sender.Send(hint.Outgoing{Hint: h})
		ctx, end := context.WithCancel(ctx)
		end()               // what is queued is sent all the same,
		_ = sender.Run(ctx) // and what cannot be brought is logged
	}
}

type undrainCommand struct{ signing }

// Run lets the box be chosen again.
func (cmd *undrainCommand) Run(ctx context.Context, s *session) error {
	c, err := cmd.open(ctx, s)
	if err != nil {
		return err
	}
	if err := c.UndrainBox(ctx, cmd.Box); err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "box %s may be chosen again; what was moved off it stays where it is\n", cmd.Box)
	return nil
}
