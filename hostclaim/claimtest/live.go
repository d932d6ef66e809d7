package claimtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// patience orders the steps of patient actors, who want a host to serve: the
// first that is legal is made. What is not listed they never do by themselves.
var patience = index(
	"complete create", "fence source", "pin after release", "park after release", "pin after release and name", "replace target",
	"fence exhausted target", "complete relocation", "journal release", "pass probe", "publish", "acknowledge", "to releasing",
	"pin failover", "pin and hand over", "hand over", "journal pin", "accept build", "local install", "to probing", "open", "open and declare", "admit",
	"admit and declare",
	"begin attempt", "start failover", "cancel lost create", "cancel create", "complete park-local", "receipt lost", "abandon target",
	"cancel drain", "to probe-failed", "fence target without spare", "stuck: pin uncovered", "stuck: replacements used up",
	"stuck: no spare", "stuck: release overdue", "stuck: install overdue",
)

func index(names ...string) map[string]int {
	order := map[string]int{}
	for i, name := range names {
		order[name] = i + 1
	}
	return order
}

// patient is the step that patient actors make, and the claim that it makes.
// False: they wait.
func patient(w *World, o hostclaim.Observed, drivers []Driver) (Step, *hostclaim.Claim, bool) {
	for _, s := range ranked(possible(w, o, drivers), 0, o.Claim, func(s Step) int {
		j := o.Claim.Op.Journal
		switch {
		case s.driver != nil:
			return 1
		case strings.HasPrefix(s.Name, "admit") && o.Claim.Op.Phase != hostclaim.Probing:
			return 0 // a host that serves may wait for a writer
		case s.Name == "begin attempt" && j.ProbeAdmission < j.ProbeAttempts:
			return 0 // the one that was begun comes first
		}
		return patience[s.Name]
	}) {
		s, ok := s.ask(w, o)
		if !ok {
			continue
		}
		if c, err := o.Next("patient", s.Transition); err == nil {
			s.Send(w)
			return s, c, true
		}
	}
	return Step{}, nil, false
}

// ranked orders the hopeful steps by rank, from 1; equal ones in the order of
// the list, which begins at from. Rank 0 is left out.
func ranked(list []Step, from int, c *hostclaim.Claim, rank func(Step) int) []Step {
	at := position(c)
	var buckets [64][]int16
	n := 0
	for i := range list {
		i = (from + i) % len(list)
		if k := rank(list[i]); k > 0 && list[i].hopeful(at) {
			buckets[k] = append(buckets[k], int16(i))
			n++
		}
	}
	out := make([]Step, 0, n)
	for _, bucket := range buckets {
		for _, i := range bucket {
			out = append(out, list[i])
		}
	}
	return out
}

// progress makes the step that the host waits for, or that begins something new.
func (r *run) progress() error {
	o := r.newest()
	list := possible(r.w, o, r.drivers)
	for _, s := range ranked(list, r.below(max(1, len(list))), o.Claim, func(s Step) int { return r.urgency(o.Claim, s) }) {
		if s.driver != nil && r.below(2) == 0 {
			continue
		}
		if sent, err := r.try(o, s, None); sent || err != nil {
			return err
		}
	}
	r.w.Now = r.w.Now.Add(time.Minute)
	return nil
}

// urgency ranks steps as patience does, and after them what begins something.
func (r *run) urgency(c *hostclaim.Claim, s Step) int {
	switch s.Name {
	case "begin create", "start drain", "start rebalance", "resolve":
		return len(patience) + 1
	case "admit", "admit and declare":
		if c.Op.Kind == hostclaim.Serving && c.Holder.Session > 0 && r.w.Box(c.Op.Exec).Session == c.Holder.Session {
			return 0
		}
	case driven:
		return 1
	}
	return patience[s.Name]
}

// The bounds of property 6: how long patient actors need at most for one
// operation, by its deadlines, and how many steps they make at most.
const (
	longest   = 2 * time.Hour
	mostSteps = 400
)

