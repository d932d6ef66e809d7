package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// print says how the failover went, and what was broken.
func (o outcome) print(t *teller, opts options) {
	var b strings.Builder
	b.WriteString("\n")
	o.printPhases(&b, opts)
	b.WriteString("\n")
	o.printCounts(&b, opts)
	printBroken(&b, o.broken)
	t.print(b.String())
}

func printBroken(out io.Writer, broken []string) {
	for _, promise := range broken {
		fmt.Fprintf(out, "BROKEN: %s\n", promise)
	}
}

// step is one line of the table of phases.
type step struct {
	name string
	at   time.Time
	kind string // what its time went into
	what string
}

// The kinds of time.
const (
	waited     = "wait"
	onBytes    = "bytes"
	onProtocol = "protocol"
)

func (o outcome) steps() []step {
	return []step{
		{"terminated", o.terminated, waited, "the cloud went through shutting-down"},
		{"detected", o.detected, onProtocol, "a worker read it terminated"},
		{"fenced", o.fenced, onProtocol, "the fence was written, the failover started citing it"},
		{"pinned", o.pinned, waited, "the last writes could land; what is carried over is fixed"},
		{"built", o.built, onBytes, "the new generation was built from it, and verified"},
		{"installed", o.installed, onBytes, "files and settings were put in place"},
		{"probed", o.probed, onBytes, "database restored, app started, ready three times"},
		{"serving", o.serving, onProtocol, "the claim names the new home"},
	}
}

func (o outcome) printPhases(out io.Writer, opts options) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "phase\tat\ttook\tkind\t")
	last, sums := o.died, map[string]time.Duration{}
	for _, s := range o.steps() {
		took := max(0, s.at.Sub(last))
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.name, seconds(s.at.Sub(o.died)), seconds(took), s.kind, s.what)
		sums[s.kind] += took
		last = s.at
	}
	w.Flush()
	fmt.Fprintf(out, "from the box's death: %s waited, %s on bytes, %s on protocol\n",
		seconds(sums[waited]), seconds(sums[onBytes]), seconds(sums[onProtocol]))
	fmt.Fprintf(out, "the pin delay is %s here; with the default of %s the outage would be about %s longer\n",
		opts.pinDelay, defaultPinDelay, seconds(defaultPinDelay-opts.pinDelay))
}

// defaultPinDelay is the worker's own default.
const defaultPinDelay = 30 * time.Second

func (o outcome) printCounts(out io.Writer, opts options) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("unavailable for", "%s", seconds(o.unavailable))
	row("writes acknowledged", "%d", len(o.notes))
	row("lost and declared", "%d (the first of them %s before the box died)", o.lostDeclared, seconds(o.lostSpan))
	row("lost and undeclared", "%d", o.lostUndeclared)
	row("uploads acknowledged", "%d, %d of the last %s lost", len(o.uploads), o.lostUploads, uploadWindow)
	row("writers at one time", "%d", o.writers)
	if o.zombie != nil {
		row("woken box stopped by itself", "after %s", seconds(o.zombie.stoppedAfter))
		row("it acknowledged meanwhile", "%d writes, all declared lost", o.zombieAcked)
	}
	w.Flush()
}

// result is the line of -json.
type result struct {
	Outcome  string         `json:"outcome"` // ok or broken
	Store    string         `json:"store"`
	Drain    *drainResult   `json:"drain"` // null: see drain_skipped
	Skipped  string         `json:"drain_skipped,omitempty"`
	Failover failoverResult `json:"failover"`
	Region   *regionResult  `json:"region"`
	Zombie   *zombieResult  `json:"zombie,omitempty"` // with -zombie
	Broken   []string       `json:"broken,omitempty"`
}

type failoverResult struct {
	UnavailableMS    int64 `json:"unavailable_ms"`
	FenceToServingMS int64 `json:"fence_to_serving_ms"`
	Acked            int   `json:"acked"`
	LostDeclared     int   `json:"lost_declared"`
	LostUndeclared   int   `json:"lost_undeclared"`
	MaxWriters       int   `json:"max_writers"`
}

type zombieResult struct {
	StoppedAfterMS int64 `json:"stopped_after_ms"`
	Acked          int   `json:"acked"`
}

// printJSON prints the line of -json.
func printJSON(out io.Writer, o outcome, m moves, rest neighbourhood) error {
	r := result{Outcome: "ok", Store: o.store, Skipped: m.skipped, Drain: m.result(), Region: rest.result(),
		Broken: slices.Concat(m.broken, o.broken, rest.broken),
		Failover: failoverResult{
			UnavailableMS:    o.unavailable.Milliseconds(),
			FenceToServingMS: o.serving.Sub(o.detected).Milliseconds(),
			Acked:            len(o.notes),
			LostDeclared:     o.lostDeclared,
			LostUndeclared:   o.lostUndeclared,
			MaxWriters:       o.writers,
		}}
	if len(r.Broken) > 0 {
		r.Outcome = "broken"
	}
	if o.zombie != nil {
		r.Zombie = &zombieResult{o.zombie.stoppedAfter.Milliseconds(), o.zombieAcked}
	}
	return json.NewEncoder(out).Encode(r)
}

// seconds shows a duration to the hundredth of a second.
func seconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }
