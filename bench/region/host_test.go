package region_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/objstore"
)

// host is a host's supervisor on a box. Its loop alone touches what it holds,
// but for what is atomic.
type host struct {
	box  *box
	name string
	app  string
	wake chan struct{}

	ready atomic.Bool   // it is served here
	seen  atomic.Uint64 // the gen of the claim that was read last

	began   time.Time // the claim of the last step is not older
	running uint64    // the session that runs here
	entered string    // the operation whose controller is open
	lease   *lease.Lease
	built   string // the prepared generation that was built here

	warmOp   string
	warmedAt time.Time
	warmth   hostrelocate.Warmth

	failures int
}

func newHost(b *box, name string) *host {
	h := &host{box: b, name: name, app: appOf(name), wake: make(chan struct{}, 1)}
	return h
}

func (h *host) poke() { signal(h.wake) }

// restFor is how often a host at rest reads its claim.
const restFor = time.Hour

// loop steps the host until the box has nothing to do for it any more.
func (h *host) loop(ctx context.Context) {
	if h.ready.Load() && !h.sleep(ctx, h.box.within(restFor)) { // it has been at rest
		return
	}
	var last hostrelocate.Turn
	for ctx.Err() == nil {
		turn, needed, err := h.nextStep(ctx, last)
		if last = turn; err != nil {
			last = hostrelocate.Turn{}
		}
		again := turn.Again
		switch {
		case err != nil:
			h.failures++
			again = min(time.Second<<min(h.failures, 5), 30*time.Second)
		case turn.Did != "" || turn.Waits != "" && again == 0:
			continue
		case !needed && again == 0 && len(h.wake) == 0:
			h.box.drop(h.name)
			return
		case again == 0:
			h.failures, again = 0, restFor
		}
		if !h.sleep(ctx, again+h.box.within(again/8)) {
			return
		}
	}
}

func (h *host) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-h.wake:
	case <-t.C:
	}
	return true
}

// nextStep makes the step that follows last: on the claim as that wrote it, where
// it wrote one.
func (h *host) nextStep(ctx context.Context, last hostrelocate.Turn) (turn hostrelocate.Turn, needed bool, err error) {
	if last.Now.Claim == nil {
		return h.step(ctx)
	}
	return h.stepOn(ctx, last.Now, h.began)
}

// step reads the claim and does what it asks of this box; needed reports
// whether it names the box at all.
func (h *host) step(ctx context.Context) (turn hostrelocate.Turn, needed bool, err error) {
	began := time.Now()
	o, err := hostclaim.Read(ctx, h.box.control, h.name)
	if err != nil || o.Claim == nil {
		return turn, true, err
	}
	return h.stepOn(ctx, o, began)
}

func (h *host) stepOn(ctx context.Context, o hostclaim.Observed, began time.Time) (turn hostrelocate.Turn, needed bool, err error) {
	h.began = began
	h.box.claims.Saw(h.name, behind(o), began)
	h.seen.Store(o.Claim.Gen)
	h.present(o.Claim, began)
	r := effects{h}
	c, me := o.Claim, h.box.ref
	switch owed, owes := chore(c, me); {
	case owes:
		turn, err = h.clear(ctx, o, owed)
	case hostrelocate.Takes(c, me):
		p := hostrelocate.Participant{Control: h.box.control, Self: h.box.self, Runtime: r, Changed: h.wrote}
		turn, err = p.Step(ctx, o)
	default:
		err = r.Leave(ctx, h.name, "")
	}
	return turn, names(c, me), err
}

// wrote takes in a claim that this box wrote, and tells others.
func (h *host) wrote(_ context.Context, c *hostclaim.Claim) { h.box.hints.Send(hint.Of(c)) }

// present shows in the edges file whether the box serves the host.
func (h *host) present(c *hostclaim.Claim, asOf time.Time) {
	serves := c.Op.Kind == hostclaim.Serving && c.Op.Exec == h.box.ref || sources(c, h.box.ref)
	if h.ready.Swap(serves) != serves {
		h.box.claims.Touch(h.name, asOf)
		signal(h.box.dirty)
	}
}

// sources reports whether the box is a live source that serves on.
func sources(c *hostclaim.Claim, box string) bool {
	return c.Op.Kind == hostclaim.Relocating && c.Op.Exec == box && c.Op.Intent.Source.Box == box && c.Op.Phase == hostclaim.Starting
}

// chore is the box's to put its local copy of the host away, where nothing runs
// that involves it.
func chore(c *hostclaim.Claim, box string) (hostclaim.Obligation, bool) {
	if c.Op.Kind != hostclaim.Serving || c.Op.Exec == box {
		return hostclaim.Obligation{}, false
	}
	for _, o := range c.Obligations {
		if o.Kind == hostclaim.ParkLocal && o.Owner == "box:"+box {
			return o, true
		}
	}
	return hostclaim.Obligation{}, false
}

// clear does the chore: what lies here is moved aside, and the claim is told.
func (h *host) clear(ctx context.Context, o hostclaim.Observed, owed hostclaim.Obligation) (hostrelocate.Turn, error) {
	if err := (effects{h}).Leave(ctx, h.name, ""); err != nil {
		return hostrelocate.Turn{}, err
	}
	next, err := hostclaim.Update(ctx, h.box.control, o, hostclaim.CompleteObligation(owed.Op, owed.ID))
	switch {
	case errors.Is(err, hostclaim.ErrConflict), errors.Is(err, hostclaim.ErrAlreadyRecorded):
		return hostrelocate.Turn{Waits: "looking again"}, nil
	case err != nil:
		return hostrelocate.Turn{}, err
	}
	h.wrote(ctx, next.Claim)
	return hostrelocate.Turn{Did: "put the local copy away"}, nil
}

var always = objstore.Always()

func newBody(s string) *strings.Reader { return strings.NewReader(s) }
