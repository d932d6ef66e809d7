package claimtest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// Run drives one claim through one sequence, which the seed decides, and checks
// each property after each step. The error names the property that was broken,
// the seed, and what happened.
func Run(seed uint64, o Options) (Report, error) {
	r := newRun(newSeeded(seed), o)
	start := time.Now()
	err := r.sequence()
	r.report.Took = time.Since(start)
	if err != nil {
		return r.report, fmt.Errorf("claimtest: seed %d: %w\n%s", seed, err, r.story())
	}
	return r.report, nil
}

// Check is [Run] with its choices drawn from rapid, which makes a failing
// sequence as short as it can.
func Check(t *rapid.T, o Options) Report {
	t.Helper()
	r := newRun(drawn{t}, o)
	if err := r.sequence(); err != nil {
		t.Fatalf("claimtest: %v\n%s", err, r.story())
	}
	return r.report
}

// run is one sequence under way.
type run struct {
	choices
	options Options
	drivers []Driver
	w       *World
	harsh   bool // more befalls the world than usual, and targets above all
	store   *recorder
	history []hostclaim.Observed // after each write that applied; the first is of an absent claim
	late    []Step               // put off
	check   *checker
	report  Report
	told    []event
}

// event is a line of the story, told only where a run fails.
type event struct {
	what string
	step Step
	gen  uint64
}

func newRun(c choices, o Options) *run {
	if o.Boxes == 0 {
		o.Boxes = 2 + c.below(3)
	}
	o.Steps = cmp.Or(o.Steps, 25)
	w := NewWorld(o.Proofs, o.Boxes)
	r := &run{choices: c, options: o, w: w, store: &recorder{Store: memstore.New()},
		history: []hostclaim.Observed{{Host: w.Host}}, check: newChecker(w),
		report: Report{Sequences: 1, Tuples: map[Tuple]int{}}, harsh: c.below(3) == 0}
	if o.Drivers != nil {
		r.drivers = o.Drivers()
	}
	return r
}

// newest is the claim as it is.
func (r *run) newest() hostclaim.Observed { return r.history[len(r.history)-1] }

// sequence begins somewhere on the way of a host, and goes on at random.
func (r *run) sequence() error {
	if r.below(5) > 0 {
		for range r.below(30) {
			if err := r.progress(); err != nil {
				return err
			}
		}
	}
	for range r.options.Steps {
		r.report.Steps++
		if err := r.step(); err != nil {
			return err
		}
	}
	return r.live()
}

// step lets one thing happen.
func (r *run) step() error {
	n := r.below(100)
	if r.harsh && n < 40 {
		if n < 20 {
			r.befall()
			return nil
		}
		return r.progress()
	}
	switch {
	case n < 28:
		return r.progress()
	case n < 60:
		return r.act(r.newest(), None)
	case n < 72:
		return r.act(r.newest(), r.fault())
	case n < 77:
		return r.act(r.older(), Stale)
	case n < 82:
		return r.deliver()
	case n < 91:
		r.writes()
	default:
		r.befall()
	}
	return nil
}

func (r *run) fault() Fault {
	return []Fault{LoseRequest, LoseAnswer, LoseAnswer, Held, Held, Retried, Retried, Repeated}[r.below(8)]
}

// older is an observation that the claim has moved on from.
func (r *run) older() hostclaim.Observed {
	back := 1 + r.below(min(len(r.history), 12))
	return r.history[max(0, len(r.history)-1-back)]
}

func (r *run) ctx() context.Context { return context.Background() }

func (r *run) tell(what string, s Step) {
	r.told = append(r.told, event{what: what, step: s})
}

// story tells what happened, for people.
func (r *run) story() string {
	out := "what happened:"
	for _, e := range r.told {
		out += fmt.Sprintf("\n  %s %s %s", e.step.Actor, e.what, e.step.Name)
		if e.gen > 0 {
			out += fmt.Sprintf(" -> gen %d", e.gen)
		}
	}
	if c := r.newest().Claim; c != nil {
		b, _ := record.Encode(c)
		out += "\nthe claim: " + string(b)
	}
	return out
}
