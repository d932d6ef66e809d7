package console

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

// Console is one deployment as its operator sees it. It is safe for concurrent
// use.
type Console struct {
	Store    objstore.Store // of the control bucket
	Roster   *roster.Directory
	Private  ed25519.PrivateKey           // of the roster; only enrolling and declaring lost need it
	Certs    map[string]*x509.Certificate // what identities are verified with; only enrolling needs them
	SecretFP string                       // the deployment's secret, by fingerprint; only creating needs it
	By       string                       // who acts, as claims say it; "console" if empty
	Now      func() time.Time             // time.Now if nil

	// Hint brings a hint to internal addresses, and may take a few seconds; nil:
	// whom it concerns finds out later.
	Hint func(ctx context.Context, h hint.Hint, addrs []string)
}

// ErrNone: what was asked for is not there, as a completed read said.
var ErrNone = errors.New("there is none")

// Refusal is an answer to a person: what was refused, why, and what to do.
type Refusal struct {
	What string // "notes.example was not created"
	Err  error  // why
	Next string // what to do next
}

// Error is the whole answer, in two lines.
func (r *Refusal) Error() string { return fmt.Sprintf("%s: %v\nnext: %s", r.What, r.Err, r.Next) }

// Unwrap is why.
func (r *Refusal) Unwrap() error { return r.Err }

func (c *Console) now() time.Time {
	if c.Now == nil {
		return time.Now().UTC()
	}
	return c.Now().UTC()
}

func (c *Console) by() string {
	if c.By == "" {
		return "console"
	}
	return c.By
}

// attempts is how often a change is tried on what is there by then.
const attempts = 5

// apply makes t on the host's claim as it is now. Where another write came
// first, or the outcome is unknown, it reads again and tries on that, which
// kills the lost write. A step that is there already is success: t is bound to
// one operation id.
func (c *Console) apply(ctx context.Context, o hostclaim.Observed, t hostclaim.Transition) (hostclaim.Observed, error) {
	var err error
	for range attempts {
		var next hostclaim.Observed
		next, err = hostclaim.Update(ctx, c.Store, o, t)
		switch {
		case errors.Is(err, hostclaim.ErrAlreadyRecorded):
			return o, nil
		case !errors.Is(err, hostclaim.ErrConflict) && !errors.Is(err, hostclaim.ErrUnknown):
			return next, err
		}
		var readErr error
		if o, readErr = hostclaim.Read(ctx, c.Store, o.Host); readErr != nil {
			return o, errors.Join(err, readErr)
		}
	}
	return o, err
}
