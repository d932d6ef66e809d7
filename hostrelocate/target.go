package hostrelocate

import (
	"context"
	"fmt"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/record"
)

// anyone stands for the box that is still to be chosen, where the claim is asked
// whether another may be named at all. It is never written.
var anyone = hostclaim.Member{Box: "a-box-that-is-still-to-be-chosen", Enrollment: "none"}

// succession is one way to name the next target.
type succession struct {
	did     string
	by      func(next hostclaim.Member) hostclaim.Transition
	noSpare []step // what may be done where no box may be given the host, in this order
}

// succeed names the next target, if the claim allows it now; false: it does not,
// and no request was made. It costs what Choose does.
func (w *Worker) succeed(ctx context.Context, o hostclaim.Observed, s succession) (Turn, bool, error) {
	if !allows(o, s.by(anyone)) {
		return Turn{}, false, nil
	}
	next, found, err := w.choose(ctx, o.Claim)
	if err != nil {
		return Turn{}, true, fmt.Errorf("%s of %s: %w", s.did, o.Host, err)
	}
	if found {
		turn, err := w.driver().update(ctx, o, fmt.Sprintf("%s of %s by %s", s.did, o.Host, next.Box), s.by(next))
		return turn, true, err
	}
	if turn, made, err := w.driver().first(ctx, o, s.noSpare...); made || err != nil {
		return turn, true, err
	}
	return waits(seek, "%s of %s: waiting for a box that may be given it", s.did, o.Host), true, nil
}

// choose leaves out the boxes that the claim refuses whatever else they are.
func (w *Worker) choose(ctx context.Context, c *hostclaim.Claim) (hostclaim.Member, bool, error) {
	if w.Choose == nil {
		return hostclaim.Member{}, false, nil
	}
	return w.Choose(ctx, c, append([]string{c.Op.Intent.Source.Box, c.Op.Target().Box}, c.Op.Journal.Replaced...))
}

// evidence is what proves that a box is gone. Whether it is about the member of
// the operation is for the claim to say.
func (w *Worker) evidence(box string) (hostclaim.Gone, bool) {
	if w.Gone == nil {
		return hostclaim.Gone{}, false
	}
	return w.Gone(box)
}

// sourceGone consumes the evidence that the source is gone, once: a drain that
// had not left it becomes a failover in place. No request beside the claim's.
func (w *Worker) sourceGone(ctx context.Context, o hostclaim.Observed) (Turn, bool, error) {
	op := o.Claim.Op
	gone, ok := w.evidence(op.Intent.Source.Box)
	if !ok {
		return Turn{}, false, nil
	}
	return w.driver().first(ctx, o, step{fmt.Sprintf("source %s of %s is gone", op.Intent.Source.Box, o.Host),
		hostclaim.FenceSource(op.ID, gone, w.now())})
}

// targetGone replaces a target that is gone. One that released what it wrote
// already is left by its release, so that nothing of it is declared. Where no
// replacement is left the operation is stuck at once, and where no box may be
// given the host, after the claim's bound. It costs what Choose does, and one GET
// of a receipt.
func (w *Worker) targetGone(ctx context.Context, o hostclaim.Observed) (Turn, bool, error) {
	op, now := o.Claim.Op, w.now()
	target := op.Target()
	gone, ok := w.evidence(target.Box)
	if !ok {
		return Turn{}, false, nil
	}
	says := fmt.Sprintf("target %s of %s is gone and ", target.Box, o.Host)
	withoutSpare := []step{
		{says + "no box may take its place: an operator is needed", hostclaim.FenceTargetWithoutSpare(op.ID, gone, now)},
		w.cancel(o),
	}
	replace := succession{did: "replacing target " + target.Box, noSpare: withoutSpare,
		by: func(next hostclaim.Member) hostclaim.Transition {
			return hostclaim.ReplaceTarget(op.ID, gone, next, "p-"+record.Nonce(), now)
		}}
	if op.Phase == hostclaim.ProbeFailed && op.Journal.Release != nil && op.Journal.Stuck == nil {
		release, err := w.leaveReleased(ctx, o)
		if err != nil && !unproven(err) {
			return Turn{}, true, err
		}
		if err == nil {
			release.noSpare = withoutSpare
			replace = release
		}
	}
	if turn, made, err := w.succeed(ctx, o, replace); made || err != nil {
		return turn, made, err
	}
	return w.driver().first(ctx, o,
		step{says + "no replacement is left: an operator is needed", hostclaim.FenceExhaustedTarget(op.ID, gone, now)}, w.cancel(o))
}

// cancel gives up a drain that cannot begin: the source serves on.
func (w *Worker) cancel(o hostclaim.Observed) step {
	op := o.Claim.Op
	return step{fmt.Sprintf("the %s of %s cannot begin: %s serves on", op.Reason(), o.Host, op.Exec), hostclaim.CancelDrain(op.ID, w.now())}
}

// await is for a phase that waits for a live target: what it says while that is
// in time, and then the target is left for another. A drain that has not begun is
// given up instead, where there is none; everything else ends stuck. It costs
// what Choose does, once the wait is over.
func (w *Worker) await(ctx context.Context, o hostclaim.Observed, in Turn) (Turn, error) {
	op, now := o.Claim.Op, w.now()
	noSpare := []step{w.cancel(o)}
	if none := w.mark(o, hostclaim.NoSpare); allows(o, none.do) {
		noSpare = append(noSpare, w.mark(o, hostclaim.InstallOverdue), none)
	}
	turn, made, err := w.succeed(ctx, o, succession{did: "leaving target " + op.Target().Box, noSpare: noSpare,
		by: func(next hostclaim.Member) hostclaim.Transition {
			return hostclaim.AbandonTarget(op.ID, next, "p-"+record.Nonce(), now)
		}})
	if made || err != nil {
		return turn, err
	}
	turn, made, err = w.driver().first(ctx, o, w.cancel(o), w.mark(o, hostclaim.ReplacementsUsedUp))
	if made || err != nil {
		return turn, err
	}
	return in, nil
}

// mark hands the operation to an operator.
func (w *Worker) mark(o hostclaim.Observed, why hostclaim.StuckReason) step {
	op := o.Claim.Op
	return step{fmt.Sprintf("%s %s is stuck (%s): an operator is needed", op.Phase, o.Host, why), hostclaim.MarkStuck(op.ID, why, w.now())}
}

// stuck waits for an operator, but for a drain that has not begun: the source
// serves on. No request beside the claim's.
func (w *Worker) stuck(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	op := o.Claim.Op
	if turn, made, err := w.driver().first(ctx, o, w.cancel(o)); made || err != nil {
		return turn, err
	}
	return waits(untilTold, "%s %s is stuck (%s): waiting for an operator", op.Phase, o.Host, op.Journal.Stuck.Reason), nil
}
