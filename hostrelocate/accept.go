package hostrelocate

import (
	"context"
	"fmt"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
)

// accept journals the prepared generation once a fresh read of all of it
// verifies. Beside the claim it costs one GET while the build runs; when it is
// complete, two GETs of the pin, those of [hostdb.VerifyPrepared], and one.
func (w *Worker) accept(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	c := o.Claim
	j := c.Op.Journal
	location := c.Holder.Location
	built, err := hostdb.Built(ctx, w.Data, location, j.Prepared)
	if err != nil {
		return Turn{}, err
	}
	if !built || !c.Op.Acknowledged() {
		return w.await(ctx, o, told(poll, "building %s: waiting for %s", o.Host, c.Op.Exec))
	}
	pin, err := ReadPin(ctx, w.Control, *j.Pin)
	if err != nil {
		return Turn{}, err
	}
	retained, err := ReadRetained(ctx, w.Control, pin)
	if err != nil {
		return Turn{}, err
	}
	database, err := hostdb.VerifyPrepared(ctx, w.Data, location, j.Prepared, pin.Set)
	if err != nil {
		return w.rejected(ctx, o, err)
	}
	files, err := hostfiles.VerifyPrepared(ctx, w.Data, retained, PreparedTarget(c))
	if err != nil {
		return w.rejected(ctx, o, err)
	}
	return w.driver().update(ctx, o, "accepting the build of "+o.Host, hostclaim.ToInstalled(c.Op.ID, hostclaim.PreparedAuthority{
		Generation: j.Prepared, InstallManifest: database.InstallKey, SHA256: database.InstallSHA256,
		SnapshotTXID: database.SnapshotTXID, SourceFilesSeq: pin.Files.Seq, FilesManifestSHA256: files.SHA256,
	}, w.now()))
}

// rejected is about a build that does not verify. Its target may mend it while
// its time lasts.
func (w *Worker) rejected(ctx context.Context, o hostclaim.Observed, why error) (Turn, error) {
	turn, err := w.await(ctx, o, Turn{})
	if err == nil && turn.Done() {
		return Turn{}, fmt.Errorf("verify the build of %s: %w", o.Host, why)
	}
	return turn, err
}

// PreparedTarget is where the running relocation's prepared files manifest
// goes: of no session yet, under the stamp that it was handed out with.
func PreparedTarget(c *hostclaim.Claim) hostfiles.Target {
	j := c.Op.Journal
	return hostfiles.Target{Location: c.Holder.Location, Generation: j.Prepared, Stamp: j.PreparedStamp}
}

// installed opens the installation to its target's attempts where the receipt is
// journaled and nobody did. No request beside the claim's.
func (w *Worker) installed(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	turn, made, err := w.driver().first(ctx, o, step{"probing " + o.Host, hostclaim.ToProbing(o.Claim.Op.ID, w.now())})
	if made || err != nil {
		return turn, err
	}
	return w.await(ctx, o, told(poll, "installing %s: waiting for %s to put its files in place", o.Host, o.Claim.Op.Exec))
}

// complete ends the operation on a passing probe, and the attempts of a target
// that opened the prepared generation and did not pass in time. No request beside
// the claim's, but what it costs to leave a target.
func (w *Worker) complete(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	c, op, j := o.Claim, o.Claim.Op, o.Claim.Op.Journal
	if j.Probe != nil && j.Probe.Session == c.Holder.Session {
		return w.driver().update(ctx, o, fmt.Sprintf("%s serves on %s", o.Host, op.Exec), hostclaim.CompleteRelocation(op.ID))
	}
	late := !w.now().Before(j.PhaseSince.Add(hostclaim.ProbeDeadline)) // of a third attempt only its box knows the end
	if late && c.PreparedOpened() {
		return w.driver().update(ctx, o, fmt.Sprintf("%s did not pass its probe in time on %s", o.Host, op.Exec), hostclaim.ToProbeFailed(op.ID, w.now()))
	}
	return w.await(ctx, o, told(poll, "probing %s: waiting for attempt %d on %s", o.Host, max(1, j.ProbeAttempts), op.Exec))
}

// failed leaves a target whose attempts are over: by its release once it opened
// the prepared generation, and as one that makes no progress before. Beside the
// claim it costs one GET of the receipt, and what Choose does.
func (w *Worker) failed(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	c, op := o.Claim, o.Claim.Op
	if !c.PreparedOpened() {
		return w.await(ctx, o, told(poll, "%s %s: waiting for another target", op.Phase, o.Host))
	}
	if turn, made, err := w.driver().first(ctx, o, w.mark(o, hostclaim.ReplacementsUsedUp)); made || err != nil {
		return turn, err
	}
	if op.Journal.Release == nil {
		if turn, made, err := w.driver().first(ctx, o, w.mark(o, hostclaim.ReleaseOverdue)); made || err != nil {
			return turn, err
		}
		return told(poll, "%s %s: waiting for %s to release it", op.Phase, o.Host, op.Exec), nil
	}
	next, err := w.leaveReleased(ctx, o)
	if unproven(err) {
		return w.useless(ctx, o, err)
	}
	if err != nil {
		return Turn{}, err
	}
	next.noSpare = []step{w.mark(o, hostclaim.NoSpare)}
	turn, made, err := w.succeed(ctx, o, next)
	if err == nil && !made {
		return w.useless(ctx, o, fmt.Errorf("the claim refuses the receipt of %s", op.Exec))
	}
	return turn, err
}
