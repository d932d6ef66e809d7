package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	hc "github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore/dirstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

func member(box string) hc.Member { return hc.Member{Box: box, Enrollment: "e-" + box} }

// run is a box where it is given one, with the store's directory and the key of
// its roster; otherwise it is the operator.
func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) != 3 {
		return operate(ctx, out)
	}
	key, err := roster.ParsePublicKey(args[2])
	if err != nil {
		return err
	}
	store, err := dirstore.Open(args[1])
	if err != nil {
		return err
	}
	return box(ctx, store, termfence.Reader{Store: store, Roster: roster.Open(store, key, region)}, member(args[0]))
}

// operate enrolls two boxes, and lets the second take over from the first once it
// has seen the first one's process end.
func operate(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "regionha-embed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, err := dirstore.Open(dir)
	if err != nil {
		return err
	}
	public, private := roster.GenerateKey()
	boxes := map[string]roster.Box{}
	for _, name := range []string{"box-a", "box-b"} {
		boxes[name] = roster.Box{Enrollment: member(name).Enrollment, EnrolledAt: time.Now(), Region: region, State: roster.Active}
	}
	if _, err := roster.Create(ctx, store, private, roster.Roster{DeploymentBucket: region,
		Regions: map[string]roster.Region{region: {}}, Boxes: boxes}); err != nil {
		return err
	}
	start := func(name string) *exec.Cmd {
		return exec.CommandContext(ctx, os.Args[0], name, dir, roster.EncodeKey(public))
	}

	if err := hold(start("box-a"), func() { say(out, "box-b", start("box-b")) }, out); err != nil {
		return err
	}
	fmt.Fprintln(out, "box-a ended its session and its process ended: an operator declares it lost")
	reader := termfence.Reader{Store: store, Roster: roster.Open(store, public, region)}
	quarantine := func(r *roster.Roster) error { return r.Quarantine("box-a") }
	if _, err := roster.Update(ctx, store, private, reader.Roster, quarantine); err != nil {
		return err
	}
	if _, err := termfence.Declare(ctx, store, reader, termfence.Declaration{Box: "box-a", Enrollment: member("box-a").Enrollment,
		Region: region, Who: "operator", Why: "a planned hand-over", Checked: []string{"its process was waited for"},
		Confirmation: "box-a", DeclaredAt: time.Now()}); err != nil {
		return err
	}
	say(out, "box-b", start("box-b"))
	say(out, "box-a", start("box-a"))
	return sum(ctx, out, store)
}

// hold runs a box while meanwhile does, and waits for it.
func hold(cmd *exec.Cmd, meanwhile func(), out io.Writer) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(lines).ReadString('\n')
	fmt.Fprint(out, "box-a ", line)
	if err == nil {
		meanwhile()
	}
	return errors.Join(err, in.Close(), cmd.Wait())
}

// say runs a box that has nothing to hold on for, and tells what it said.
func say(out io.Writer, name string, cmd *exec.Cmd) {
	text, _ := cmd.Output() // a refusal ends it with 1, and says why
	fmt.Fprintf(out, "%s %s", name, text)
}

// sum tells what the claim knows of it all.
func sum(ctx context.Context, out io.Writer, store *dirstore.Store) error {
	o, err := hc.Read(ctx, store, host)
	if err != nil {
		return err
	}
	c := o.Claim
	fmt.Fprintf(out, "the claim: %d sessions one after the other, executor %s, %d losses declared\n",
		len(c.Holder.Admissions), c.Op.Exec, len(c.PendingLosses()))
	return nil
}
