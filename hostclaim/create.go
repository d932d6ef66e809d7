package hostclaim

import (
	"fmt"
	"slices"
	"time"
)

// NewHost is what a create fixes about a host.
type NewHost struct {
	Incarnation  string // fresh
	Account, App string
	RecordKey    string
	RecordSHA256 string
	Region       string
}

// maxText is the longest text in a claim, in bytes.
const maxText = 256

// LocationOf is where everything of one incarnation lies in its region's data
// bucket.
func LocationOf(host, incarnation string) string { return "instances/" + host + "/" + incarnation }

// BeginCreate takes an absent or free claim for a new incarnation and names the
// box that was selected for it, before any other effect. The selection is made
// once and never substituted.
func BeginCreate(n NewHost, op, by string, now time.Time, selected Member) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && c.Op.Kind == Creating && c.Holder.Incarnation == n.Incarnation && c.Op.Intent.Selected == selected {
			return ErrAlreadyRecorded
		}
		switch {
		case c.cancelled(op):
			return wrong("create %s was cancelled", op)
		case c.Holder != nil || c.Op.Kind != Free:
			return wrong("a host that is %s cannot be created", c.Op.Kind)
		case contains(c.RetiredIncarnations, n.Incarnation):
			return wrong("incarnation %s is retired", n.Incarnation)
		case c.IsLost(selected.Box):
			return wrong("box %s is lost for this host", selected.Box)
		}
		c.Holder = &Holder{
			Incarnation: n.Incarnation, Account: n.Account, App: n.App,
			RecordKey: n.RecordKey, RecordSHA256: n.RecordSHA256,
			Region: n.Region, Location: LocationOf(c.Host, n.Incarnation), CreatedAt: now.UTC(),
		}
		c.Touched = nil
		c.Op = Op{Kind: Creating, ID: op, By: by, StartedAt: now.UTC(), Intent: Intent{Selected: selected}}
		return nil
	}
}

// CompleteCreate is the selected box taking the host: it becomes the executor
// under this write's stamp. Any other box, or another enrollment of it, is
// refused.
func CompleteCreate(op, box, enrollment string) Transition {
	return func(c *Claim) error {
		if c.Op.ID != op {
			return stale(c, op)
		}
		if c.Op.Kind == Serving && c.Op.executor() == (Member{box, enrollment}) {
			return ErrAlreadyRecorded
		}
		if c.Op.Kind != Creating {
			return wrong("%s cannot be completed as a create", c.Op.Kind)
		}
		if got := (Member{box, enrollment}); got != c.Op.Intent.Selected {
			return wrong("%s as %s was not selected: %s as %s was",
				box, enrollment, c.Op.Intent.Selected.Box, c.Op.Intent.Selected.Enrollment)
		}
		c.execute(c.Op.Intent.Selected)
		c.serve("")
		return nil
	}
}

// CancelCreate frees a claim whose create did not complete in [CreateDeadline],
// or whose record could not be written. Nothing was promised; the cancelled
// create is remembered, so that its box cannot complete it afterwards.
func CancelCreate(op, reason string) Transition {
	return func(c *Claim) error {
		if err := c.creating(op); err != nil {
			return err
		}
		if len(reason) > maxText {
			return wrong("reason is %d bytes, at most %d", len(reason), maxText)
		}
		c.cancel(reason)
		return nil
	}
}

// CancelLostCreate frees a claim whose create cannot complete, since the
// selected box is gone.
func CancelLostCreate(op string, selected Gone) Transition {
	return func(c *Claim) error {
		if err := c.creating(op); err != nil {
			return err
		}
		if err := c.consume(selected, c.Op.Intent.Selected, roleSelected); err != nil {
			return err
		}
		c.cancel("box lost")
		return nil
	}
}

func (c *Claim) creating(op string) error {
	if c.cancelled(op) {
		return ErrAlreadyRecorded
	}
	return c.runs(op, Creating)
}

func (c *Claim) cancelled(op string) bool {
	return slices.ContainsFunc(c.CancelledCreates, func(x CancelledCreate) bool { return x.Op == op })
}

func (c *Claim) cancel(reason string) {
	c.CancelledCreates = append(c.CancelledCreates, CancelledCreate{
		Op: c.Op.ID, Incarnation: c.Holder.Incarnation, Box: c.Op.Intent.Selected.Box, Reason: reason,
	})
	c.free()
}

// free ends an incarnation.
func (c *Claim) free() {
	c.RetiredIncarnations = add(c.RetiredIncarnations, c.Holder.Incarnation)
	c.Holder, c.Touched = nil, nil
	c.Op = Op{Kind: Free}
}

// serve ends the running operation; its id and outcome stay, so that a replay of
// its last step is recognised.
func (c *Claim) serve(how Outcome) {
	c.Op.Kind, c.Op.Phase, c.Op.Outcome = Serving, "", how
	c.Op.Intent, c.Op.Journal = Intent{}, Journal{}
	c.Op.Participants = []string{c.Op.Exec}
}

// execute is the one place where an executor is set and a stamp begins.
func (c *Claim) execute(m Member) {
	c.Op.Exec, c.Op.ExecEnrollment = m.Box, m.Enrollment
	c.Holder.Stamp = c.Gen
	c.Touched = add(c.Touched, m.Box)
}

// vacate leaves the host without an executor.
func (c *Claim) vacate() { c.Op.Exec, c.Op.ExecEnrollment = None, "" }

func stale(c *Claim, op string) error {
	return fmt.Errorf("%w: %s %s runs, not %s", ErrStaleOp, c.Op.Kind, c.Op.ID, op)
}
