package hostguard

import "context"

// cleanUp is one call of the configured clean-up. It may take longer than a
// pass, so it runs beside it, and a later pass joins it: there are never two at
// once.
type cleanUp struct {
	op     string
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once done
}

func (c *cleanUp) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// cleanUp is nil once a clean-up of op has succeeded in this very call: one
// that ended before counts for nothing. op's controller is closed, and was all
// the time since a clean-up that is joined began.
func (x *Execution) cleanUp(ctx context.Context, op string) error {
	for {
		c := x.cleaning
		if c == nil || c.over() {
			c = x.beginCleaning(ctx, op)
		}
		if err := wait(ctx, c.done); err != nil {
			return err
		}
		if c.op == op {
			return c.err
		}
	}
}

func (x *Execution) beginCleaning(ctx context.Context, op string) *cleanUp {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &cleanUp{op: op, cancel: cancel, done: make(chan struct{})}
	x.cleaning = c
	go func() {
		defer close(c.done)
		defer cancel()
		c.err = x.cfg.CleanUp(ctx, op)
	}()
	return c
}

func (x *Execution) stopCleaning(ctx context.Context) error {
	if x.cleaning == nil {
		return nil
	}
	x.cleaning.cancel()
	return wait(ctx, x.cleaning.done)
}

// wait returns nil when done is closed, or the cause as soon as ctx ends.
func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
