package hostrelocate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// WarmDeadline is how long the source of a drain serves on for its target to
// fetch the newest snapshot. It bounds waiting: a target that is not warm by then
// fetches more in the cut.
const WarmDeadline = 10 * time.Minute

// WarmRecord says what the target of a drain has on its disk already. It lies at
// [WarmKey], create-only. It is advisory: it ends a wait and proves nothing.
type WarmRecord struct {
	V          int       `json:"v"`
	Host       string    `json:"host"`
	Op         string    `json:"op"`
	Box        string    `json:"box"`
	Enrollment string    `json:"enrollment"`
	Generation string    `json:"generation"` // "": the host has no database yet
	TXID       uint64    `json:"txid"`
	Bytes      int64     `json:"bytes"`
	At         time.Time `json:"at"`
}

// WarmKey is where a target's warm record lies in the control bucket.
func WarmKey(host, op, box string) string {
	return fmt.Sprintf("control/relocations/%s/%s/warm-%s.json", host, op, box)
}

// isWarm reports whether the operation's target said that it is warm. One GET.
func isWarm(ctx context.Context, control objstore.Store, c *hostclaim.Claim) (bool, error) {
	target := c.Op.Target()
	key := WarmKey(c.Host, c.Op.ID, target.Box)
	o, err := control.Get(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", key, err)
	}
	rec, err := record.Decode[WarmRecord](o.Body)
	if err != nil {
		return false, fmt.Errorf("%s: %w", key, err)
	}
	said := hostclaim.Member{Box: rec.Box, Enrollment: rec.Enrollment}
	return rec.Host == c.Host && rec.Op == c.Op.ID && said == target, nil
}

// warm fetches ahead while the source still serves, and says so once. A fetch
// that fails or is cut short holds nobody up. Beside the fetch it costs a claim
// read each 250 ms, and in starting one PUT.
func (p *Participant) warm(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	phase := o.Claim.Op.Phase
	warmth, err := p.fetch(ctx, o)
	switch {
	case ctx.Err() != nil:
		return Turn{}, ctx.Err()
	case errors.Is(err, errMoved):
		return moved(o.Host), nil
	case err != nil:
		return waits(retry, "%s %s: warming: %v", phase, o.Host, err), nil
	case phase == hostclaim.Starting:
		return p.sayWarm(ctx, o, warmth)
	}
	return told(poll, "%s %s: warm, waiting for its source", phase, o.Host), nil
}

var errMoved = errors.New("the claim moved on")

// fetch lets the Runtime fetch until nothing newer is left, or the claim moves
// on: what is asked of this box then must not wait for it.
func (p *Participant) fetch(ctx context.Context, o hostclaim.Observed) (Warmth, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() {
		if p.movesOn(ctx, o) {
			cancel(errMoved)
		}
	})
	warmth, err := p.Runtime.Warm(ctx, o)
	if err != nil && errors.Is(context.Cause(ctx), errMoved) {
		return Warmth{}, errMoved
	}
	return warmth, err
}

// movesOn waits until the operation leaves the phase, or names another target;
// false where ctx ended first. A claim that cannot be read says nothing.
func (p *Participant) movesOn(ctx context.Context, o hostclaim.Observed) bool {
	was := o.Claim.Op
	for pause.For(ctx, poll) {
		now, err := hostclaim.Read(ctx, p.Control, o.Host)
		if err != nil {
			continue
		}
		if c := now.Claim; c == nil || c.Op.ID != was.ID || c.Op.Phase != was.Phase || c.Op.Target() != was.Target() {
			return true
		}
	}
	return false
}

// sayWarm makes the warm record, unless it is there.
func (p *Participant) sayWarm(ctx context.Context, o hostclaim.Observed, is Warmth) (Turn, error) {
	op := o.Claim.Op.ID
	body, err := record.Encode(WarmRecord{V: 1, Host: o.Host, Op: op, Box: p.Self.Box, Enrollment: p.Self.Enrollment,
		Generation: is.Generation, TXID: is.TXID, Bytes: is.Bytes, At: p.now().UTC()})
	if err != nil {
		return Turn{}, err
	}
	_, err = objstore.Create(ctx, p.Control, WarmKey(o.Host, op, p.Self.Box), body)
	switch {
	case err == nil && p.Changed != nil:
		p.Changed(ctx, o.Claim)
	case err != nil && !errors.Is(err, objstore.ErrConflict):
		return Turn{}, fmt.Errorf("say that %s is warm: %w", o.Host, err)
	}
	return told(retry, "starting %s: warm, waiting for a worker", o.Host), nil
}
