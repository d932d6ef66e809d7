package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program. It returns the exit code: 0 every promise was kept, 1 one
// was broken or something failed, 2 the command line is wrong.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if child := childOf(args); child != nil {
		if err := child(ctx, args[1:], stdout); err != nil {
			fmt.Fprintln(stderr, "quickstart:", err)
			return 1
		}
		return 0
	}
	opts, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	if err := demonstrate(ctx, opts, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "quickstart:", err)
		return 1
	}
	return 0
}

// childOf is what this program is as a child of itself, or nil.
func childOf(args []string) func(context.Context, []string, io.Writer) error {
	switch {
	case len(args) == 0:
		return nil
	case args[0] == cloudCommand:
		return serveCloud
	case args[0] == boxCommand:
		return func(ctx context.Context, argv []string, _ io.Writer) error { return serveBox(ctx, argv) }
	}
	return nil
}

// options are the command line.
type options struct {
	json     bool
	keep     bool
	zombie   bool
	chaos    bool
	together bool
	drains   int
	boxes    int
	hosts    int
	store    string
	dbSize   size
	shutdown time.Duration
	pinDelay time.Duration
}

// A machine has its limits.
const (
	maxBoxes = 50
	maxHosts = 150
)

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.json, "json", false, "end with one line of JSON")
	f.BoolVar(&o.keep, "keep", false, "leave everything running at the end, until interrupted, and print the addresses")
	f.BoolVar(&o.zombie, "zombie", false, "freeze the box instead of killing it, and wake it once the host runs elsewhere")
	f.IntVar(&o.boxes, "boxes", 3, "how many `boxes` the region has")
	f.IntVar(&o.hosts, "hosts", 1, "how many `hosts` the region has; one is looked at closely, and all that are on the box that dies come back")
	f.BoolVar(&o.together, "together", false, "create all hosts on one box, the one that dies unless a drain comes before")
	f.IntVar(&o.drains, "drains", 1, "how many `times` the host is moved off its box on purpose, before the failover")
	f.BoolVar(&o.chaos, "chaos", false, "kill an agent at a random moment of about every other drain; its box starts it again")
	f.StringVar(&o.store, "store", "", "store `URL`, such as s3://bucket?endpoint=http://127.0.0.1:7070; a fresh directory if empty")
	f.Var(&o.dbSize, "db-size", "fill each database to this `size` first, such as 200MB")
	f.DurationVar(&o.shutdown, "shutdown-time", time.Second, "how long the cloud reports shutting-down before terminated")
	f.DurationVar(&o.pinDelay, "pin-delay", 2*time.Second, "how long the worker waits for a dead box's last writes to land; 30s by default outside this program")
	err := f.Parse(args)
	switch {
	case err != nil:
		return o, err // it was said
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.drains < 0:
		err = fmt.Errorf("-drains %d: want 0 or more", o.drains)
	case o.boxes < 2 || o.boxes > maxBoxes:
		err = fmt.Errorf("-boxes %d: want 2 to %d", o.boxes, maxBoxes)
	case o.hosts < 1 || o.hosts > maxHosts:
		err = fmt.Errorf("-hosts %d: want 1 to %d", o.hosts, maxHosts)
	}
	if err != nil {
		fmt.Fprintln(stderr, "quickstart:", err)
	}
	return o, err
}

// demonstrate sets the region up, moves the host on purpose, takes its box away,
// and checks the promises.
func demonstrate(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	r, err := newRegion(o, stdout)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && ctx.Err() == nil {
			r.procs.tails(stderr)
		}
		r.close(err == nil)
	}()
	if err := r.setUp(ctx); err != nil {
		return err
	}
	moved, err := r.drain(ctx)
	if err != nil {
		return err
	}
	moved.print(&r.teller)
	out, rest, err := r.failover(ctx)
	if err != nil {
		return err
	}
	says, err := r.api.says(ctx)
	if err != nil {
		return err
	}
	r.say("the console says: %s is %s", hostName, says)
	out.print(&r.teller, o)
	rest.print(&r.teller)
	broken := slices.Concat(moved.broken, out.broken, rest.broken)
	if len(broken) == 0 {
		r.print("Every promise was kept.\n")
	}
	if o.keep {
		r.sayAddresses()
	}
	if o.json {
		if err := printJSON(stdout, out, moved, rest); err != nil {
			return err
		}
	}
	if o.keep {
		<-ctx.Done()
	}
	if len(broken) > 0 {
		return fmt.Errorf("%d promises were broken", len(broken))
	}
	return nil
}
