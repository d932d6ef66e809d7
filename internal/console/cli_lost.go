package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/carlosframework/regionha/internal/config"
)

// statement is what both commands of this file have in common.
type statement struct {
	config.Deployment
	Box     string `arg:"" help:"The box's reference."`
	Who     string `help:"Who says so." placeholder:"NAME" required:"" env:"-"`
	Why     string `help:"Why, in one line." placeholder:"TEXT" required:"" env:"-"`
	Confirm string `help:"The box's reference again, instead of typing it when asked." placeholder:"REF" env:"-"`
}

type declareLostCommand struct {
	statement
	RosterPrivateKey string   `help:"File of the key that signs the roster." placeholder:"FILE" required:""`
	Checked          []string `help:"One thing that was looked at; may stand several times." placeholder:"TEXT" required:"" sep:"none" env:"-"`
}

// Help says what the command does that its name does not.
func (declareLostCommand) Help() string {
	return `For a box that no cloud will ever report terminated. It is quarantined, and never acts again under this name;
its hosts move to other boxes with what reached the store, and what did not is declared lost.
A box that is declared lost twice is declared lost once: the first declaration stands.`
}

// Run declares the box lost and says what comes next.
func (cmd *declareLostCommand) Run(ctx context.Context, s *session) error {
	c, err := s.openToSign(ctx, cmd.Deployment, cmd.RosterPrivateKey)
	if err != nil {
		return err
	}
	confirmation, err := s.confirm(ctx, c, cmd.statement, "declare it lost")
	if err != nil {
		return err
	}
	evidence, err := c.DeclareLost(ctx, Loss{Ref: cmd.Box, Who: cmd.Who, Why: cmd.Why, Checked: cmd.Checked, Confirm: confirmation})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "box %s is declared lost, as of %s (%s)\n", evidence.Box(), clock(evidence.ObservedAt()), evidence.Ref().Key)
	fmt.Fprintf(s.Stdout, "Workers of region %s move its hosts; watch them with: console host list\n", evidence.Region())
	return nil
}

type dischargeCommand struct {
	statement
	How string `help:"How the disks were destroyed, in one line." placeholder:"TEXT" required:"" env:"-"`
}

// Help says what the command does that its name does not.
func (dischargeCommand) Help() string {
	return `For a box that is terminated or declared lost: nothing on it is left to be cleaned up.
It says nothing about whether the box is gone, and moves no host.`
}

// Run records the statement.
func (cmd *dischargeCommand) Run(ctx context.Context, s *session) error {
	c, err := s.openToWrite(ctx, cmd.Deployment)
	if err != nil {
		return err
	}
	confirmation, err := s.confirm(ctx, c, cmd.statement, "declare its disks destroyed")
	if err != nil {
		return err
	}
	destroyed, err := c.Discharge(ctx, Destruction{Ref: cmd.Box, Who: cmd.Who, Why: cmd.Why, How: cmd.How, Confirm: confirmation})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "the disks of box %s are declared destroyed (%s)\n", destroyed.Box(), destroyed.Ref().Key)
	return nil
}

// confirm says what the box is, and returns its reference as the person gave
// it: with --confirm, or typed out at the terminal.
func (s *session) confirm(ctx context.Context, c *Console, about statement, to string) (string, error) {
	box, err := c.Box(ctx, about.Box)
	if err != nil {
		return "", err
	}
	s.say(fmt.Sprintf("box %s of region %s, instance %s: %s", box.Ref, box.Region, orDash(box.Instance), box.Status))
	if about.Confirm != "" {
		return about.Confirm, nil
	}
	typed, err := s.ask(ctx, fmt.Sprintf("Type %s to %s: ", box.Ref, to))
	if err != nil {
		return "", &Refusal{What: fmt.Sprintf("box %q was not touched", box.Ref), Err: err,
			Next: "if you are sure, run it again with --confirm " + box.Ref}
	}
	return typed, nil
}

// errNobody: there is no person to answer.
var errNobody = errors.New("nobody confirmed it")

// ask returns one line that the person at the terminal types. Nothing can end
// the read of a terminal, so where ctx ends first it is left behind.
func (s *session) ask(ctx context.Context, question string) (string, error) {
	if s.Stdin == nil {
		return "", errNobody
	}
	fmt.Fprint(s.Stderr, question)
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(s.Stdin, 1<<10)).ReadString('\n')
		answered <- line
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case line := <-answered:
		line, complete := strings.CutSuffix(line, "\n")
		if !complete {
			fmt.Fprintln(s.Stderr) // the cursor still stands behind the question
			return "", errNobody
		}
		return strings.TrimSpace(line), nil
	}
}

// terminal is f if a person types there, else nil.
func terminal(f *os.File) io.Reader {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return f
}
