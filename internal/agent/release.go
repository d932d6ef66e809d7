package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/stopevidence"
)

// flushedForRelease is logged once for each final flush of a release.
const flushedForRelease = "everything written is in the store, for the release"

// errTailLost: what a session wrote may lie on this box only, and cannot be
// brought to the store as it was.
var errTailLost = errors.New("the host cannot be released without loss")

// Release gives the host up, so that another box may take it without loss. Every
// step is durable and is not made twice: admission is fenced, writers are
// stopped, what they wrote is flushed and its positions journaled, producers are
// closed, and a look at the whole machine makes the stop receipt. A call after a
// crash anywhere goes on where the one before ended.
//
// It costs the final flush, two listings of it, the files manifest, and a PUT of
// the receipt.
func (r runtime) Release(ctx context.Context, o hostclaim.Observed) (hostclaim.Release, error) {
	h, err := r.executing(o)
	if err != nil {
		return hostclaim.Release{}, err
	}
	c := o.Claim
	if r.agent.machine == nil {
		return hostclaim.Release{}, errNoMachine
	}
	if outlived(c) {
		return hostclaim.Release{}, h.endOutlived(ctx, o)
	}
	r.agent.crash("releasing")
	if err := h.closeAdmission(ctx, c); err != nil {
		return hostclaim.Release{}, err
	}
	at, err := h.released(ctx, c)
	if err != nil {
		return hostclaim.Release{}, err
	}
	receipt, err := h.collect(ctx, c, at)
	if err != nil {
		return hostclaim.Release{}, err
	}
	me, ref := r.agent.self, receipt.Ref()
	return hostclaim.Release{Box: me.Box, Enrollment: me.Enrollment, Session: c.Holder.Session, Final: position(at),
		Receipt: ref.Key, ReceiptSHA256: ref.SHA256}, nil
}

// endOutlived ends the session in order before the newer installation is
// released, which has none. That moves the claim: the release is the next step.
func (h *host) endOutlived(ctx context.Context, o hostclaim.Observed) error {
	session, ended := o.Claim.Holder.Session, true
	var err error
	if h.run != nil {
		err = h.endRun(ctx, o)
	} else {
		ended, err = h.settle(ctx, o)
	}
	switch {
	case err != nil:
		return err
	case !ended:
		return fmt.Errorf("%w: session %d is not this box's to end", errTailLost, session)
	}
	return fmt.Errorf("%w: session %d has ended", hostclaim.ErrConflict, session)
}

// closeAdmission ends admission for the installation, durably, and takes the
// host out of service: new requests are held by the ingress from here on, and
// those that the app has are answered, within a bound.
func (h *host) closeAdmission(ctx context.Context, c *hostclaim.Claim) error {
	if h.fenced == c.Holder.Stamp {
		return nil
	}
	if err := h.guard.Activate(ctx, c.Holder.Incarnation, c.Holder.Stamp); err != nil {
		return err
	}
	if err := h.guard.BeginFence(ctx, c.Holder.Stamp, c.Op.ID); err != nil {
		return err
	}
	h.agent.crash("fenced")
	h.fenced = c.Holder.Stamp
	h.present(c)
	if err := h.answered(ctx); err != nil {
		h.log.Warn("stopping the app while requests wait for it", "err", err)
	}
	h.agent.crash("quiet")
	return nil
}

// released is where the claim's session ended: recorded before, or found out by
// stopping its writers and flushing what they wrote. A host without a writer
// ends at nothing.
func (h *host) released(ctx context.Context, c *hostclaim.Claim) (at hostguard.Final, err error) {
	switch {
	case c.Holder.Session == 0:
		return hostguard.Final{}, nil
	case c.Holder.Ended != nil:
		return final(c.Holder.Ended.Final), nil
	}
	was, recorded, err := h.guard.Released(stopRequest(c))
	if err != nil || recorded {
		return was.Final, err
	}
	left := h.run == nil || h.run.number != c.Holder.Session
	if !left {
		if err := h.run.app.Load().Stop(ctx); err != nil {
			return at, err
		}
		h.agent.crash("stopped")
	}
	err = h.guard.WithFence(ctx, c.Holder.Stamp, c.Op.ID, func(held *hostguard.Held) error {
		if left {
			at, err = h.releaseLeft(ctx, held, c)
		} else {
			at, err = h.flushReleased(ctx, held, c, h.run.producers)
		}
		return err
	})
	return at, err
}

// stopRequest is the exact request that a release answers: its recorded
// positions are used for no other.
func stopRequest(c *hostclaim.Claim) hostguard.ReleaseRequest {
	return hostguard.ReleaseRequest{Op: c.Op.ID, Revision: c.Op.Intent.DirectoryRevision, Stamp: c.Holder.Stamp,
		Session: c.Holder.Session, Generation: c.Holder.Generation, Incarnation: c.Holder.Incarnation}
}

