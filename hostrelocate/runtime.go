package hostrelocate

import (
	"context"
	"errors"

	"github.com/carlosframework/regionha/hostclaim"
)

// ErrNoInstall: the local install that a claim's receipt names is not here. A
// failure to find out is another error.
var ErrNoInstall = errors.New("no local install")

// Runtime makes a participant's effects on its own box. Every call is bound to
// the claim that it was observed with, may be repeated after a crash anywhere
// in it, and returns only when its effect is durable.
type Runtime interface {
	// Enter opens this box's execution controller for the operation, and marks
	// the participation as active where the claim holds this box's
	// acknowledgement. It is called before every step, so it is cheap while the
	// controller is open. On an error nothing else is asked for in this pass.
	Enter(ctx context.Context, o hostclaim.Observed) error

	// Leave ends every participation of the host here but the one in the
	// operation current; "" ends all. It is called after every step.
	Leave(ctx context.Context, host, current string) error

	// Warm fetches the newest snapshot to this disk while another box still
	// serves, and returns when nothing newer was left to fetch. Nothing that it
	// fetched is believed beyond its digests. It may be cut short by ctx and
	// called again and again; while nothing changed it is cheap.
	Warm(ctx context.Context, o hostclaim.Observed) (Warmth, error)

	// Release ends the session here in order and proves it: no writer is left,
	// everything written is in the store, and the receipt is published.
	Release(ctx context.Context, o hostclaim.Observed) (hostclaim.Release, error)

	// Build makes the prepared generation complete in the store, and the
	// database on this box, in one pass over the pin.
	Build(ctx context.Context, o hostclaim.Observed) error

	// Install puts the prepared files in place, unless they are, and returns the
	// receipt. One that the controller's clean-up retired is made again under
	// the same install stamp.
	Install(ctx context.Context, o hostclaim.Observed) (hostclaim.LocalInstall, error)

	// VerifyInstall is nil if what the claim's receipt names is here. It is asked
	// once the prepared generation was opened. Errors: [ErrNoInstall].
	VerifyInstall(ctx context.Context, o hostclaim.Observed) error

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

// Warmth is what Warm put on a disk: a host without a database has the zero
// value.
type Warmth struct {
	Generation string
	TXID       uint64 // of the newest object fetched
	Bytes      int64  // of all
}
