package hostrelocate

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/stopevidence"
)

// begin waits until every participant acknowledged. A failover is pinned then; a
// drain's source is asked to release once its target is warm, or should be. It
// costs one GET of the warm record where all but that is there.
func (w *Worker) begin(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	op, now := o.Claim.Op, w.now()
	if !op.Acknowledged() {
		return w.await(ctx, o, told(poll, "starting %s: waiting for %s to acknowledge", o.Host, missing(op)))
	}
	if op.Reason() == hostclaim.Failover {
		return w.driver().update(ctx, o, "pinning "+o.Host, hostclaim.PinFailover(op.ID, now))
	}
	if until := op.Journal.TargetSince.Add(WarmDeadline); now.Before(until) {
		warm, err := isWarm(ctx, w.Control, o.Claim)
		if err != nil {
			return Turn{}, err
		}
		if !warm {
			return told(poll, "starting %s: waiting for %s to fetch the newest snapshot", o.Host, op.Target().Box), nil
		}
	}
	return w.driver().update(ctx, o, fmt.Sprintf("asking %s to release %s", op.Exec, o.Host), hostclaim.ToReleasing(op.ID, now))
}

// missing lists who did not acknowledge yet.
func missing(op hostclaim.Op) (boxes []string) {
	for _, box := range op.Participants {
		if op.Journal.Acks[box] == "" {
			boxes = append(boxes, box)
		}
	}
	return boxes
}

// released takes the host from the source that released it, pins what is there
// and hands it to the target, in one write: the release left nobody who could
// write, so nothing happens between the three. Where the pin has to wait, the
// host is taken at least. Beside the claim it costs one GET of the receipt, and
// what the pin costs.
func (w *Worker) released(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	op := o.Claim.Op
	if op.Journal.Release == nil {
		if turn, made, err := w.driver().first(ctx, o, w.mark(o, hostclaim.ReleaseOverdue)); made || err != nil {
			return turn, err
		}
		return w.await(ctx, o, told(poll, "releasing %s: waiting for %s", o.Host, op.Exec))
	}
	if !op.Acknowledged() {
		return w.await(ctx, o, told(poll, "releasing %s: waiting for %s to acknowledge", o.Host, missing(op)))
	}
	receipt, err := w.receipt(ctx, o.Claim)
	if err != nil && !unproven(err) {
		return Turn{}, err
	}
	take := hostclaim.PinAfterRelease(op.ID, receipt, hostclaim.Member{}, w.now())
	if err == nil {
		_, err = o.Next("asked", take)
	}
	if err != nil {
		return w.useless(ctx, o, err)
	}
	turn, err := w.handOver(ctx, o, take)
	if errors.Is(err, errUncovered) || err == nil && turn.Did == "" && turn.Again > 0 {
		turn, err = w.driver().update(ctx, o, fmt.Sprintf("%s released %s", op.Exec, o.Host), take)
	}
	return turn, err
}

// useless is about a release whose receipt does not verify. A source that is
// gone needs none.
func (w *Worker) useless(ctx context.Context, o hostclaim.Observed, why error) (Turn, error) {
	if turn, made, err := w.sourceGone(ctx, o); made || err != nil {
		return turn, err
	}
	if turn, made, err := w.driver().first(ctx, o, w.mark(o, hostclaim.ReleaseOverdue)); made || err != nil {
		return turn, err
	}
	return told(retry, "%s %s: the release of %s proves nothing: %v", o.Claim.Op.Phase, o.Host, o.Claim.Op.Exec, why), nil
}

// receipt is the stop receipt behind the journaled release.
func (w *Worker) receipt(ctx context.Context, c *hostclaim.Claim) (stopevidence.Receipt, error) {
	r := c.Op.Journal.Release
	return stopevidence.Read(ctx, w.Control, stopevidence.Ref{Key: r.Receipt, SHA256: r.ReceiptSHA256})
}

// unproven reports that a receipt was looked at and does not hold, which another
// look will not change.
func unproven(err error) bool {
	return errors.Is(err, stopevidence.ErrUnverified) || errors.Is(err, objstore.ErrNotFound)
}

// pinsRelease reports whether a pin of what was released may be taken now.
func (w *Worker) pinsRelease(c *hostclaim.Claim) bool {
	op, j := c.Op, c.Op.Journal
	return (op.Phase == hostclaim.Releasing || op.Phase == hostclaim.Pinning) && j.Release != nil && j.Pin == nil && j.Stuck == nil &&
		op.Acknowledged() && !op.PinFrom().After(w.now())
}

// leaveReleased is how a target that released its own session is left.
func (w *Worker) leaveReleased(ctx context.Context, o hostclaim.Observed) (succession, error) {
	op := o.Claim.Op
	receipt, err := w.receipt(ctx, o.Claim)
	if err != nil {
		return succession{}, err
	}
	return succession{did: "following the released target " + op.Target().Box, by: func(next hostclaim.Member) hostclaim.Transition {
		return hostclaim.PinAfterRelease(op.ID, receipt, next, w.now())
	}}, nil
}
