package hostclaim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// The answers of Read, Update and transitions, by what the caller does next.
var (
	// ErrConflict: the claim moved since it was observed. Read again; your own
	// step may be part of what you find.
	ErrConflict = errors.New("claim moved")

	// ErrUnknown: the write may have applied, or may still. Start nothing, stop
	// what needed it, and look again.
	ErrUnknown = errors.New("outcome unknown")

	// ErrWrongState: the transition is not legal in this claim.
	ErrWrongState = errors.New("not legal in this state")

	// ErrStaleOp: another operation runs, or none.
	ErrStaleOp = errors.New("another operation")

	// ErrAlreadyRecorded: this exact step is done. For a replay it is success.
	ErrAlreadyRecorded = errors.New("already recorded")

	// ErrPendingChore: a box still owes clean-up that must come first.
	ErrPendingChore = errors.New("pending chore")

	// ErrMalformed: the object is not a valid claim. It is never repaired.
	ErrMalformed = errors.New("malformed claim")
)

// Transition checks a claim and changes it by one legal step. It sees Gen as
// the gen of the write that it is part of. A transition that returns an error
// has changed nothing that anyone will see.
type Transition func(*Claim) error

// Observed is a claim as it was read, with the version that a write on it must
// match.
type Observed struct {
	Host  string
	Claim *Claim // nil: the host never had a claim
	ETag  string
}

// Key is where a host's claim lies in the control bucket.
func Key(host string) string { return "control/hosts/" + host + ".json" }

// CheckHost refuses a name that no host may have: anything but a lower-case DNS
// name of at most 200 bytes.
func CheckHost(host string) error { return hostrecord.CheckHost(host) }

// Decode reads a claim from its stored bytes. Anything that is not the one
// encoding of a valid claim is [ErrMalformed].
func Decode(b []byte) (*Claim, error) {
	c, err := record.Decode[Claim](b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &c, nil
}

// Read observes a host's claim. It costs one GET. A host that never had a claim
// is an Observed with a nil Claim; a failed read is an error, never that.
func Read(ctx context.Context, s objstore.Store, host string) (Observed, error) {
	o, err := read(ctx, s, host)
	if err != nil {
		return Observed{}, fmt.Errorf("hostclaim: read %s: %w", host, err)
	}
	return o, nil
}

func read(ctx context.Context, s objstore.Store, host string) (Observed, error) {
	if err := CheckHost(host); err != nil {
		return Observed{}, err
	}
	obj, err := s.Get(ctx, Key(host))
	if errors.Is(err, objstore.ErrNotFound) {
		return Observed{Host: host}, nil
	}
	if err != nil {
		return Observed{}, err
	}
	c, err := Decode(obj.Body)
	if err != nil {
		return Observed{}, err
	}
	if c.Host != host {
		return Observed{}, fmt.Errorf("%w: it is the claim of %q", ErrMalformed, c.Host)
	}
	return Observed{Host: host, Claim: c, ETag: obj.ETag}, nil
}

// Update applies t to a copy of what was observed and writes it in one
// compare-and-swap. It costs one PUT, and one GET more where the outcome was
// unknown or a conflict, to see whether it is this very write that stands there.
// The result is the claim as written.
//
// Errors: with nothing sent, those of t, and [ErrMalformed] for a claim that
// nobody could read again; [ErrConflict]; [ErrUnknown].
func Update(ctx context.Context, s objstore.Store, o Observed, t Transition) (Observed, error) {
	next, err := write(ctx, s, o, t)
	if err != nil {
		return Observed{}, fmt.Errorf("hostclaim: %s: %w", o.Host, err)
	}
	return next, nil
}

func write(ctx context.Context, s objstore.Store, o Observed, t Transition) (Observed, error) {
	next, err := o.Next(record.Nonce(), t)
	if err != nil {
		return Observed{}, err
	}
	body, err := record.Encode(next)
	if err != nil {
		return Observed{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if next, err = Decode(body); err != nil {
		return Observed{}, err // nobody could read it again
	}
	cond := objstore.IfAbsent()
	if o.Claim != nil {
		cond = objstore.IfMatch(o.ETag)
	}
	info, err := objstore.PutSettled(ctx, s, Key(o.Host), body, cond)
	switch {
	case errors.Is(err, objstore.ErrConflict), errors.Is(err, objstore.ErrSuperseded):
		return Observed{}, fmt.Errorf("%w: %w", ErrConflict, err)
	case err != nil:
		return Observed{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return Observed{Host: o.Host, Claim: next, ETag: info.ETag}, nil
}

// Next is the claim that t makes of what was observed, under the write nonce
// given: the pure part of [Update]. The observed claim is not changed.
func (o Observed) Next(nonce string, t Transition) (*Claim, error) {
	next := &Claim{Op: Op{Kind: Free}}
	if o.Claim != nil {
		next = o.Claim.Clone()
	}
	gen := next.Gen + 1
	next.V, next.Host, next.Gen, next.Write = 1, o.Host, gen, nonce
	if err := t(next); err != nil {
		return nil, err
	}
	next.trim()
	if next.V != 1 || next.Host != o.Host || next.Gen != gen || next.Write != nonce {
		return nil, fmt.Errorf("%w: a transition may not change v, host, gen or write", ErrMalformed)
	}
	if err := next.Validate(); err != nil {
		return nil, err
	}
	return next, follows(o.Claim, next)
}

// follows refuses a step that takes back what may only grow.
func follows(before, after *Claim) error {
	if before == nil {
		return nil
	}
	for _, box := range before.Lost {
		if !after.IsLost(box) {
			return fmt.Errorf("%w: lost forgets %s", ErrMalformed, box)
		}
	}
	a, b := before.Holder, after.Holder
	if a == nil || b == nil || a.Incarnation != b.Incarnation {
		return nil
	}
	if b.Stamp < a.Stamp || b.Session < a.Session {
		return fmt.Errorf("%w: stamp %d to %d, session %d to %d", ErrMalformed, a.Stamp, b.Stamp, a.Session, b.Session)
	}
	return nil
}

// Then makes several transitions one write. Each sees the claim as the one
// before it left it. One that is already recorded is passed over; if all are,
// Then is [ErrAlreadyRecorded].
func Then(ts ...Transition) Transition {
	return func(c *Claim) error {
		recorded := 0
		for _, t := range ts {
			switch err := t(c); {
			case errors.Is(err, ErrAlreadyRecorded):
				recorded++
			case err != nil:
				return err
			}
		}
		if recorded == len(ts) {
			return ErrAlreadyRecorded
		}
		return nil
	}
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }

func add(list []string, s string) []string {
	if contains(list, s) {
		return list
	}
	return append(list, s)
}

// without drops entries. A list that nothing is left of is nil, as it is read.
func without[T any](list []T, drop func(T) bool) []T {
	if list = slices.DeleteFunc(list, drop); len(list) == 0 {
		return nil
	}
	return list
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrWrongState, fmt.Sprintf(format, args...))
}
