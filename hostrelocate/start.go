package hostrelocate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/roster"
)

// ErrRefused: the move may not start as things are. The text is for a person.
var ErrRefused = errors.New("refused")

// Move is a host to be moved off a live box.
type Move struct {
	Why      hostclaim.Reason // hostclaim.Drain or hostclaim.Rebalance
	Target   hostclaim.Member
	By       string // who starts it
	Op       string // a fresh id
	Now      time.Time
	PinDelay time.Duration // DefaultPinDelay if zero; for what becomes a failover
}

// StartMove is the step that starts a move, held to the roster: the claim's
// executor and the target are active in the host's region, in these enrollments.
// Whether the target is eligible beyond that is for whoever chose it. Errors:
// [ErrRefused]. It makes no request.
func StartMove(snap roster.Snapshot, c *hostclaim.Claim, m Move) (hostclaim.Transition, error) {
	if c == nil || c.Holder == nil || c.Op.Kind != hostclaim.Serving {
		return nil, fmt.Errorf("%w: only a host that is serving is moved", ErrRefused)
	}
	source, region := hostclaim.Member{Box: c.Op.Exec, Enrollment: c.Op.ExecEnrollment}, c.Holder.Region
	for role, box := range map[string]hostclaim.Member{"source": source, "target": m.Target} {
		if err := activeIn(snap, box, region); err != nil {
			return nil, fmt.Errorf("%w: %s %s: %w", ErrRefused, role, box.Box, err)
		}
	}
	return hostclaim.StartRelocation(hostclaim.Relocation{Op: m.Op, By: m.By, Now: m.Now, Source: source, Target: m.Target,
		DirectoryRevision: snap.Revision, PinDelay: pinDelay(m.PinDelay)}, m.Why), nil
}

// activeIn refuses a box that may not act in region under its enrollment.
func activeIn(snap roster.Snapshot, m hostclaim.Member, region string) error {
	box, ok := snap.Box(m.Box)
	switch {
	case !ok:
		return errors.New("it is not enrolled")
	case box.Enrollment != m.Enrollment:
		return fmt.Errorf("it is enrolled as %s, not %s", box.Enrollment, m.Enrollment)
	case box.State != roster.Active:
		return fmt.Errorf("it is %s, not an active box", box.State)
	case box.Region != region:
		return fmt.Errorf("it is a box of region %s, not %s", box.Region, region)
	}
	return nil
}

// Drain begins to move a host off its live executor to target. It costs one
// roster GET beside the write. A host of this region that is not serving is left
// alone. Errors: [ErrRefused], [hostclaim.ErrPendingChore].
func (w *Worker) Drain(ctx context.Context, o hostclaim.Observed, why hostclaim.Reason, target hostclaim.Member) (Turn, error) {
	if o.Claim == nil || !w.Serves(o.Claim, o.Claim.Op.Exec) {
		return Turn{}, nil
	}
	snap, err := w.enrolled(ctx)
	if err != nil {
		return Turn{}, fmt.Errorf("start a %s of %s: %w", why, o.Host, err)
	}
	move, err := StartMove(snap, o.Claim, Move{Why: why, Target: target, By: w.Self.Box, Op: "op-" + record.Nonce(), Now: w.now(), PinDelay: w.PinDelay})
	if err != nil {
		return Turn{}, fmt.Errorf("start a %s of %s: %w", why, o.Host, err)
	}
	return w.driver().update(ctx, o, fmt.Sprintf("moving %s from %s to %s: %s", o.Host, o.Claim.Op.Exec, target.Box, why), move)
}

// StartFailover begins to move host off its executor, which is gone, to target. It costs one roster GET beside the write. A host that is
// not serving on that box any more is left alone.
func (w *Worker) StartFailover(ctx context.Context, o hostclaim.Observed, gone hostclaim.Gone, target string) (Turn, error) {
	host, source := o.Host, gone.Evidence
	if !w.Serves(o.Claim, source.Box()) {
		return Turn{}, nil
	}
	snap, err := w.enrolled(ctx)
	if err != nil {
		return Turn{}, fmt.Errorf("start a failover of %s: %w", host, err)
	}
	to, ok := snap.Box(target)
	if !ok || to.State != roster.Active || to.Region != w.Region {
		return Turn{}, fmt.Errorf("start a failover of %s: target %q is not an active box of region %s", host, target, w.Region)
	}
	return w.driver().update(ctx, o, fmt.Sprintf("failing over %s from %s to %s", host, source.Box(), target),
		hostclaim.StartFailover(hostclaim.Relocation{
			Op: "op-" + record.Nonce(), By: w.Self.Box, Now: w.now(),
			Source:            hostclaim.Member{Box: source.Box(), Enrollment: source.Enrollment()},
			Target:            hostclaim.Member{Box: to.Ref, Enrollment: to.Enrollment},
			DirectoryRevision: snap.Revision, PinDelay: pinDelay(w.PinDelay),
		}, gone))
}

// enrolled is the roster, in which this worker's own entry is active.
func (w *Worker) enrolled(ctx context.Context) (roster.Snapshot, error) {
	snap, err := w.Roster.Read(ctx)
	if err != nil {
		return roster.Snapshot{}, err
	}
	if self, ok := snap.Box(w.Self.Box); !ok || self.State != roster.Active || self.Enrollment != w.Self.Enrollment {
		return roster.Snapshot{}, fmt.Errorf("%w: worker %s", roster.ErrNotSelf, w.Self.Box)
	}
	return snap, nil
}

// Serves reports whether the claim is of this region and serving on box.
func (w *Worker) Serves(c *hostclaim.Claim, box string) bool {
	return c != nil && c.Holder != nil && c.Holder.Region == w.Region && c.Op.Kind == hostclaim.Serving && c.Op.Exec == box
}

func pinDelay(set time.Duration) time.Duration {
	if set == 0 {
		return DefaultPinDelay
	}
	return set
}
