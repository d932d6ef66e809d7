package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/internal/survey"
	"github.com/carlosframework/regionha/placement"
)

// Move is the move of a live host that has begun.
type Move struct {
	Host      string           `json:"host"`
	Op        string           `json:"op"`
	Reason    hostclaim.Reason `json:"reason"`
	From      string           `json:"from"`
	To        string           `json:"to"`
	StartedAt time.Time        `json:"started_at"`
}

// Drain begins to move a host off its box, to one that is chosen now. Workers
// carry it on; [Console.AwaitMove] watches it.
func (c *Console) Drain(ctx context.Context, host string) (Move, error) {
	return c.move(ctx, host, hostclaim.Drain, view.choose)
}

// Relocate begins to move a host to the box named to.
func (c *Console) Relocate(ctx context.Context, host, to string) (Move, error) {
	return c.move(ctx, host, hostclaim.Rebalance, func(v view, claim *hostclaim.Claim, pool string) (hostclaim.Member, error) {
		if to == claim.Op.Exec {
			return hostclaim.Member{}, fmt.Errorf("%w: it serves there", placement.ErrIneligible)
		}
		target, err := v.Named(v.want(claim, pool), to)
		if errors.Is(err, placement.ErrIneligible) {
			err = fmt.Errorf("%s is %w", to, err)
		}
		return target, err
	})
}

// pick decides where the host that claim is about goes.
type pick func(v view, claim *hostclaim.Claim, pool string) (hostclaim.Member, error)

// move checks everything that can be checked, and makes the one claim write
// that begins.
func (c *Console) move(ctx context.Context, host string, why hostclaim.Reason, to pick) (Move, error) {
	o, err := c.served(ctx, host)
	if err != nil {
		return Move{}, err
	}
	rec, problem := c.recordOf(ctx, o.Claim)
	if problem != "" {
		return Move{}, refuseMove(host, errors.New(problem), "look at it with: console host show "+host)
	}
	v, err := c.view(ctx)
	if err != nil {
		return Move{}, err
	}
	if err := v.mayLeave(o.Claim); err != nil {
		return Move{}, err
	}
	target, err := to(v, o.Claim, rec.Pool)
	if err != nil {
		return Move{}, refuseTarget(host, o.Claim.Holder.Region, err)
	}
	m := hostrelocate.Move{Why: why, Target: target, By: c.by(), Op: "op-" + record.Nonce(), Now: c.now()}
	start, err := hostrelocate.StartMove(v.Snapshot, o.Claim, m)
	if errors.Is(err, hostrelocate.ErrRefused) {
		return Move{}, refuseMove(host, err, "see the boxes with: console box list")
	}
	if err != nil {
		return Move{}, err
	}
	begun, err := c.apply(ctx, o, start)
	if errors.Is(err, hostclaim.ErrWrongState) || errors.Is(err, hostclaim.ErrPendingChore) {
		return Move{}, refuseMove(host, err, "look at it with: console host show "+host)
	}
	if err != nil {
		return Move{}, err
	}
	_ = regionfile.Bump(ctx, c.Store, begun.Claim.Holder.Region, host) // workers and boxes find it on their sweep too
	return Move{Host: host, Op: m.Op, Reason: why, From: o.Claim.Op.Exec, To: target.Box, StartedAt: m.Now}, nil
}

func refuseMove(host string, err error, next string) error {
	return &Refusal{What: host + " was not moved", Err: err, Next: next}
}

// refuseTarget explains why no box takes the host. A store that failed explains
// itself.
func refuseTarget(host, region string, err error) error {
	var none *survey.NoneError
	switch {
	case errors.As(err, &none):
		return refuseMove(host, err, fmt.Sprintf("start or enroll another box of region %s, or let one be chosen again with: console box undrain BOX", region))
	case errors.Is(err, placement.ErrIneligible):
		return refuseMove(host, err, "name another box, or have one chosen with: console host drain "+host)
	}
	return err
}

// served observes the claim of a host that may be moved: one that serves.
func (c *Console) served(ctx context.Context, host string) (hostclaim.Observed, error) {
	o, err := hostclaim.Read(ctx, c.Store, host)
	const list = "see the hosts with: console host list"
	switch {
	case errors.Is(err, hostrecord.ErrBadHost):
		return o, refuseMove(fmt.Sprintf("%q", host), err, list)
	case err != nil:
		return o, err
	case o.Claim == nil || o.Claim.Op.Kind == hostclaim.Free:
		return o, refuseMove(host, fmt.Errorf("%w: no such host runs in this deployment", ErrNone), list)
	case o.Claim.Op.Kind != hostclaim.Serving:
		s := describe(o.Claim, known{}, c.now())
		return o, refuseMove(host, fmt.Errorf("an operation runs: %s", s), "watch it with: console host show "+host)
	}
	return o, nil
}

// mayLeave refuses a move that the host's box cannot take part in: the box gives
// the host up itself, and proves it.
func (v view) mayLeave(claim *hostclaim.Claim) error {
	box := v.box(claim.Op.Exec)
	switch file, _ := v.Edges.File(box.Ref); {
	case !box.TerminatedAt.IsZero() || !box.DeclaredAt.IsZero():
		return refuseMove(claim.Host, fmt.Errorf("%s is %s", box.Ref, box.Status), "nothing: workers fail it over; watch it with: console host show "+claim.Host)
	case box.silent:
		return refuseMove(claim.Host, fmt.Errorf("%s is %s, and a host is moved only by the box that runs it", box.Ref, box.Status),
			"start its agent; if the machine is lost, terminate it and workers fail the host over")
	case !slices.Contains(file.Edges.Capabilities, placement.CapabilityRelease):
		return refuseMove(claim.Host, fmt.Errorf("%s cannot prove that a host of it has stopped", box.Ref),
			"run its agent as root or with its helper (agent helper --help), on a kernel with cgroup v2")
	}
	return nil
}

// choose picks the box that the claim's host may be moved to.
func (v view) choose(claim *hostclaim.Claim, pool string) (hostclaim.Member, error) {
	return v.Choose(v.want(claim, pool), claim.Host, survey.App(claim.Holder))
}

// want is what the claim's host needs of its next box. The secret is the one
// that its own box published.
func (v view) want(claim *hostclaim.Claim, pool string) placement.Want {
	file, _ := v.Edges.File(claim.Op.Exec)
	return survey.Want(claim, pool, file.Edges.SecretsKeyFP, nil)
}
