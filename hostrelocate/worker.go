package hostrelocate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// DefaultPinDelay is how long after a fence a pin is taken. It bounds what a
// failover loses: uploads that were in flight when the box died may land late.
const DefaultPinDelay = 30 * time.Second

const defaultSkew = 30 * time.Second

// Worker makes the regional steps of relocations. Any number of workers may
// step one host. It is safe for concurrent use.
type Worker struct {
	Control objstore.Store
	Data    Store // of Region
	Region  string
	Self    hostclaim.Member
	Roster  *roster.Directory

	PinDelay time.Duration // DefaultPinDelay if zero

	// Skew is how far the clocks of two workers may be apart, 30s if zero. A pin
	// after a fence that another worker saw waits that much longer.
	Skew time.Duration

	Now     func() time.Time // time.Now if nil
	Changed changed          // told of each claim written; nil: nobody is told

	leases Leases
}

// StartFailover begins to move host off its executor, which the evidence says
// is gone, to target. It costs one roster GET beside the write. A host that is
// not serving on that box any more is left alone.
func (w *Worker) StartFailover(ctx context.Context, o hostclaim.Observed, source termfence.Evidence, target string) (Turn, error) {
	host := o.Host
	if !w.Serves(o.Claim, source.Box()) {
		return Turn{}, nil
	}
	snap, err := w.Roster.Read(ctx)
	if err != nil {
		return Turn{}, fmt.Errorf("start a failover of %s: %w", host, err)
	}
	if self, ok := snap.Box(w.Self.Box); !ok || self.State != roster.Active || self.Enrollment != w.Self.Enrollment {
		return Turn{}, fmt.Errorf("start a failover of %s: %w: worker %s", host, roster.ErrNotSelf, w.Self.Box)
	}
	to, ok := snap.Box(target)
	if !ok || to.State != roster.Active || to.Region != w.Region {
		return Turn{}, fmt.Errorf("start a failover of %s: target %q is not an active box of region %s", host, target, w.Region)
	}
	_, turn, err := w.driver().update(ctx, o, fmt.Sprintf("failing over %s from %s to %s", host, source.Box(), target),
		hostclaim.StartFailover(hostclaim.Relocation{
			Op: "op-" + record.Nonce(), By: w.Self.Box, Now: w.now(),
			Source:            hostclaim.Member{Box: source.Box(), Enrollment: source.Enrollment()},
			Target:            hostclaim.Member{Box: to.Ref, Enrollment: to.Enrollment},
			DirectoryRevision: snap.Revision, PinDelay: w.pinDelay(),
		}, hostclaim.Gone{Evidence: source}))
	return turn, err
}

// Serves reports whether the claim is of this region and serving on box.
func (w *Worker) Serves(c *hostclaim.Claim, box string) bool {
	return c != nil && c.Holder != nil && c.Holder.Region == w.Region && c.Op.Kind == hostclaim.Serving && c.Op.Exec == box
}

// Step makes the next regional step of the relocation that o shows, if it is a
// worker's and due. A host with no relocation in this region is a Turn that is
// Done.
func (w *Worker) Step(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	c, host := o.Claim, o.Host
	if c == nil || c.Op.Kind != hostclaim.Relocating || c.Holder.Region != w.Region {
		return Turn{}, nil
	}
	switch c.Op.Phase {
	case hostclaim.Starting:
		return w.toPinning(ctx, o)
	case hostclaim.Pinning:
		return w.handOver(ctx, o)
	case hostclaim.Installing:
		return w.accept(ctx, o)
	case hostclaim.Installed:
		return waits(poll, "installing %s: waiting for %s to put its files in place", host, c.Op.Exec), nil
	case hostclaim.Probing:
		return w.complete(ctx, o)
	}
	return Turn{}, fmt.Errorf("relocation of %s: no step for phase %q", host, c.Op.Phase)
}

// toPinning costs no request beside the claim's.
func (w *Worker) toPinning(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	op := o.Claim.Op
	if !op.Acknowledged() {
		return waits(poll, "starting %s: waiting for %s to acknowledge", o.Host, op.Target().Box), nil
	}
	_, turn, err := w.driver().update(ctx, o, "pinning "+o.Host, hostclaim.PinFailover(op.ID, w.now()))
	return turn, err
}