// live is property 6, of one sequence in some: with each box live, wedged or
// dead, patient actors reach serving or a named stuck, and from there an
// operator reaches serving.
func (r *run) live() error {
	o := r.newest()
	if o.Claim == nil || r.below(8) > 0 {
		return nil
	}
	w := r.w.Clone()
	fate := ""
	for i := range w.Boxes {
		b := &w.Boxes[i]
		b.Failing = false
		if b.Gone() {
			continue
		}
		switch r.below(3) {
		case 0:
			b.Condition = Live
		case 1:
			b.Condition = Wedged
		case 2:
			w.Fence(b.Ref)
		}
		fate += fmt.Sprintf(" %s:%d", b.Ref, b.Condition)
	}
	r.report.Liveness++
	r.tell("let loose with"+fate, Step{})
	o, err := r.reach(w, o)
	if err != nil || o.Claim.Op.Journal.Stuck == nil {
		return err
	}
	r.report.Resolved++
	return r.resolve(w, o)
}

// reach lets patient actors act until nothing is left to do in a state that
// waits for nothing, or for an operator.
func (r *run) reach(w *World, o hostclaim.Observed) (hostclaim.Observed, error) {
	since, op := w.Now, o.Claim.Op.ID
	for range mostSteps {
		s, c, ok := patient(w, o, r.drivers)
		switch {
		case ok:
			r.tell("(patient)", s)
			r.told[len(r.told)-1].gen = c.Gen
			r.wrote(s, o.Claim, c)
			o.Claim = c
			w.Learn(s.Actor, c)
			if c.Op.ID != op {
				since, op = w.Now, c.Op.ID
			}
		case settled(o.Claim):
			return o, nil
		default:
			w.Now = w.Now.Add(time.Minute)
		}
		if w.Now.Sub(since) > longest {
			break
		}
	}
	return o, broken(6, "after %s of patience the host is still %s %s", w.Now.Sub(since), o.Claim.Op.Kind, o.Claim.Op.Phase)
}

// settled reports whether a host waits for nobody but an operator or a person.
func settled(c *hostclaim.Claim) bool {
	switch c.Op.Kind {
	case hostclaim.Serving, hostclaim.Free, hostclaim.Parking:
		return true
	}
	return c.Op.Journal.Stuck != nil
}

// resolve is the second half of property 6: an operator may name any live box,
// declare a box lost that does not answer, and enroll another where none is
// left.
func (r *run) resolve(w *World, o hostclaim.Observed) error {
	why := o.Claim.Op.Journal.Stuck.Reason
	if r.resolves(w, o, 3) {
		return nil
	}
	for i := range w.Boxes {
		if b := &w.Boxes[i]; b.Condition == Wedged {
			w.Declare(b.Ref)
		}
	}
	o, err := r.reach(w, o)
	if err != nil || r.resolves(w, o, 3) {
		return err
	}
	for _, b := range w.Boxes {
		if !b.Gone() && !o.Claim.IsLost(b.Ref) {
			return broken(6, "%s is stuck (%s) on %s, and no resolution leads on, though %s lives", r.w.Host, why, o.Claim.Op.Phase, b.Ref)
		}
	}
	w.Enroll()
	if !r.resolves(w, o, 3) {
		return broken(6, "%s is stuck (%s) on %s, and not even a new box leads on", r.w.Host, why, o.Claim.Op.Phase)
	}
	return nil
}

// resolves reports whether up to n resolutions lead to a host that serves.
func (r *run) resolves(w *World, o hostclaim.Observed, n int) bool {
	if o.Claim.Op.Journal.Stuck == nil {
		return true
	}
	if n == 0 {
		return false
	}
	for _, s := range Steps(w, o) {
		if s.Name != "resolve" {
			continue
		}
		x := w.Clone()
		c, err := o.Next("resolved", s.Transition)
		if err != nil {
			continue
		}
		s.Send(x)
		r.wrote(s, o.Claim, c)
		next, err := r.reach(x, hostclaim.Observed{Host: o.Host, Claim: c})
		if err == nil && r.resolves(x, next, n-1) {
			return true
		}
	}
	return false
}
