package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/ingress"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/stopevidence"
)

const (
	// sweep is how often all claims are listed when nothing hints at a change:
	// the hosts whose claim changed look then. It is less than the 10 minutes
	// that the edges file rests on a read, which a listing renews.
	sweep = 9 * time.Minute

	// restFor is how often a host at rest reads its claim all the same.
	restFor = time.Hour

	// leaveAgain is the pause of a host at rest after what an operation left here
	// could not be cleaned up.
	leaveAgain = 30 * time.Second

	// look is how often a step that waits for the app looks again.
	look = 100 * time.Millisecond

	// stopWithin bounds the orderly end of a session.
	stopWithin = 45 * time.Second
)

// host supervises one host on this box. Its loop alone touches what runs.
type host struct {
	agent *Agent
	name  string
	log   *slog.Logger
	guard *hostguard.Guard
	wake  chan struct{}

	wanted atomic.Bool // somebody waits for the host to wake
	idle   bool        // it sleeps in order until then
	left   bool        // no participation of this host is open here
	began  time.Time   // the claim of the last step is not older
	asOf   time.Time   // when the claim was read by which the row is presented

	run      *session
	record   hostrecord.Stored
	baseline *hostrelocate.Baseline // chosen for the newest admission, until it started
	built    string                 // the prepared generation that this process built
	failures int
	tails    int                       // failed attempts to flush what an earlier process left
	fenced   uint64                    // the stamp whose admission a release has ended
	known    []stopevidence.Descriptor // what the session that is released had open
	endsIn   time.Duration             // endsWithin if zero, and less in tests

	execution *hostguard.Execution
	warmth    hostrelocate.Warmth
	warmedAt  time.Time // zero: not in this operation

	shown atomic.Pointer[shown]
}

// shown is what the rest of the agent sees of a host.
type shown struct {
	row    row
	claim  *hostclaim.Claim
	run    *session
	record hostrecord.Record
	idle   bool // home here, and asleep: the next request wakes it
	says   string
}

