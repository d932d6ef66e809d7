package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/storetest"
	"github.com/carlosframework/regionha/roster"
)

// commands is the command line.
type commands struct {
	config.Base

	Init initCommand `cmd:"" help:"Make the keys, the roster and the settings of a new deployment."`
	Box  struct {
		Enroll      enrollCommand          `cmd:"" help:"Bind a box's name to the machine that proved to be it."`
		List        boxListCommand         `cmd:"" help:"List the boxes with what each is doing, and the machines that wait to be enrolled."`
		Show        boxShowCommand         `cmd:"" help:"Say all that is known of one box."`
		Drain       boxDrainCommand        `cmd:"" help:"Have workers move every host off a box, with nothing lost."`
		Undrain     undrainCommand         `cmd:"" help:"Let a box be chosen again."`
		DeclareLost declareLostCommand     `cmd:"" help:"Declare a box lost that no cloud will report terminated; its hosts move."`
		Discharge   dischargeCommand       `cmd:"" help:"State that the disks of a box that is gone are destroyed."`
		Retire      retireCommand          `cmd:"" help:"End the entry of a box that is gone, for ever."`
		Readmit     readmitCommand         `cmd:"" help:"Enroll the machine of a retired box anew, under another name."`
		Require     requireProtocolCommand `cmd:"" name:"require-protocol" help:"Refuse acting to builds that speak an older protocol, for ever."`
	} `cmd:"" help:"The machines."`
	Region struct {
		List regionListCommand `cmd:"" help:"List the regions, with the group that launches the boxes of each."`
		Set  regionSetCommand  `cmd:"" help:"Add a region, or change its Auto Scaling group."`
	} `cmd:"" help:"The places where machines run."`
	Host struct {
		Create   createCommand    `cmd:"" help:"Create a host: an app under a hostname, on a box that is chosen now."`
		List     hostListCommand  `cmd:"" help:"List the hosts, with what is going on with each."`
		Show     showCommand      `cmd:"" help:"Say what is going on with one host, what it waits for and what to do."`
		Drain    hostDrainCommand `cmd:"" help:"Move a host off its box, to one that is chosen now, with nothing lost."`
		Relocate relocateCommand  `cmd:"" help:"Move a host to a box that you name, with nothing lost."`
	} `cmd:"" help:"The apps."`
	Store struct {
		Check checkCommand `cmd:"" help:"Hold a store to the contract, check by check."`
	} `cmd:"" help:"The object store."`
	Serve serveCommand `cmd:"" help:"Serve the JSON API."`
}

const description = "The console of a regionha deployment: for the people and programs in front of it."

// App is the world that the commands run in.
type App struct {
	Stdout, Stderr io.Writer
	Stdin          io.Reader        // what a person types; os.Stdin if nil, where it is a terminal
	Now            func() time.Time // time.Now if nil

	// Open opens a store by its URL and says its name; storeurl's if nil.
	Open func(ctx context.Context, url string) (store objstore.Store, name string, err error)
}

// session is one command that runs: the App with its logger.
type session struct {
	App
	log *slog.Logger
}

// Run runs one command line. Its error is for config.Exit.
func (a App) Run(ctx context.Context, args []string) error {
	if a.Open == nil {
		a.Open = openURL
	}
	if a.Stdin == nil {
		a.Stdin = terminal(os.Stdin)
	}
	var c commands
	app := config.App{Name: "console", Description: description, Stdout: a.Stdout, Stderr: a.Stderr}
	command, err := config.Parse(&c, app, args)
	if err != nil {
		return err
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return advise(command.Run(&session{App: a, log: c.Logger(a.Stderr)}))
}

// advise adds what to do to errors of the deployment as a whole, which any
// command may meet.
func advise(err error) error {
	var refusal *Refusal
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	next := ""
	switch {
	case errors.Is(err, roster.ErrUntrusted):
		next = "see that --control and --roster-key are of one deployment; if they are, find out who wrote " + roster.Key
	case errors.Is(err, roster.ErrOutdated):
		next = "install a newer build"
	case errors.Is(err, storetest.ErrUnfit):
		next = "see what is wrong with the store: console store check URL"
	case errors.Is(err, objstore.ErrUnknown):
		next = "it may have been done or not: look before you try again"
	default:
		return err
	}
	return fmt.Errorf("%w\nnext: %s", err, next)
}

// open is a console of the deployment that may only look.
func (s *session) open(ctx context.Context, d config.Deployment) (*Console, error) {
	store, name, err := s.Open(ctx, d.Control)
	if err != nil {
		return nil, fmt.Errorf("--control: %w", err)
	}
	return &Console{Store: store, Roster: roster.Open(store, d.RosterKey.PublicKey, name), Now: s.Now}, nil
}

// openToWrite is a console that may change the deployment: the store was seen
// to refuse what it must refuse.
func (s *session) openToWrite(ctx context.Context, d config.Deployment) (*Console, error) {
	c, err := s.open(ctx, d)
	if err != nil {
		return nil, err
	}
	return c, storetest.Guard(ctx, c.Store)
}

// openToSign is a console that may change the roster with the key of a file.
func (s *session) openToSign(ctx context.Context, d config.Deployment, keyFile string) (*Console, error) {
	private, err := config.LoadPrivateKey(keyFile)
	if err != nil {
		return nil, err
	}
	c, err := s.openToWrite(ctx, d)
	if err != nil {
		return nil, err
	}
	c.Private = private
	return c, nil
}

// say prints one line of progress.
func (s *session) say(line string) { fmt.Fprintln(s.Stderr, line) }