// handOver pins and hands the host to its target in one write. Beside the claim
// it costs a GET of each consumed fence, the replica lease (one GET, two PUTs),
// the listings and manifest GET of [Newest], and two PUTs.
func (w *Worker) handOver(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	op := o.Claim.Op
	listedAt := w.now()
	left, err := w.window(ctx, op, listedAt)
	if err != nil {
		return Turn{}, fmt.Errorf("pin %s: %w", o.Host, err)
	}
	if left > 0 {
		return waits(min(left, poll), "pinning %s: waiting %s for the fence's window", o.Host, left.Round(100*time.Millisecond)), nil
	}
	held, err := w.leases.Acquire(ctx, w.Control, o.Claim, w.Self.Enrollment)
	if other, ok := errors.AsType[*lease.HeldError](err); ok {
		return waits(min(other.Wait, soon), "pinning %s: waiting for %s, which holds its replica lease", o.Host, other.Holder), nil
	}
	if err != nil {
		return Turn{}, err
	}
	defer held.Release(context.WithoutCancel(ctx))

	hand := []hostclaim.Transition{hostclaim.ToInstalling(op.ID, "p-"+record.Nonce(), w.now())}
	if op.Journal.Pin == nil {
		pin, err := w.makePin(ctx, o, listedAt)
		if err != nil {
			return Turn{}, fmt.Errorf("pin %s: %w", o.Host, err)
		}
		hand = append([]hostclaim.Transition{hostclaim.JournalPin(op.ID, pin)}, hand...)
	}
	if err := held.Check(); err != nil {
		return Turn{}, fmt.Errorf("pin %s: the replica lease was lost, nothing is journaled: %w", o.Host, err)
	}
	_, turn, err := w.driver().update(ctx, o, fmt.Sprintf("handing %s to %s", o.Host, op.Target().Box), hostclaim.Then(hand...))
	return turn, err
}

// window is how long a listing has to wait still for every consumed fence. A
// fence's time is its observer's, so another worker's counts only within the
// skew.
func (w *Worker) window(ctx context.Context, op hostclaim.Op, now time.Time) (time.Duration, error) {
	left := op.PinFrom().Sub(now)
	if left > 0 {
		return left, nil
	}
	for _, box := range op.FencedBoxes() {
		f := op.Journal.Fences[box]
		mine, err := w.observed(ctx, f)
		if err != nil {
			return 0, err
		}
		if !mine {
			left = max(left, f.ObservedAt.Add(op.Intent.PinDelay+w.skew()).Sub(now))
		}
	}
	return left, nil
}

// observed reports whether this worker's own clock timed a fence. A declaration
// is of an operator's clock.
func (w *Worker) observed(ctx context.Context, f hostclaim.Fence) (bool, error) {
	if f.Declared {
		return false, nil
	}
	body, err := readExact(ctx, w.Control, f.Key, f.SHA256)
	if err != nil {
		return false, err
	}
	rec, err := record.Decode[termfence.Record](body)
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.Key, err)
	}
	return rec.WrittenBy.Enrollment == w.Self.Enrollment, nil
}

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
	if !built {
		return waits(poll, "building %s: waiting for %s", o.Host, c.Op.Exec), nil
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
		return Turn{}, fmt.Errorf("verify the build of %s: %w", o.Host, err)
	}
	files, err := hostfiles.VerifyPrepared(ctx, w.Data, retained, PreparedTarget(c))
	if err != nil {
		return Turn{}, fmt.Errorf("verify the build of %s: %w", o.Host, err)
	}
	_, turn, err := w.driver().update(ctx, o, "accepting the build of "+o.Host, hostclaim.ToInstalled(c.Op.ID, hostclaim.PreparedAuthority{
		Generation: j.Prepared, InstallManifest: database.InstallKey, SHA256: database.InstallSHA256,
		SnapshotTXID: database.SnapshotTXID, SourceFilesSeq: pin.Files.Seq, FilesManifestSHA256: files.SHA256,
	}, w.now()))
	return turn, err
}

// PreparedTarget is where the running relocation's prepared files manifest
// goes: of no session yet, under the stamp that it was handed out with.
func PreparedTarget(c *hostclaim.Claim) hostfiles.Target {
	j := c.Op.Journal
	return hostfiles.Target{Location: c.Holder.Location, Generation: j.Prepared, Stamp: j.PreparedStamp}
}

// complete costs no request beside the claim's.
func (w *Worker) complete(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	op := o.Claim.Op
	j := op.Journal
	switch {
	case j.Probe != nil && j.Probe.Session == o.Claim.Holder.Session:
		_, turn, err := w.driver().update(ctx, o, fmt.Sprintf("%s serves on %s", o.Host, op.Exec), hostclaim.CompleteRelocation(op.ID))
		return turn, err
	case j.ProbeAttempts >= hostclaim.MaxProbeAttempts:
		return waits(poll, "probing %s: waiting for the last of %d attempts on %s", o.Host, hostclaim.MaxProbeAttempts, op.Exec), nil
	}
	return waits(poll, "probing %s: waiting for attempt %d on %s", o.Host, max(1, j.ProbeAttempts), op.Exec), nil
}

func (w *Worker) driver() driver { return driver{control: w.Control, changed: w.Changed} }

func (w *Worker) now() time.Time {
	if w.Now != nil {
		return w.Now()
	}
	return time.Now()
}

func (w *Worker) skew() time.Duration {
	if w.Skew == 0 {
		return defaultSkew
	}
	return w.Skew
}

func (w *Worker) pinDelay() time.Duration {
	if w.PinDelay == 0 {
		return DefaultPinDelay
	}
	return w.PinDelay
}