// loop steps the host until ctx ends, then ends its session in order. It ends by
// itself where this box has nothing to do for the host any more.
func (h *host) loop(ctx context.Context) {
	var turn hostrelocate.Turn
	for ctx.Err() == nil {
		var err error
		turn, err = h.nextStep(ctx, turn)
		h.report(turn, err)
		if err == nil && turn.Done() && h.unneeded() && h.agent.dismiss(h) {
			return
		}
		h.sleep(ctx, turn, err)
		if err != nil {
			turn = hostrelocate.Turn{} // what stands there is read
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := h.retire(ctx); err != nil {
		h.log.Warn("ending the session", "err", err)
	}
	if err := h.execution.Close(ctx); err != nil {
		h.log.Warn("ending the execution controller", "err", err)
	}
}

func (h *host) report(turn hostrelocate.Turn, err error) {
	says := turn.String()
	switch {
	case err != nil && errors.Is(err, context.Canceled):
	case err != nil:
		says = err.Error()
		h.log.Warn("step failed, trying again", "err", err)
	case turn.Did != "":
		h.log.Info(turn.Did)
	}
	h.show(func(s *shown) { s.says = says })
}

func (h *host) show(change func(*shown)) {
	s := shown{}
	if old := h.shown.Load(); old != nil {
		s = *old
	}
	change(&s)
	h.shown.Store(&s)
}

// sleep waits until there is a reason to look again.
func (h *host) sleep(ctx context.Context, turn hostrelocate.Turn, err error) {
	again := turn.Again
	switch {
	case err != nil:
		h.failures++
		again = min(time.Second<<min(h.failures, 5), 30*time.Second)
	case turn.Did != "" || (turn.Waits != "" && again == 0):
		return
	case again == 0:
		h.failures = 0 // at rest
		again = restFor
	}
	again += rand.N(again/8 + 1)
	var broken <-chan struct{}
	if h.run != nil {
		broken = h.run.broken
	}
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-h.wake:
	case <-timer.C:
	case <-broken:
	}
}

// poke makes the loop look now.
func (h *host) poke() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// nextStep makes the step that follows last: on the claim as that wrote it, where
// it wrote one.
func (h *host) nextStep(ctx context.Context, last hostrelocate.Turn) (hostrelocate.Turn, error) {
	if last.Now.Claim == nil {
		return h.step(ctx)
	}
	if err := h.giveUp(ctx); err != nil {
		return hostrelocate.Turn{}, err
	}
	return h.stepOn(ctx, last.Now, h.began)
}

// step reads the claim and makes the next step. A claim that cannot be read
// changes nothing here, but a session that is of no use any more ends all the
// same: no app runs without its replicator.
func (h *host) step(ctx context.Context) (hostrelocate.Turn, error) {
	if err := h.giveUp(ctx); err != nil {
		return hostrelocate.Turn{}, err
	}
	began := time.Now()
	o, err := hostclaim.Read(ctx, h.agent.control, h.name)
	if err != nil {
		return hostrelocate.Turn{}, err
	}
	return h.stepOn(ctx, o, began)
}

// stepOn makes the next step on a claim that was read or written no sooner than
// began.
func (h *host) stepOn(ctx context.Context, o hostclaim.Observed, began time.Time) (hostrelocate.Turn, error) {
	h.began = began
	h.agent.claims.Saw(h.name, behind(o), began)
	if err := h.withdraw(ctx, o.Claim); err != nil {
		return hostrelocate.Turn{}, err
	}
	turn, err := h.act(ctx, o)
	if h.asOf = began; turn.Did != "" {
		h.asOf = time.Now() // the claim may have moved on
	}
	h.present(o.Claim)
	left := h.afterwards(ctx, o.Claim)
	if h.left = left == nil; !h.left {
		h.log.Warn("clean up after an operation", "err", left)
		if turn.Done() {
			turn.Again = leaveAgain
		}
	}
	return turn, err
}

// afterwards leaves the operations in which this box takes no part any more, and
// what it fetched for them. What cannot be left now is tried after the next step.
func (h *host) afterwards(ctx context.Context, c *hostclaim.Claim) error {
	err := h.cool(c)
	if !hostrelocate.Takes(c, h.agent.self.Box) {
		err = errors.Join(err, h.execution.Finish(ctx, ""))
	}
	return err
}

// giveUp stops a session that cannot bring its writes to the store any more.
func (h *host) giveUp(ctx context.Context) error {
	if h.run == nil {
		return nil
	}
	select {
	case <-h.run.broken:
		return h.shut(ctx, h.shown.Load().claim, h.run.why)
	default:
		return nil
	}
}

// withdraw stops a session that the claim does not name.
func (h *host) withdraw(ctx context.Context, c *hostclaim.Claim) error {
	if h.run == nil || runs(c, h.agent.self.Box, h.run.number) {
		return nil
	}
	return h.shut(ctx, c, errNotAdmitted)
}

// shut takes the session out of service at once, and then ends it.
func (h *host) shut(ctx context.Context, c *hostclaim.Claim, why error) error {
	h.log.Warn("stopping the app", "session", h.run.number, "err", why)
	h.run.lost.Store(true)
	h.present(c)
	return h.abandon(ctx)
}

func (h *host) abandon(ctx context.Context) error {
	s := h.run
	if s == nil {
		return nil
	}
	if err := s.abandon(ctx); err != nil {
		return fmt.Errorf("stop session %d: %w", s.number, err)
	}
	h.run = nil
	h.show(func(v *shown) { v.run = nil })
	return nil
}

// present lets the ingress and the edges file see the row.
func (h *host) present(c *hostclaim.Claim) {
	r := rowOf(c, h.agent.self.Box)
	if h.run == nil || h.run.lost.Load() || h.fenced == stampOf(c) {
		r = min(r, held)
	}
	before := h.shown.Load()
	h.show(func(s *shown) {
		s.row, s.claim, s.run, s.record = r, c, h.run, h.record.Record
		s.idle = h.idle && h.run == nil && rowOf(c, h.agent.self.Box) == ready && h.fenced != stampOf(c)
	})
	if before == nil || !before.same(h.shown.Load()) {
		h.agent.claims.Touch(h.name, h.asOf)
		h.agent.rowsChanged()
	}
}

// same reports whether the ingress and the edges file see no difference.
func (s *shown) same(as *shown) bool {
	return s.row == as.row && s.idle == as.idle && s.run == as.run && stampOf(s.claim) == stampOf(as.claim) && published(s.claim) == published(as.claim)
}

func stampOf(c *hostclaim.Claim) uint64 {
	if c == nil || c.Holder == nil {
		return 0
	}
	return c.Holder.Stamp
}

// act makes the step that the claim asks of this box.
func (h *host) act(ctx context.Context, o hostclaim.Observed) (hostrelocate.Turn, error) {
	c, me := o.Claim, h.agent.self
	if chore, ok := choreOf(c, me.Box); ok {
		return h.clear(ctx, o, chore)
	}
	switch {
	case c == nil || c.Holder == nil:
		return hostrelocate.Turn{}, nil
	case c.Op.Kind == hostclaim.Creating && c.Op.Intent.Selected == me:
		return h.completeCreate(ctx, o)
	case c.Op.Kind == hostclaim.Serving && c.Op.Exec == me.Box:
		return h.serve(ctx, o)
	case hostrelocate.Takes(c, me.Box):
		return h.takePart(ctx, o)
	}
	return hostrelocate.Turn{}, nil
}

// takePart makes this box's step of a relocation. A source that was not asked to
// release yet serves on beside it, and is started again like any other.
func (h *host) takePart(ctx context.Context, o hostclaim.Observed) (hostrelocate.Turn, error) {
	turn, err := h.agent.participant.Step(ctx, o)
	if turn.Did != "" || o.Claim.Op.Phase != hostclaim.Starting || !sources(o.Claim, h.agent.self.Box) {
		return turn, err
	}
	own, ownErr := h.serve(ctx, o)
	if err := errors.Join(err, ownErr); err != nil || !own.Done() {
		return own, err
	}
	return turn, nil
}

// completeCreate takes a host that was created on this box, once its record is
// there.
func (h *host) completeCreate(ctx context.Context, o hostclaim.Observed) (hostrelocate.Turn, error) {
	rec, err := h.readRecord(ctx, o.Claim)
	if errors.Is(err, objstore.ErrNotFound) {
		return hostrelocate.Turn{Waits: "creating " + h.name + ": waiting for its record", Again: look}, nil
	}
	if err != nil {
		return hostrelocate.Turn{}, err
	}
	h.record = rec
	next, err := hostclaim.Update(ctx, h.agent.control, o, hostclaim.CompleteCreate(o.Claim.Op.ID, h.agent.self.Box, h.agent.self.Enrollment))
	if err != nil {
		return moved(h.name, err)
	}
	h.agent.changed(ctx, next.Claim)
	return hostrelocate.Turn{Did: "taking " + h.name, Waits: "its first start"}, nil
}

// moved turns a claim that someone else moved into a reason to look again.
func moved(host string, err error) (hostrelocate.Turn, error) {
	if errors.Is(err, hostclaim.ErrConflict) || errors.Is(err, hostclaim.ErrAlreadyRecorded) {
		return hostrelocate.Turn{Waits: "looking again: " + host + " moved"}, nil
	}
	return hostrelocate.Turn{}, err
}

// readRecord reads the host's record, which must be of the incarnation that the
// claim holds.
func (h *host) readRecord(ctx context.Context, c *hostclaim.Claim) (hostrecord.Stored, error) {
	rec, err := hostrecord.Read(ctx, h.agent.control, c.Holder.Account, c.Holder.App, h.name)
	if err != nil {
		return hostrecord.Stored{}, err
	}
	if rec.Incarnation != c.Holder.Incarnation {
		return hostrecord.Stored{}, fmt.Errorf("record of %s is of incarnation %s, the claim of %s", h.name, rec.Incarnation, c.Holder.Incarnation)
	}
	return rec, supported(rec.Record)
}

// serve keeps the host running here: it starts a session where none runs and
// publishes its generation once that is durable and the app answers.
func (h *host) serve(ctx context.Context, o hostclaim.Observed) (hostrelocate.Turn, error) {
	if h.run != nil && outlived(o.Claim) {
		if err := h.endRun(ctx, o); err != nil {
			return moved(h.name, err)
		}
		return hostrelocate.Turn{Did: fmt.Sprintf("ended session %d of %s", o.Claim.Holder.Session, h.name), Waits: "a new one"}, nil
	}
	if h.run == nil {
		if rests, err := h.rests(ctx, o.Claim); rests || err != nil {
			return hostrelocate.Turn{}, err
		}
		return h.startServing(ctx, o)
	}
	if published(o.Claim) {
		return h.rest(ctx, o)
	}
	if h.run.app.Load().Addr() == nil {
		return hostrelocate.Turn{Waits: "starting " + h.name + ": waiting for its app to answer", Again: look}, nil
	}
	if err := h.durable(ctx); err != nil {
		return hostrelocate.Turn{}, err
	}
	next, err := hostclaim.Update(ctx, h.agent.control, o, hostclaim.PublishGeneration(h.agent.self.Box, h.run.number))
	if err != nil {
		return moved(h.name, err)
	}
	h.agent.changed(ctx, next.Claim)
	return hostrelocate.Turn{Did: fmt.Sprintf("serving %s as session %d", h.name, h.run.number)}, nil
}

// durable waits until the running session's app is ready and its generation has
// a durable root, but not for ever: the claim is looked at meanwhile.
func (h *host) durable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*h.record.StartTimeout.Std())
	defer cancel()
	return h.run.durable(ctx)
}