// releaseLeft is where a session ended whose process is gone. One that this very
// boot restored is flushed; of any other that may have written, nobody knows
// whether what lies here is what it wrote, and the release fails.
func (h *host) releaseLeft(ctx context.Context, held *hostguard.Held, c *hostclaim.Claim) (hostguard.Final, error) {
	s, found, err := h.guard.Session()
	if err != nil {
		return hostguard.Final{}, err
	}
	if !found || s.Generation != c.Holder.Generation || s.Incarnation != c.Holder.Incarnation {
		return hostguard.Final{}, fmt.Errorf("%w: this box has no journal of session %d", errTailLost, c.Holder.Session)
	}
	switch s.Step {
	case hostguard.Ended:
		return *s.Final, nil
	case hostguard.Asked:
		return untouched(c), nil
	}
	if err := held.Flushable(s.Generation); err != nil {
		return hostguard.Final{}, fmt.Errorf("%w: %w", errTailLost, err)
	}
	left, err := h.openLeft(ctx, c)
	if err != nil {
		return hostguard.Final{}, fmt.Errorf("open what session %d left: %w", c.Holder.Session, err)
	}
	at, err := h.flushReleased(ctx, held, c, left)
	return at, errors.Join(err, left.close())
}

// flushReleased waits until nothing but the replicator has the database,
// brings all of it and of the files to the store, and journals where that ends.
func (h *host) flushReleased(ctx context.Context, held *hostguard.Held, c *hostclaim.Claim, p producers) (hostguard.Final, error) {
	if err := h.writersStopped(ctx, stoppedWithin, p); err != nil {
		return hostguard.Final{}, err
	}
	h.agent.crash("writers-stopped")
	txid, err := p.replicator.FlushFinal(ctx)
	if err != nil {
		return hostguard.Final{}, err
	}
	h.agent.crash("flushed")
	at, err := p.flushFiles(ctx, c.Holder.Generation, txid)
	if err != nil {
		return hostguard.Final{}, err
	}
	h.agent.crash("files-flushed")
	h.log.Info(flushedForRelease, "txid", at.TXID, "files_seq", at.FilesSeq)
	if err := held.JournalReleased(hostguard.Released{Request: stopRequest(c), Final: at}); err != nil {
		return hostguard.Final{}, err
	}
	h.agent.crash("journaled")
	return at, nil
}

// collect is the release's last step here: the producers are closed for good, a
// look without any exception finds nothing, and the receipt says so.
func (h *host) collect(ctx context.Context, c *hostclaim.Claim, at hostguard.Final) (stopevidence.Receipt, error) {
	if err := h.closeReleased(ctx); err != nil {
		return stopevidence.Receipt{}, err
	}
	h.agent.crash("closed")
	var seen machine.Seen
	err := untilStopped(ctx, stoppedWithin, func(ctx context.Context) (err error) {
		seen, err = h.agent.machine.Collect(ctx, h.name, h.subject())
		return err
	})
	if err != nil {
		return stopevidence.Receipt{}, err
	}
	h.agent.crash("collected")
	if err := h.endReleased(ctx, c, at); err != nil {
		return stopevidence.Receipt{}, err
	}
	h.agent.crash("ended")
	rec, err := h.stopRecord(c, seen)
	if err != nil {
		return stopevidence.Receipt{}, err
	}
	receipt, err := stopevidence.Publish(ctx, h.agent.control, rec)
	if err == nil {
		h.agent.crash("receipted")
	}
	return receipt, err
}

// closeReleased joins what still runs of the session. What a close says after
// the final flush takes nothing back: the look that follows decides.
func (h *host) closeReleased(ctx context.Context) error {
	s := h.run
	if s == nil {
		return nil
	}
	if err := s.app.Load().Stop(ctx); err != nil {
		return err
	}
	if err := s.join(); err != nil {
		h.log.Warn("closing a released session", "session", s.number, "err", err)
	}
	h.run = nil
	h.show(func(v *shown) { v.run = nil })
	return nil
}

// endReleased closes the session in its journal.
func (h *host) endReleased(ctx context.Context, c *hostclaim.Claim, at hostguard.Final) error {
	if c.Holder.Session == 0 || c.Holder.Ended != nil {
		return nil // there was none, or its end is recorded
	}
	return h.guard.WithFence(ctx, c.Holder.Stamp, c.Op.ID, func(held *hostguard.Held) error {
		return held.EndSession(c.Holder.Generation, at)
	})
}

// stopRecord is the receipt, with the two checks that are this process's own.
func (h *host) stopRecord(c *hostclaim.Claim, seen machine.Seen) (stopevidence.Record, error) {
	active, err := h.guard.Active()
	if err != nil {
		return stopevidence.Record{}, err
	}
	fence, err := record.Encode(active)
	if err != nil {
		return stopevidence.Record{}, err
	}
	me := h.agent.self
	return stopevidence.Record{
		V: 1, Host: h.name, Op: c.Op.ID, Obligation: stopevidence.Release, Box: me.Box, Enrollment: me.Enrollment,
		BootID: seen.BootID, Controller: me.Enrollment, Incarnation: c.Holder.Incarnation, Stamp: c.Holder.Stamp,
		Session: c.Holder.Session, DirectoryRevision: c.Op.Intent.DirectoryRevision, Fence: record.Digest(fence),
		Checks: append(seen.Checks,
			stopevidence.Check{Name: stopevidence.AdmissionClosed, Passed: active.Stamp == c.Holder.Stamp && active.Fence == c.Op.ID, Saw: "fenced by " + active.Fence},
			stopevidence.Check{Name: stopevidence.ProducersJoined, Passed: h.run == nil, Saw: "replicator and publisher are closed"}),
		EvidenceAt: seen.At,
	}, nil
}
