package hostrelocate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/objstore"
)

// Participant makes one box's steps of relocations. It is safe for concurrent
// use on different hosts.
type Participant struct {
	Control objstore.Store
	Self    hostclaim.Member
	Runtime Runtime

	Now     func() time.Time // time.Now if nil
	Changed changed          // told of each claim written; nil: nobody is told
}

// Takes reports whether box takes part in the claim's relocation.
func Takes(c *hostclaim.Claim, box string) bool {
	return c != nil && c.Op.Kind == hostclaim.Relocating && c.Op.Participates(box)
}

// Step makes this box's next step in the relocation that o shows, if there is
// one, and ends its participation in every other. Where the box takes no part the
// Turn is Done.
func (p *Participant) Step(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	if o.Claim == nil {
		return Turn{}, nil // which ends no participation
	}
	if !Takes(o.Claim, p.Self.Box) {
		return Turn{}, p.leave(ctx, o.Host, "")
	}
	turn, err := p.pass(ctx, o)
	return turn, errors.Join(err, p.leave(ctx, o.Host, o.Claim.Op.ID))
}

func (p *Participant) leave(ctx context.Context, host, current string) error {
	if err := p.Runtime.Leave(ctx, host, current); err != nil {
		return fmt.Errorf("leave other operations of %s: %w", host, err)
	}
	return nil
}

// pass makes no effect without this operation's controller.
func (p *Participant) pass(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	if err := p.Runtime.Enter(ctx, o); err != nil {
		return Turn{}, fmt.Errorf("enter %s: %w", o.Host, err)
	}
	c, me := o.Claim, p.Self.Box
	executes, stuck := c.Op.Exec == me, c.Op.Journal.Stuck
	switch {
	case executes && gives(c):
		return p.release(ctx, o)
	case stuck != nil:
		return told(retry, "%s %s is stuck (%s): waiting for an operator", c.Op.Phase, o.Host, stuck.Reason), nil
	case c.Op.Journal.Acks[me] == "":
		return p.acknowledge(ctx, o)
	case executes:
		return p.execute(ctx, o)
	case ahead(c, me):
		return p.warm(ctx, o)
	case c.Op.Phase == hostclaim.Pinning:
		if left := c.Op.PinFrom().Sub(p.now()); left > 0 {
			return waits(min(left, maxWait), "pinning %s: waiting %s for the fence's window", o.Host, left.Round(100*time.Millisecond)), nil
		}
	}
	return told(retry, "%s %s: waiting for a worker", c.Op.Phase, o.Host), nil
}

// gives reports whether the executor is to give the host up. That stays legal
// while the operation is stuck. A target that never opened the prepared
// generation has nothing to give.
func gives(c *hostclaim.Claim) bool {
	return c.Op.Phase == hostclaim.Releasing || c.Op.Phase == hostclaim.ProbeFailed && c.PreparedOpened()
}

// ahead reports whether box is a target that may fetch before it is asked to
// build, because another still serves.
func ahead(c *hostclaim.Claim, box string) bool {
	op := c.Op
	return op.Target().Box == box && op.Reason() != hostclaim.Failover && (op.Phase == hostclaim.Starting || op.Phase == hostclaim.Releasing)
}

// execute is what the phase asks of the executor.
func (p *Participant) execute(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	switch o.Claim.Op.Phase {
	case hostclaim.Installing:
		return p.build(ctx, o)
	case hostclaim.Installed:
		return p.install(ctx, o)
	case hostclaim.Probing:
		return p.probe(ctx, o)
	}
	return told(retry, "%s %s: waiting for a worker", o.Claim.Op.Phase, o.Host), nil
}

// acknowledge costs no request beside the claim's.
func (p *Participant) acknowledge(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	return p.driver().update(ctx, o, "acknowledging "+o.Host, hostclaim.Acknowledge(o.Claim.Op.ID, p.Self.Box, p.Self.Enrollment))
}

// release gives the host up. Beside the claim it costs what the Runtime's
// release does: the last flush, and the receipt.
func (p *Participant) release(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	if o.Claim.Op.Journal.Release != nil {
		return told(retry, "released %s: waiting for a worker", o.Host), nil
	}
	r, err := p.Runtime.Release(ctx, o)
	if err != nil {
		return Turn{}, fmt.Errorf("release %s: %w", o.Host, err)
	}
	return p.driver().update(ctx, o, fmt.Sprintf("released session %d of %s", r.Session, o.Host), hostclaim.JournalRelease(o.Claim.Op.ID, r))
}

// build makes no claim write: a worker accepts what it finds built.
func (p *Participant) build(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	err := p.Runtime.Build(ctx, o)
	if other, ok := errors.AsType[*lease.HeldError](err); ok {
		return waits(min(other.Wait, soon), "building %s: waiting for %s, which holds its replica lease", o.Host, other.Holder), nil
	}
	if err != nil {
		return Turn{}, fmt.Errorf("build %s: %w", o.Host, err)
	}
	if p.Changed != nil {
		p.Changed(ctx, o.Claim)
	}
	return told(retry, "built %s: waiting for a worker to accept it", o.Host), nil
}

