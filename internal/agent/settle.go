package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostguard"
)

// settle ends the session that an earlier process of this box left, where that
// is possible: one that was only asked for wrote nothing, one that ended here is
// repeated to the claim, and one of this very boot is flushed first. Otherwise
// the next admission declares what it may have lost.
func (h *host) settle(ctx context.Context, o hostclaim.Observed) (ended bool, err error) {
	hold := o.Claim.Holder
	if hold.Session == 0 || hold.Ended != nil || hold.WriterBox != h.agent.self.Box {
		return false, nil
	}
	s, found, err := h.guard.Session()
	if err != nil {
		return false, err
	}
	if !found || s.Generation != hold.Generation || s.Incarnation != hold.Incarnation {
		return false, nil
	}
	at, ok, err := h.finalOf(ctx, o.Claim, s)
	if err != nil || !ok {
		return false, err
	}
	return true, h.recordEnd(ctx, o, at)
}

// finalOf is where the left session ends; false if nobody can say.
func (h *host) finalOf(ctx context.Context, c *hostclaim.Claim, s hostguard.Session) (hostguard.Final, bool, error) {
	switch s.Step {
	case hostguard.Ended:
		return *s.Final, true, nil
	case hostguard.Asked:
		if err := h.distrustFiles(c); err != nil {
			return hostguard.Final{}, false, err
		}
		return untouched(c), true, nil
	}
	at, err := h.flushTail(ctx, c)
	if err == nil {
		h.tails = 0
		return at, true, nil
	}
	if h.tails++; h.tails < tailAttempts && !givesUp(err) {
		return hostguard.Final{}, false, fmt.Errorf("end session %d, which was left, attempt %d: %w", c.Holder.Session, h.tails, err)
	}
	h.tails = 0
	h.log.Warn("the last session is not ended; what it may have lost will be declared", "session", c.Holder.Session, "err", err)
	return hostguard.Final{}, false, nil
}

// untouched is where a session ends that wrote nothing: at its own baseline, and
// the one that opened the prepared generation where that was built.
func untouched(c *hostclaim.Claim) hostguard.Final {
	p := c.Holder.Generation
	if opensPrepared(c) {
		return hostguard.Final{Generation: p, TXID: c.Op.Journal.PreparedAuthority.SnapshotTXID, FilesGeneration: p}
	}
	return final(c.Holder.Admissions[len(c.Holder.Admissions)-1].Baseline)
}

// tailAttempts is how often a left session's tail is tried: a failed request
// loses nothing, and a tail that cannot be read keeps no host down.
const tailAttempts = 5