func (h *host) startServing(ctx context.Context, o hostclaim.Observed) (hostrelocate.Turn, error) {
	asked, err := h.startable(o.Claim)
	if err != nil {
		return hostrelocate.Turn{}, err
	}
	if !asked {
		ended, err := h.settle(ctx, o)
		if err != nil {
			return moved(h.name, err)
		}
		if ended {
			return hostrelocate.Turn{Did: fmt.Sprintf("ended session %d of %s", o.Claim.Holder.Session, h.name), Waits: "a new one"}, nil
		}
		if o, err = h.admit(ctx, o); err != nil {
			return moved(h.name, err)
		}
		h.agent.changed(ctx, o.Claim)
	}
	if err := h.begin(ctx, o); err != nil {
		return hostrelocate.Turn{}, errors.Join(err, h.abandon(ctx))
	}
	return hostrelocate.Turn{Did: fmt.Sprintf("started %s as session %d", h.name, h.run.number), Waits: "its app"}, nil
}

// published reports whether the newest admission's generation has a durable
// root, and its app was ready.
func published(c *hostclaim.Claim) bool {
	if c == nil || c.Holder == nil || len(c.Holder.Admissions) == 0 {
		return false
	}
	return c.Holder.Admissions[len(c.Holder.Admissions)-1].Published
}