// install makes the receipt, opens an attempt and is admitted to the prepared
// generation in one write. It is the way to every attempt until that is open, so
// an installation that was retired meanwhile is made again. It costs what the
// Runtime's install and admission do.
func (p *Participant) install(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	receipt, err := p.Runtime.Install(ctx, o)
	if err != nil {
		return Turn{}, fmt.Errorf("install %s: %w", o.Host, err)
	}
	op, n := o.Claim.Op.ID, max(1, o.Claim.Op.Journal.ProbeAttempts)
	return p.admit(ctx, o, n, hostclaim.RecordLocalInstall(op, receipt), hostclaim.ToProbing(op, p.now()), hostclaim.BeginProbeAttempt(op, n))
}

// probe makes one step of the attempts. Beside the claim it costs what the
// Runtime's effects do.
func (p *Participant) probe(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	c, j := o.Claim, o.Claim.Op.Journal
	if !c.PreparedOpened() {
		return p.install(ctx, o)
	}
	if err := p.Runtime.VerifyInstall(ctx, o); err != nil {
		return p.receiptLost(ctx, o, err)
	}
	if j.ProbeAdmission < max(1, j.ProbeAttempts) {
		n := max(1, j.ProbeAttempts)
		return p.admit(ctx, o, n, hostclaim.BeginProbeAttempt(c.Op.ID, n))
	}
	failed := p.attempt(ctx, o)
	switch {
	case ctx.Err() != nil:
		return Turn{}, ctx.Err()
	case failed != nil:
		return p.failed(ctx, o, failed)
	case j.Probe != nil:
		return told(retry, "probed %s: waiting for a worker to complete", o.Host), nil
	}
	session := c.Holder.Session
	return p.driver().update(ctx, o, fmt.Sprintf("session %d of %s passed its probe", session, o.Host),
		hostclaim.Then(hostclaim.PublishGeneration(p.Self.Box, session), hostclaim.RecordProbe(c.Op.ID, p.Self.Box, session)))
}

// receiptLost hands an installation that is gone under an opened generation to
// an operator: it is never remade over what a writer left.
func (p *Participant) receiptLost(ctx context.Context, o hostclaim.Observed, why error) (Turn, error) {
	if !errors.Is(why, ErrNoInstall) {
		return Turn{}, fmt.Errorf("verify the install of %s: %w", o.Host, why)
	}
	return p.orPassed(ctx, o, step{fmt.Sprintf("probing %s is stuck: its local install is gone (%v)", o.Host, why),
		hostclaim.MarkStuck(o.Claim.Op.ID, hostclaim.ReceiptLost, p.now())})
}

// orPassed ends the attempts, unless the session has passed its probe: what
// befalls it then is for the host that serves.
func (p *Participant) orPassed(ctx context.Context, o hostclaim.Observed, end step) (Turn, error) {
	turn, made, err := p.driver().first(ctx, o, end)
	if err == nil && !made {
		return told(retry, "probed %s: waiting for a worker to complete", o.Host), nil
	}
	return turn, err
}

// attempt runs the admitted session and probes it; while it runs already, both
// are cheap.
func (p *Participant) attempt(ctx context.Context, o hostclaim.Observed) error {
	if err := p.Runtime.Start(ctx, o); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return p.Runtime.Probe(ctx, o)
}

// failed ends the attempt and begins the next, as long as the installation has
// one left. After the last the session is left as it is, for its release.
func (p *Participant) failed(ctx context.Context, o hostclaim.Observed, why error) (Turn, error) {
	op, n := o.Claim.Op, o.Claim.Op.Journal.ProbeAttempts
	if n >= hostclaim.MaxProbeAttempts {
		return p.orPassed(ctx, o, step{fmt.Sprintf("attempt %d of %s, the last, failed (%v)", n, o.Host, why), hostclaim.ToProbeFailed(op.ID, p.now())})
	}
	if err := p.Runtime.Stop(ctx, o.Host); err != nil {
		return Turn{}, fmt.Errorf("stop %s after attempt %d: %w", o.Host, n, errors.Join(why, err))
	}
	turn, err := p.admit(ctx, o, n+1, hostclaim.BeginProbeAttempt(op.ID, n+1))
	turn.Did = fmt.Sprintf("attempt %d of %s failed (%v); %s", n, o.Host, why, turn.Did)
	return turn, err
}

func (p *Participant) admit(ctx context.Context, o hostclaim.Observed, attempt int, first ...hostclaim.Transition) (Turn, error) {
	next, err := p.Runtime.Admit(ctx, o, first...)
	switch {
	case errors.Is(err, hostclaim.ErrConflict), errors.Is(err, hostclaim.ErrAlreadyRecorded):
		return moved(o.Host), nil
	case err != nil:
		return Turn{}, fmt.Errorf("admit %s: %w", o.Host, err)
	}
	if p.Changed != nil {
		p.Changed(ctx, next.Claim)
	}
	return Turn{Did: fmt.Sprintf("attempt %d of %s is admitted as session %d", attempt, o.Host, next.Claim.Holder.Session), Waits: "its probe", Now: next}, nil
}

func (p *Participant) driver() driver { return driver{control: p.Control, changed: p.Changed} }

func (p *Participant) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}
