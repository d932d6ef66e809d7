package claimtest

import (
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/record"
)

// act lets an actor try a step from what it saw. Most steps that it tries are
// legal in that; a hasty actor tries any.
func (r *run) act(o hostclaim.Observed, f Fault) error {
	list := possible(r.w, o, r.drivers)
	if len(list) == 0 {
		return nil
	}
	from, at := r.below(len(list)), position(o.Claim)
	if r.below(8) == 0 {
		_, err := r.send(o, list[from], f)
		return err
	}
	for i := range list {
		s := list[(from+i)%len(list)]
		if !s.hopeful(at) {
			continue
		}
		if sent, err := r.try(o, s, f); sent || err != nil {
			return err
		}
	}
	return nil
}

// try is send for a step that may be refused: what an actor does before its
// write it does not do for that.
func (r *run) try(o hostclaim.Observed, s Step, f Fault) (sent bool, err error) {
	if s.driver != nil && f == Retried {
		f = None // it sees for itself what is new
	}
	if s.before != nil || f == Retried {
		if _, err := o.Next("dry", s.Transition); err != nil {
			return false, nil
		}
	}
	return r.send(o, s, f)
}

// send lets an actor do its step, with what befalls the write. False: the step
// was refused before anything was sent.
func (r *run) send(o hostclaim.Observed, s Step, f Fault) (sent bool, err error) {
	if f != Stale {
		r.w.Learn(s.Actor, o.Claim) // it has just looked
	}
	s, ok := s.ask(r.w, o)
	if !ok {
		return false, nil
	}
	s.Send(r.w)
	if f == Retried {
		if !s.begins() {
			r.tell("sets out to", s)
			r.count(o, s, f)
			r.late = append(r.late, s)
		}
		return true, nil
	}
	if f == Held || f == LoseAnswer || f == LoseRequest {
		r.store.next = f
	}
	sent, err = r.update(o, s, string(f))
	r.store.next = None
	if sent {
		r.count(o, s, f)
	}
	if f == Repeated && sent && err == nil {
		err = r.again(o, s)
	}
	return sent, err
}

func (r *run) count(o hostclaim.Observed, s Step, f Fault) {
	t := Tuple{Step: s.Name, Fault: f}
	if o.Claim != nil {
		t.Kind, t.Phase = o.Claim.Op.Kind, o.Claim.Op.Phase
	}
	r.report.Tuples[t]++
}

// update makes a claim write of a step and holds what it did to the properties.
// False: the step was refused, so nothing was sent.
func (r *run) update(o hostclaim.Observed, s Step, how string) (sent bool, err error) {
	next, err := hostclaim.Update(r.ctx(), r.store, o, s.Transition)
	sent = err == nil || errors.Is(err, hostclaim.ErrConflict) || errors.Is(err, hostclaim.ErrUnknown)
	if sent {
		r.tell(how, s)
	}
	switch {
	case len(r.store.applied) == 0:
		return sent, r.refused(o, s, err)
	case o.ETag != r.newest().ETag:
		return sent, fmt.Errorf("a write on %s applied to %s", o.ETag, r.newest().ETag)
	case err != nil:
		return sent, r.took(s, nil)
	}
	if err := r.took(s, next.Claim); err != nil {
		return sent, err
	}
	r.w.Learn(s.Actor, next.Claim)
	return sent, nil
}

// refused holds the answer of a write that did not apply to what it must say.
func (r *run) refused(o hostclaim.Observed, s Step, err error) error {
	if o.ETag == r.newest().ETag && errors.Is(err, hostclaim.ErrConflict) && r.store.next == None {
		return fmt.Errorf("a conflict with nothing: %w", err)
	}
	if errors.Is(err, hostclaim.ErrMalformed) {
		return fmt.Errorf("an honest step, %s, made a malformed claim: %w", s.Name, err)
	}
	return nil
}

// took looks at the one write that applied. Its claim is decoded where nobody
// has it.
func (r *run) took(s Step, c *hostclaim.Claim) error {
	if len(r.store.applied) != 1 {
		return fmt.Errorf("one step made %d writes", len(r.store.applied))
	}
	w := r.store.applied[0]
	r.store.applied = r.store.applied[:0]
	if c == nil || r.report.Writes%32 == 0 {
		decoded, err := sameBytes(w.body, c)
		if err != nil {
			return err
		}
		c = decoded
	}
	before := r.newest()
	after := hostclaim.Observed{Host: r.w.Host, Claim: c, ETag: w.etag}
	r.history = append(r.history, after)
	r.report.Writes++
	r.told[len(r.told)-1].gen = c.Gen
	r.wrote(s, before.Claim, c)
	if err := r.check.wrote(before.Claim, after, s); err != nil {
		return err
	}
	return r.replay(before, after, s)
}

func (r *run) wrote(s Step, before, after *hostclaim.Claim) {
	if r.options.Wrote != nil {
		r.options.Wrote(s, before, after)
	}
}

// deliver lets a write arrive that was held, or a step be made that was put off.
func (r *run) deliver() error {
	if n := len(r.store.held); n > 0 && r.below(2) == 0 {
		r.tell("delivers a held write", Step{})
		r.store.deliver(r.ctx(), r.below(n))
		if len(r.store.applied) > 0 {
			return r.took(Step{Name: "held"}, nil)
		}
		return nil
	}
	n := len(r.late)
	if n == 0 {
		return r.act(r.newest(), None)
	}
	i := r.below(n)
	l := r.late[i]
	r.late = append(r.late[:i], r.late[i+1:]...)
	if b := r.w.Box(l.Actor); b != nil && b.Condition != Live {
		return nil
	}
	r.w.Learn(l.Actor, r.newest().Claim)
	_, err := r.update(r.newest(), l, "late")
	return err
}

// sameBytes decodes a claim as it lies in the store, and holds it to its bytes
// and to what was written.
func sameBytes(body []byte, c *hostclaim.Claim) (*hostclaim.Claim, error) {
	decoded, err := hostclaim.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("property 7: what was written does not decode: %w", err)
	}
	for _, x := range []*hostclaim.Claim{decoded, c} {
		if x == nil {
			continue
		}
		again, err := record.Encode(x)
		if err != nil || string(again) != string(body) {
			return nil, fmt.Errorf("property 7: the claim decodes to other bytes: %w\n%s\n%s", err, body, again)
		}
	}
	return decoded, nil
}