// local is what the ingress may know of the host here. Nothing reaches the app
// before its generation is published.
func (h *host) local() (ingress.Local, bool) {
	s := h.shown.Load()
	if s == nil || s.row == none {
		return ingress.Local{}, false
	}
	l := ingress.Local{Host: h.name, Ready: s.row == ready || s.idle, Stamp: stampOf(s.claim)}
	switch {
	case s.idle:
		return l, true
	case s.run == nil || s.run.lost.Load():
		l.Ready = false
		return l, true
	case published(s.claim):
		l.Addr = s.run.app.Load().Addr()
	}
	l.WriteGate = func(*http.Request) error { return h.mayWrite(s) }
	return l, true
}

// mayWrite refuses writes while this process cannot know that it may take them.
func (h *host) mayWrite(s *shown) error {
	now := time.Now()
	if err := h.agent.beat.check(now); err != nil {
		return err
	}
	if lag, bound := s.run.lag(now), s.record.MaxLag.Std(); bound > 0 && lag > bound {
		return fmt.Errorf("the oldest write that is not in the store has waited %s, max_lag is %s", lag.Round(time.Second), bound)
	}
	return s.run.check()
}

// Places of a host on this box.
func (h *host) dir() string      { return filepath.Join(h.agent.set.DataDir, "hosts", h.name) }
func (h *host) database() string { return filepath.Join(h.dir(), "db", "app.db") }
func (h *host) filesDir() string { return filepath.Join(h.dir(), "files") }
func (h *host) platform() string { return filepath.Join(h.dir(), "platform") }

// meta is the replicator's own directory, one for each generation.
func (h *host) meta(generation string) string { return filepath.Join(h.dir(), "meta", generation) }

// staged is where an installation builds its database before it is opened.
func (h *host) staged(stamp uint64) string {
	return filepath.Join(h.dir(), "install", fmt.Sprintf("db-%d", stamp), "app.db")
}
