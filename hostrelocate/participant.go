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

// Runtime makes a participant's effects on its own box. Every call is bound to
// the claim that it was observed with, may be repeated after a crash anywhere
// in it, and returns only when its effect is durable.
type Runtime interface {
	// Acknowledge journals that this box takes part in the operation.
	Acknowledge(ctx context.Context, o hostclaim.Observed) error

	// Build makes the prepared generation complete in the store, and the
	// database on this box, in one pass over the pin.
	Build(ctx context.Context, o hostclaim.Observed) error

	// Install puts the prepared files in place and returns the receipt.
	Install(ctx context.Context, o hostclaim.Observed) (hostclaim.LocalInstall, error)

	// Admit makes one cold admission: it journals the generation, and writes
	// first and the admission as one claim write.
	Admit(ctx context.Context, o hostclaim.Observed, first ...hostclaim.Transition) (hostclaim.Observed, error)

	// Start runs the session that the claim admitted until its app is ready
	// and its generation has a durable root. A session that cannot go on is an
	// error, and nothing of it runs then.
	Start(ctx context.Context, o hostclaim.Observed) error

	// Probe is nil if the running session passes its probe.
	Probe(ctx context.Context, o hostclaim.Observed) error

	// Stop ends whatever runs of the host here.
	Stop(ctx context.Context, host string) error
}

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
// one. Where the box takes no part the Turn is Done.
func (p *Participant) Step(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	c := o.Claim
	if !Takes(c, p.Self.Box) {
		return Turn{}, nil
	}
	if c.Op.Journal.Acks[p.Self.Box] == "" {
		return p.acknowledge(ctx, o)
	}
	if c.Op.Exec != p.Self.Box {
		return waits(poll, "%s %s: waiting for a worker", c.Op.Phase, o.Host), nil
	}
	switch c.Op.Phase {
	case hostclaim.Installing:
		return p.build(ctx, o)
	case hostclaim.Installed:
		return p.install(ctx, o)
	case hostclaim.Probing:
		return p.probe(ctx, o)
	}
	return Turn{}, fmt.Errorf("relocation of %s: no step for phase %q", o.Host, c.Op.Phase)
}

// acknowledge costs no request beside the claim's.
func (p *Participant) acknowledge(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	if err := p.Runtime.Acknowledge(ctx, o); err != nil {
		return Turn{}, fmt.Errorf("acknowledge %s: %w", o.Host, err)
	}
	_, turn, err := p.driver().update(ctx, o, "acknowledging "+o.Host, hostclaim.Acknowledge(o.Claim.Op.ID, p.Self.Box, p.Self.Enrollment))
	return turn, err
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
	return waits(poll, "built %s: waiting for a worker to accept it", o.Host), nil
}

// install makes the receipt, opens the first attempt and is admitted to the
// prepared generation in one write.
func (p *Participant) install(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	receipt, err := p.Runtime.Install(ctx, o)
	if err != nil {
		return Turn{}, fmt.Errorf("install %s: %w", o.Host, err)
	}
	op := o.Claim.Op.ID
	return p.admit(ctx, o, 1, hostclaim.RecordLocalInstall(op, receipt), hostclaim.ToProbing(op, p.now()), hostclaim.BeginProbeAttempt(op, 1))
}

// probe makes one step of the attempts. Beside the claim it costs what the
// Runtime's effects do.
func (p *Participant) probe(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	j := o.Claim.Op.Journal
	if j.ProbeAdmission < max(1, j.ProbeAttempts) {
		n := max(1, j.ProbeAttempts)
		return p.admit(ctx, o, n, hostclaim.BeginProbeAttempt(o.Claim.Op.ID, n))
	}
	failed := p.attempt(ctx, o)
	switch {
	case ctx.Err() != nil:
		return Turn{}, ctx.Err()
	case failed != nil:
		return p.failed(ctx, o, failed)
	case j.Probe != nil:
		return waits(poll, "probed %s: waiting for a worker to complete", o.Host), nil
	}
	session := o.Claim.Holder.Session
	_, turn, err := p.driver().update(ctx, o, fmt.Sprintf("session %d of %s passed its probe", session, o.Host),
		hostclaim.Then(hostclaim.PublishGeneration(p.Self.Box, session), hostclaim.RecordProbe(o.Claim.Op.ID, p.Self.Box, session)))
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
// one left.
func (p *Participant) failed(ctx context.Context, o hostclaim.Observed, why error) (Turn, error) {
	n := o.Claim.Op.Journal.ProbeAttempts
	if err := p.Runtime.Stop(ctx, o.Host); err != nil {
		return Turn{}, fmt.Errorf("stop %s after attempt %d: %w", o.Host, n, errors.Join(why, err))
	}
	if n >= hostclaim.MaxProbeAttempts {
		return waits(retry, "probing %s: all %d attempts failed, an operator is needed: %v", o.Host, n, why), nil
	}
	turn, err := p.admit(ctx, o, n+1, hostclaim.BeginProbeAttempt(o.Claim.Op.ID, n+1))
	turn.Did = fmt.Sprintf("attempt %d of %s failed (%v); %s", n, o.Host, why, turn.Did)
	return turn, err
}

func (p *Participant) admit(ctx context.Context, o hostclaim.Observed, attempt int, first ...hostclaim.Transition) (Turn, error) {
	next, err := p.Runtime.Admit(ctx, o, first...)
	switch {
	case errors.Is(err, hostclaim.ErrConflict), errors.Is(err, hostclaim.ErrAlreadyRecorded):
		return Turn{Waits: "looking again: " + o.Host + " moved"}, nil
	case err != nil:
		return Turn{}, fmt.Errorf("admit %s: %w", o.Host, err)
	}
	if p.Changed != nil {
		p.Changed(ctx, next.Claim)
	}
	return Turn{Did: fmt.Sprintf("attempt %d of %s is admitted as session %d", attempt, o.Host, next.Claim.Holder.Session), Waits: "its probe"}, nil
}

func (p *Participant) driver() driver { return driver{control: p.Control, changed: p.Changed} }

func (p *Participant) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}