// givesUp reports whether trying again is of no use: the guard refuses the tail,
// or it is not what the store or this disk holds.
func givesUp(err error) bool {
	for _, refusal := range []error{hostguard.ErrSession, hostguard.ErrStale, hostguard.ErrFenced, hostdb.ErrFenced, hostdb.ErrNotFresh, hostfiles.ErrFenced} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// flushTail uploads what a session of this boot wrote before its agent was
// gone, to that session's own generation. It is the session's end only where
// its writers were seen to have stopped.
func (h *host) flushTail(ctx context.Context, c *hostclaim.Claim) (at hostguard.Final, err error) {
	stopped := h.witness(ctx, producers{})
	err = h.underSession(ctx, c, func(held *hostguard.Held) error {
		if err := held.Flushable(c.Holder.Generation); err != nil {
			return err
		}
		left, err := h.openLeft(ctx, c)
		if err != nil {
			return err
		}
		at, err = left.flush(ctx, c.Holder.Generation)
		return errors.Join(err, left.close())
	})
	return at, errors.Join(stopped, err)
}

// underSession runs fn while the installation of the claim's session is held,
// whether or not a release has fenced it: to end a session admits nobody.
func (h *host) underSession(ctx context.Context, c *hostclaim.Claim, fn func(*hostguard.Held) error) error {
	stamp := c.Holder.Session
	if err := h.guard.Activate(ctx, c.Holder.Incarnation, stamp); err != nil {
		return err
	}
	active, err := h.guard.Active()
	if err != nil {
		return err
	}
	if active.Fence != "" {
		return h.guard.WithFence(ctx, stamp, active.Fence, fn)
	}
	return h.guard.With(ctx, stamp, fn)
}

// openLeft opens the producers of a session that an earlier process left: what
// that had opened, or was about to.
func (h *host) openLeft(ctx context.Context, c *hostclaim.Claim) (producers, error) {
	target := hostfiles.Target{Location: c.Holder.Location, Generation: c.Holder.Generation, Session: c.Holder.Session, Stamp: c.Holder.Session}
	if opensPrepared(c) { // fenced: it was opened, by whom [hostfiles.New] finds out
		if _, err := hostfiles.OpenPrepared(ctx, h.agent.data, preparedRef(c), target); err != nil && !errors.Is(err, hostfiles.ErrFenced) {
			return producers{}, err
		}
	}
	publisher, err := hostfiles.New(ctx, h.agent.data, hostfiles.Config{Root: h.filesDir(), Platform: h.platform(), Target: target, Logger: h.log})
	if err != nil {
		return producers{}, err
	}
	replicator, err := h.openLeftDatabase(ctx, c)
	if err != nil {
		return producers{}, errors.Join(err, publisher.Close())
	}
	return producers{replicator, publisher}, nil
}

func (h *host) openLeftDatabase(ctx context.Context, c *hostclaim.Claim) (*hostdb.Replicator, error) {
	cfg := hostdb.Config{
		Path: h.database(), MetaDir: h.meta(c.Holder.Generation), Logger: h.log,
		Generation: hostdb.Generation{Location: c.Holder.Location, ID: c.Holder.Generation, Session: c.Holder.Session},
		Check:      func() error { return nil },
	}
	if err := h.leftBase(ctx, c, &cfg); err != nil {
		return nil, err
	}
	return hostdb.Open(ctx, h.agent.data, cfg)
}

// leftBase says what the current session began from: nothing, the build of a
// prepared generation, or any other database, which a fresh generation takes
// from the disk.
func (h *host) leftBase(ctx context.Context, c *hostclaim.Claim, cfg *hostdb.Config) error {
	from := c.Holder.Admissions[len(c.Holder.Admissions)-1].Baseline
	if cfg.Empty = from.Generation == ""; cfg.Empty {
		return nil
	}
	if opensPrepared(c) {
		p, err := hostdb.ReadPrepared(ctx, h.agent.data, c.Holder.Location, c.Holder.Generation, c.Op.Journal.PreparedAuthority.SHA256)
		cfg.Base, cfg.BaseSHA256 = p.SnapshotTXID, p.DatabaseSHA256
		return err
	}
	prepared, err := hostdb.Built(ctx, h.agent.data, c.Holder.Location, c.Holder.Generation)
	if prepared {
		cfg.Base = from.TXID
	}
	return err
}

// recordEnd closes the session durably here, and then tells the claim.
func (h *host) recordEnd(ctx context.Context, o hostclaim.Observed, at hostguard.Final) error {
	hold := o.Claim.Holder
	err := h.underSession(ctx, o.Claim, func(held *hostguard.Held) error { return held.EndSession(hold.Generation, at) })
	if err != nil {
		return err
	}
	next, err := hostclaim.Update(ctx, h.agent.control, o, hostclaim.EndSession(h.agent.self.Box, hold.Session, position(at)))
	if err != nil {
		return err
	}
	h.agent.changed(ctx, next.Claim)
	return nil
}

// endRun finishes in order what runs, which the claim names: requests that come
// from now on are held, and those that the app has are answered. Where the app
// may still live, it runs on.
func (h *host) endRun(ctx context.Context, o hostclaim.Observed) error {
	s := h.run
	h.show(func(v *shown) { v.run, v.row = nil, held })
	if err := h.answered(ctx); err != nil {
		h.log.Warn("ending the session all the same", "err", err)
	}
	if err := s.app.Load().Stop(ctx); err != nil {
		return err
	}
	return h.endStopped(ctx, o, h.witness(ctx, s.producers))
}

// endStopped brings all that a session whose app has stopped wrote to the store,
// and closes it. Its end is recorded unless stopped says that something may write
// still: then it is left, as if the agent had died here, to [host.settle].
func (h *host) endStopped(ctx context.Context, o hostclaim.Observed, stopped error) error {
	s := h.run
	h.run = nil
	at, err := s.finish(ctx)
	if err := errors.Join(stopped, err); err != nil {
		return err
	}
	return h.recordEnd(ctx, o, at)
}

// retire ends what runs when the agent is told to end: a session that the claim
// still names is finished in order, any other is abandoned. One that is being
// released leaves its positions to the next process, which goes on from them.
func (h *host) retire(ctx context.Context) error {
	if h.run == nil {
		return nil
	}
	o, err := hostclaim.Read(ctx, h.agent.control, h.name)
	if err != nil || !runs(o.Claim, h.agent.self.Box, h.run.number) {
		return errors.Join(err, h.abandon(ctx))
	}
	if h.fenced == o.Claim.Holder.Stamp {
		_, err := h.released(ctx, o.Claim)
		return errors.Join(err, h.abandon(ctx))
	}
	return h.endRun(ctx, o)
}
