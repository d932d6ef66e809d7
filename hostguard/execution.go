package hostguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/objstore"
)

// ExecutionConfig is what an [Execution] needs of its box. All but TTL and
// Logger are required.
type ExecutionConfig struct {
	Guard *Guard
	Store objstore.Store // the control bucket, which holds the leases

	// CleanUp retires what op left in the host's local state: the local install
	// of a prepared generation that was never opened. It does nothing once this
	// box was admitted under op or serves the host, and may be repeated. It may
	// outlive the pass that began it; its context ends with Close.
	CleanUp func(ctx context.Context, op string) error

	// Over reads the claim afresh and is true only where that shows serving,
	// free, or that this box takes no part in op. An absent or unreadable claim
	// is an error.
	Over func(ctx context.Context, op string) (bool, error)

	TTL    time.Duration // of the lease; 15 s if zero
	Logger *slog.Logger  // the default one if nil
}

// Execution is one host's execution controller on this box: at most one
// operation at a time may have effects here, while its controller is open. Make
// one a host and process with [NewExecution]. It is safe for concurrent use.
type Execution struct {
	cfg ExecutionConfig
	g   *Guard
	log *slog.Logger

	turn chan struct{} // one pass at a time; it guards what follows

	known     map[string]bool  // the operations whose participation is not over
	candidate *lease.Candidate // of the newest operation
	cleaning  *cleanUp         // the newest clean-up
	closed    bool

	mu   sync.Mutex // guards open, which only a pass changes
	open *controller
}

// NewExecution makes a host's controller, with none open, and finds every
// participation that earlier processes left: an entry that cannot be read is
// logged, and hides no other.
func NewExecution(cfg ExecutionConfig) (*Execution, error) {
	if cfg.Guard == nil || cfg.Store == nil || cfg.CleanUp == nil || cfg.Over == nil || cfg.TTL < 0 {
		return nil, errors.New("hostguard: execution: want a guard, a store, a clean-up, a claim read, and a TTL that is not negative")
	}
	x := &Execution{cfg: cfg, g: cfg.Guard, log: cfg.Logger, turn: make(chan struct{}, 1), known: map[string]bool{}}
	if x.log == nil {
		x.log = slog.Default()
	}
	x.log = x.log.With("host", x.g.host, "box", x.g.me.Box)
	if err := makeDir(execDir(x.g.data)); err != nil {
		return nil, x.g.errorf("execution: %w", err)
	}
	ops, damaged, err := x.g.participations()
	if err != nil {
		return nil, err
	}
	for _, op := range ops {
		x.known[op] = true
	}
	for _, err := range damaged {
		x.log.Warn("a journaled participation cannot be read and is left alone", "err", err)
	}
	return x, nil
}

// Check is nil while op's controller is open and its lease not lost: ask it
// before every effect. It makes no request and takes no lock of the host.
// Errors: [ErrNoController].
func (x *Execution) Check(op string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open == nil || x.open.op != op {
		return x.g.errorf("%w: operation %s", ErrNoController, op)
	}
	if err := x.open.lease.Check(); err != nil {
		return x.g.errorf("%w: operation %s: %w", ErrNoController, op, err)
	}
	return nil
}

// Enter opens op's controller, so that its effects may begin; on an open one it
// costs nothing. First every other participation of the host here is closed and
// cleaned up, and so is op's own after a lost lease or a restart; then op is
// journaled, its record written and the lease taken (a GET and a PUT). An error
// leaves no controller open and what was written in place: enter again.
// Errors: [ErrUpdating], with no record left; [*lease.HeldError]; the error of
// a clean-up; the context's cause, as soon as it ends.
func (x *Execution) Enter(ctx context.Context, op string) error {
	if x.Check(op) == nil {
		return nil
	}
	return x.pass(ctx, "enter", func() error {
		if x.Check(op) == nil {
			return nil
		}
		for _, other := range slices.Sorted(maps.Keys(x.known)) {
			if err := x.retire(ctx, other); err != nil {
				return err
			}
		}
		if _, err := x.g.Acknowledge(ctx, op, time.Now()); err != nil {
			return err
		}
		x.known[op] = true
		if err := x.g.pend(ctx, op); err != nil {
			return err
		}
		return x.acquire(ctx, op)
	})
}

// Active records that the claim holds this box's acknowledgement of op, whose
// controller is open. A record that says so already costs nothing. Errors:
// [ErrNoController].
func (x *Execution) Active(ctx context.Context, op string) error {
	return x.pass(ctx, "active", func() error {
		if err := x.Check(op); err != nil || x.open.active {
			return err
		}
		if err := x.g.setExec(ctx, op, execActive); err != nil {
			return err
		}
		x.open.active = true
		return nil
	})
}

// Finish ends every participation of the host here but current's ("": all),
// each in this order: close, clean up, a fresh claim read, clear. Call it after
// every pass. What does not end now is kept whole and tried by the next call,
// and keeps no other from ending. Errors: those of what failed, joined; the
// context's cause, as soon as it ends.
func (x *Execution) Finish(ctx context.Context, current string) error {
	return x.pass(ctx, "finish", func() error {
		var errs []error
		for _, op := range slices.Sorted(maps.Keys(x.known)) {
			if op != current && context.Cause(ctx) == nil {
				errs = append(errs, x.finish(ctx, op))
			}
		}
		return errors.Join(errs...)
	})
}

func (x *Execution) finish(ctx context.Context, op string) error {
	if err := x.retire(ctx, op); err != nil {
		return err
	}
	over, err := x.cfg.Over(ctx, op)
	if err != nil {
		return fmt.Errorf("read the claim for operation %s: %w", op, err)
	}
	if !over {
		return nil
	}
	if err := x.g.clear(ctx, op); err != nil {
		return err
	}
	delete(x.known, op)
	x.log.Info("participation over", "op", op)
	return nil
}

// Close ends the controller as the process ends: the lease is released and a
// clean-up that runs is told to stop and waited for, within ctx. Records and
// journals stay for the next process. Nothing is entered afterwards.
func (x *Execution) Close(ctx context.Context) error {
	return x.pass(ctx, "close", func() error {
		x.closed = true
		return errors.Join(x.shut(ctx), x.stopCleaning(ctx))
	})
}

// pass runs fn while no other pass runs.
func (x *Execution) pass(ctx context.Context, what string, fn func() error) error {
	err := context.Cause(ctx)
	if err == nil {
		select {
		case x.turn <- struct{}{}:
			defer func() { <-x.turn }()
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	switch {
	case err != nil:
	case x.closed:
		err = fmt.Errorf("%w: it was closed as its process ends", ErrNoController)
	default:
		err = fn()
	}
	if err != nil {
		return x.g.errorf("%s: %w", what, err)
	}
	return nil
}
