package hostrelocate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/termfence"
)

// errUncovered: what the store holds is not what the evidence says was written.
// Waiting does not change it.
var errUncovered = errors.New("pin uncovered")

// pin names a target where there is none, waits for its acknowledgement, and
// hands the host over. Where the store does not hold what was written, the
// operation is stuck.
func (w *Worker) pin(ctx context.Context, o hostclaim.Observed) (Turn, error) {
	op := o.Claim.Op
	if op.Target().Box == "" {
		turn, _, err := w.succeed(ctx, o, succession{did: "naming a target", noSpare: []step{w.mark(o, hostclaim.NoSpare)},
			by: func(next hostclaim.Member) hostclaim.Transition { return hostclaim.NameTarget(op.ID, next, w.now()) }})
		return turn, err
	}
	if !op.Acknowledged() {
		return w.await(ctx, o, told(poll, "pinning %s: waiting for %s to acknowledge", o.Host, missing(op)))
	}
	turn, err := w.handOver(ctx, o)
	if errors.Is(err, errUncovered) {
		stuck := w.mark(o, hostclaim.PinUncovered)
		stuck.did += ": " + err.Error()
		if turn, made, err := w.driver().first(ctx, o, stuck); made || err != nil {
			return turn, err
		}
	}
	return turn, err
}

// handOver pins and hands the host to its target in one write, after what takes
// it from its executor. Beside the claim it costs a GET of each consumed fence at its first sight,
// the replica lease (one GET, two PUTs), the listings and manifest GET of
// [Newest], and two PUTs; nothing where the pin is journaled. Errors:
// errUncovered.
func (w *Worker) handOver(ctx context.Context, o hostclaim.Observed, take ...hostclaim.Transition) (Turn, error) {
	op := o.Claim.Op
	did := fmt.Sprintf("handing %s to %s", o.Host, op.Target().Box)
	hand := hostclaim.ToInstalling(op.ID, "p-"+record.Nonce(), w.now())
	if op.Phase == hostclaim.Pinning && op.Journal.Pin != nil {
		return w.hand(ctx, o, did, hand)
	}
	listedAt := w.now()
	left, err := w.window(ctx, op, listedAt)
	if err != nil {
		return Turn{}, fmt.Errorf("pin %s: %w", o.Host, err)
	}
	if left > 0 {
		return waits(min(left, maxWait), "pinning %s: waiting %s for the fence's window", o.Host, left.Round(100*time.Millisecond)), nil
	}
	held, err := w.leases.acquire(ctx, w.Control, o.Claim, w.Self.Enrollment, lease.DefaultTTL)
	if other, ok := errors.AsType[*lease.HeldError](err); ok {
		return waits(min(other.Wait, retry), "pinning %s: waiting for %s, which holds its replica lease", o.Host, other.Holder), nil
	}
	if err != nil {
		return Turn{}, err
	}
	defer held.Release(context.WithoutCancel(ctx))
	pinned, err := w.covered(ctx, o, listedAt, take)
	if err != nil {
		return Turn{}, fmt.Errorf("pin %s: %w", o.Host, err)
	}
	if err := held.Check(); err != nil {
		return Turn{}, fmt.Errorf("pin %s: the replica lease was lost, nothing is journaled: %w", o.Host, err)
	}
	return w.hand(ctx, o, did, append(pinned, hand)...)
}

// hand makes the write after which the target builds, which takes it a while:
// nobody has to look for the build at once.
func (w *Worker) hand(ctx context.Context, o hostclaim.Observed, did string, steps ...hostclaim.Transition) (Turn, error) {
	turn, err := w.driver().update(ctx, o, did, hostclaim.Then(steps...))
	if turn.Did != "" {
		next := told(retry, "building %s: waiting for %s", o.Host, o.Claim.Op.Target().Box)
		turn.Waits, turn.Again, turn.Told = next.Waits, next.Again, next.Told
	}
	return turn, err
}

// covered makes the pin, and is the steps up to its journal. Errors:
// errUncovered, where the claim does not accept what was selected against it.
func (w *Worker) covered(ctx context.Context, o hostclaim.Observed, listedAt time.Time, take []hostclaim.Transition) ([]hostclaim.Transition, error) {
	pin, err := w.makePin(ctx, o, listedAt)
	if errors.Is(err, hostdb.ErrBroken) || errors.Is(err, ErrFilesUnevidenced) {
		return nil, fmt.Errorf("%w: %w", errUncovered, err)
	}
	if err != nil {
		return nil, err
	}
	steps := append(take, hostclaim.JournalPin(o.Claim.Op.ID, pin))
	if _, err := o.Next("asked", hostclaim.Then(steps...)); errors.Is(err, hostclaim.ErrWrongState) {
		return nil, fmt.Errorf("%w: %w", errUncovered, err)
	}
	return steps, nil
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

// timed is, by the SHA-256 of a fence that was read, whether this worker's own
// clock timed it, which never changes. It is as long as the list of dead boxes.
type timed struct {
	mu   sync.Mutex
	mine map[string]bool
}

func (t *timed) get(sha256 string) (mine, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine, known = t.mine[sha256]
	return mine, known
}

func (t *timed) put(sha256 string, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mine == nil {
		t.mine = map[string]bool{}
	}
	t.mine[sha256] = mine
}

// observed reports whether this worker's own clock timed a fence. A declaration
// is of an operator's clock.
func (w *Worker) observed(ctx context.Context, f hostclaim.Fence) (bool, error) {
	if f.Declared {
		return false, nil
	}
	if mine, known := w.timed.get(f.SHA256); known {
		return mine, nil
	}
	body, err := readExact(ctx, w.Control, f.Key, f.SHA256)
	if err != nil {
		return false, err
	}
	rec, err := record.Decode[termfence.Record](body)
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.Key, err)
	}
	mine := rec.WrittenBy.Enrollment == w.Self.Enrollment
	w.timed.put(f.SHA256, mine)
	return mine, nil
}
