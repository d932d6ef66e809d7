package hostguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/internal/lease"
)

// controller is one operation's right to have effects here.
type controller struct {
	op     string
	lease  *lease.Lease
	active bool // the record says so
}

// acquire takes the lease, and with it opens the controller. One that comes
// later than its pass is let go again.
func (x *Execution) acquire(ctx context.Context, op string) error {
	key := fmt.Sprintf("control/exec/%s/%s/%s.json", x.g.host, op, x.g.me.Box)
	if x.candidate == nil || x.candidate.Key != key {
		holder := x.g.me.Box + "/" + x.g.me.Enrollment
		x.candidate = &lease.Candidate{Store: x.cfg.Store, Key: key, Holder: holder, TTL: x.cfg.TTL, New: true}
	}
	l, err := x.candidate.Acquire(ctx)
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		x.release(ctx, l)
		return fmt.Errorf("the lease came too late: %w", err)
	}
	x.mu.Lock()
	x.open = &controller{op: op, lease: l}
	x.mu.Unlock()
	x.log.Info("execution controller opened", "op", op)
	return nil
}

// retire closes op's controller and cleans up after it.
func (x *Execution) retire(ctx context.Context, op string) error {
	x.mu.Lock()
	open := x.open != nil && x.open.op == op
	x.mu.Unlock()
	if open {
		if err := x.shut(ctx); err != nil {
			return err
		}
	}
	if err := x.cleanUp(ctx, op); err != nil {
		return fmt.Errorf("clean up operation %s: %w", op, err)
	}
	return nil
}

// shut closes the open controller, if there is one. A lease that was lost is
// latched in the record.
func (x *Execution) shut(ctx context.Context) error {
	x.mu.Lock()
	c := x.open
	x.open = nil
	x.mu.Unlock()
	if c == nil {
		return nil
	}
	if err := c.lease.Check(); err != nil {
		x.log.Warn("execution controller lost", "op", c.op, "err", err)
		return errors.Join(x.g.setExec(ctx, c.op, execLost), wait(ctx, x.release(ctx, c.lease)))
	}
	return wait(ctx, x.release(ctx, c.lease))
}

// release lets a lease go in the background, within the bound of its own, and
// returns what is closed then.
func (x *Execution) release(ctx context.Context, l *lease.Lease) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := l.Release(ctx); err != nil {
			x.log.Debug("an execution lease was not released and will expire", "err", err)
		}
	}()
	return done
}
