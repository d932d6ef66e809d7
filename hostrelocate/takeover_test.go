package hostrelocate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// reach runs a drain up to a point.
func (w *world) reach(at func(*hostclaim.Claim) bool) {
	w.tb.Helper()
	require.True(w.tb, w.until(300, at), "%s", w.claim().Claim.Op.Phase)
}

func released(c *hostclaim.Claim) bool { return c.Op.Journal.Release != nil }

func stuckFor(why hostclaim.StuckReason) func(*hostclaim.Claim) bool {
	return func(c *hostclaim.Claim) bool { return c.Op.Journal.Stuck != nil && c.Op.Journal.Stuck.Reason == why }
}

// TestWhatWasReleasedIsPinnedBeforeAnyFence: a fence's window would have it wait
// for uploads that the receipt rules out.
func TestWhatWasReleasedIsPinnedBeforeAnyFence(t *testing.T) {
	for _, dead := range []hostclaim.Member{source, target} {
		w := served(t)
		w.spares = []hostclaim.Member{spare}
		w.reach(released)
		w.terminate(dead)
		began := w.now
		require.True(t, w.run(50))
		w.lossless()
		require.Less(t, w.now.Sub(began), time.Second, "the window")
		require.True(t, w.claim().Claim.IsLost(dead.Box), "its evidence is consumed all the same")
	}
}

func TestASourceThatDiesBeforeItsReleaseIsDeclared(t *testing.T) {
	w := served(t)
	w.reach(in(hostclaim.Releasing))
	w.terminate(source)
	require.True(t, w.run(50))
	c := w.claim().Claim
	require.Equal(t, hostclaim.Completed, c.Op.Outcome)
	require.Equal(t, source.Box, c.Holder.Admissions[1].WritesLost.Box)
}

func TestThreeFailedProbesLeadToTheNextTarget(t *testing.T) {
	w := served(t)
	w.spares = []hostclaim.Member{spare}
	w.probes = []error{errProbe, errProbe, errProbe}
	require.True(t, w.run(80))
	w.lossless()
	c := w.claim().Claim
	require.Equal(t, spare.Box, c.Op.Exec)
	require.Len(t, c.Holder.Admissions, 5, "the first, three attempts on the target, and one on the spare")
	require.Equal(t, hostclaim.Released, c.Holder.Admissions[4].Coverage, "of what the target released")
	require.True(t, c.Owes(target.Box, hostclaim.ParkLocal))
}

func TestReplacementsEndStuckOnceTheyAreUsedUp(t *testing.T) {
	w := served(t)
	w.spares = []hostclaim.Member{spare, fourth}
	w.reach(in(hostclaim.Installing))
	for _, m := range []hostclaim.Member{target, spare, fourth} {
		w.reach(func(c *hostclaim.Claim) bool { return c.Op.Target() == m })
		w.terminate(m)
	}
	began := w.now
	w.reach(stuckFor(hostclaim.ReplacementsUsedUp))
	require.Zero(t, w.now.Sub(began), "at once")
}

// TestTheNextTargetIsLeftToo: it was named in pinning, and never acknowledges.
func TestTheNextTargetIsLeftToo(t *testing.T) {
	for _, dead := range []bool{false, true} {
		w := served(t)
		w.spares = []hostclaim.Member{spare, fourth}
		w.probes = []error{errProbe, errProbe, errProbe}
		w.down[spare.Box] = true
		w.reach(func(c *hostclaim.Claim) bool { return c.Op.Phase == hostclaim.Pinning && c.Op.Target() == spare })
		if dead {
			w.terminate(spare)
		}
		began := w.now
		w.tick = time.Second
		require.True(t, w.run(300))
		w.lossless()
		require.Equal(t, fourth.Box, w.claim().Claim.Op.Exec)
		require.LessOrEqual(t, w.now.Sub(began), hostclaim.AckDeadline+time.Minute)
	}
}

func TestADeadTargetsReplacementCuresWhatItWasStuckFor(t *testing.T) {
	w := served(t)
	w.reach(in(hostclaim.Installing))
	w.terminate(target)
	w.tick = time.Minute
	w.reach(stuckFor(hostclaim.NoSpare))
	w.spares = []hostclaim.Member{spare}
	require.True(t, w.run(50))
	w.lossless()
	require.Equal(t, spare.Box, w.claim().Claim.Op.Exec)
}

// TestAReceiptThatDoesNotVerifyLeadsNowhere: an operator looks, unless the source
// is proven gone, which says more.
func TestAReceiptThatDoesNotVerifyLeadsNowhere(t *testing.T) {
	for _, dead := range []bool{false, true} {
		w := served(t)
		w.reach(released)
		_, err := w.control.Put(ctx, w.claim().Claim.Op.Journal.Release.Receipt, []byte("damaged"), objstore.Always())
		require.NoError(t, err)
		if dead {
			w.terminate(source)
			require.True(t, w.run(50))
			w.lossless()
			continue
		}
		w.down[source.Box] = true // its replay would find the damage too
		began := w.now
		w.tick = time.Minute
		w.reach(stuckFor(hostclaim.ReleaseOverdue))
		require.GreaterOrEqual(t, w.now.Sub(began), hostclaim.ReleaseDeadline-time.Minute)
	}
}

// TestAPinThatDoesNotReachTheReleaseIsStuck: the box says that it wrote more than
// the store holds.
func TestAPinThatDoesNotReachTheReleaseIsStuck(t *testing.T) {
	w := served(t)
	c := w.claim().Claim
	w.disks[source.Box].finals = map[uint64]hostclaim.Position{c.Holder.Session: {Generation: "g-1", TXID: 999, FilesGeneration: "g-1"}}
	w.reach(stuckFor(hostclaim.PinUncovered))
	require.Equal(t, hostclaim.None, w.claim().Claim.Op.Exec)
}

func TestAHostIsTakenFromItsSourceThoughItsPinHasToWait(t *testing.T) {
	w := served(t)
	w.reach(released)
	var other hostrelocate.Leases
	held, err := other.Acquire(ctx, w.control, w.claim().Claim, "enr-other")
	require.NoError(t, err)
	worker := w.worker()
	turn, err := worker.Step(ctx, w.claim())
	require.NoError(t, err)
	require.Equal(t, "box-1 released notes.demo.example; what follows", turn.String())
	turn, err = worker.Step(ctx, w.claim())
	require.NoError(t, err)
	require.Contains(t, turn.String(), "waiting for enr-other, which holds its replica lease")
	held.Release(ctx)
	require.True(t, w.run(50))
	w.lossless()
}

func TestASourceIsAskedOnceItsTargetIsWarm(t *testing.T) {
	w := served(t)
	w.reach(func(c *hostclaim.Claim) bool { return in(hostclaim.Starting)(c) && c.Op.Acknowledged() })
	turn, err := w.worker().Step(ctx, w.claim())
	require.NoError(t, err)
	require.Equal(t, "starting notes.demo.example: waiting for box-2 to fetch the newest snapshot", turn.String())

	told := 0
	for range 2 {
		p := w.participant()
		p.Changed = func(context.Context, *hostclaim.Claim) { told++ }
		turn, err = p.Step(ctx, w.claim())
		require.NoError(t, err)
		require.Equal(t, "starting notes.demo.example: warm, waiting for a worker", turn.String())
		w.now = w.now.Add(time.Second)
	}
	require.Equal(t, 1, told)
	turn, err = w.worker().Step(ctx, w.claim())
	require.NoError(t, err)
	require.Equal(t, "asking box-1 to release notes.demo.example; what follows", turn.String())
}

func TestATargetThatNeverGetsWarmIsWaitedForNoLonger(t *testing.T) {
	w := served(t)
	w.reach(func(c *hostclaim.Claim) bool { return in(hostclaim.Starting)(c) && c.Op.Acknowledged() })
	p := w.participant()
	p.Runtime.(*box).warm = func(context.Context) error { return errors.New("the store is slow") }
	turn, err := p.Step(ctx, w.claim())
	require.NoError(t, err, "it holds nobody up")
	require.Equal(t, "starting notes.demo.example: warming: the store is slow", turn.String())
	w.now = w.claim().Claim.Op.Journal.TargetSince.Add(hostrelocate.WarmDeadline - 1)
	turn, err = w.worker().Step(ctx, w.claim())
	require.NoError(t, err)
	require.Empty(t, turn.Did)
	w.now = w.now.Add(1)
	turn, err = w.worker().Step(ctx, w.claim())
	require.NoError(t, err)
	require.NotEmpty(t, turn.Did)
}

func TestAnotherBoxsWarmRecordIsNotTheTargets(t *testing.T) {
	w := served(t)
	w.reach(func(c *hostclaim.Claim) bool { return in(hostclaim.Starting)(c) && c.Op.Acknowledged() })
	op := w.claim().Claim.Op.ID
	_, err := w.control.Put(ctx, hostrelocate.WarmKey(host, op, target.Box),
		encode(t, hostrelocate.WarmRecord{V: 1, Host: host, Op: op, Box: target.Box, Enrollment: "enr-0"}), objstore.IfAbsent())
	require.NoError(t, err)
	turn, err := w.worker().Step(ctx, w.claim())
	require.NoError(t, err)
	require.Empty(t, turn.Did)
}

// TestWarmingEndsWithThePhase: what the claim asks of the box then does not wait
// for a fetch.
func TestWarmingEndsWithThePhase(t *testing.T) {
	w := served(t)
	w.reach(func(c *hostclaim.Claim) bool { return in(hostclaim.Starting)(c) && c.Op.Acknowledged() })
	o := w.claim()
	p := w.participant()
	p.Runtime.(*box).warm = func(ctx context.Context) error {
		w.step(o, hostclaim.ToReleasing(o.Claim.Op.ID, w.now))
		<-ctx.Done()
		return ctx.Err()
	}
	turn, err := p.Step(ctx, o)
	require.NoError(t, err)
	require.Equal(t, "looking again: notes.demo.example moved", turn.String())
}

// TestAnInstallThatWasRetiredIsMadeAgain: as long as nobody opened what it is of,
// and under the same stamp.
func TestAnInstallThatWasRetiredIsMadeAgain(t *testing.T) {
	w := served(t)
	w.reach(in(hostclaim.Installed))
	o := w.claim()
	w.control.Inject(memstore.Once(memstore.OpPut, hostclaim.Key(host), memstore.Lose))
	_, err := w.participant().Step(ctx, o)
	require.Error(t, err, "the admission was lost")
	w.control.Inject(nil)
	d := w.disks[target.Box]
	require.Equal(t, o.Claim.Op.Journal.InstallStamp, d.installed)
	d.installed = 0
	require.True(t, w.run(50))
	require.Equal(t, 2, d.installs)
	require.Equal(t, o.Claim.Op.Journal.InstallStamp, d.installed)
}

func TestAnInstallThatIsLostUnderAnOpenGenerationIsAnOperators(t *testing.T) {
	w := served(t)
	w.reach(in(hostclaim.Probing))
	d := w.disks[target.Box]
	d.installed = 0
	w.reach(stuckFor(hostclaim.ReceiptLost))
	require.Equal(t, hostclaim.ProbeFailed, w.claim().Claim.Op.Phase)
	require.Equal(t, 1, d.installs, "it is never remade over what a writer left")
	w.reach(released) // its release is a fact, and stays legal
	require.Equal(t, target.Box, w.claim().Claim.Op.Journal.Release.Box)
}

// receipted is a drain whose target made its local install, said so, and stopped
// there.
func receipted(t *testing.T) *world {
	w := served(t)
	w.reach(in(hostclaim.Installed))
	o := w.claim()
	receipt, err := (&box{world: w, self: target, disk: w.disks[target.Box]}).Install(ctx, o)
	require.NoError(t, err)
	w.step(o, hostclaim.RecordLocalInstall(o.Claim.Op.ID, receipt))
	w.down[target.Box] = true
	w.tick = 10 * time.Second
	return w
}

// TestATargetThatNeverOpenedTheGenerationIsLeftWithoutARelease: the next one opens
// it, and nothing is built again.
func TestATargetThatNeverOpenedTheGenerationIsLeftWithoutARelease(t *testing.T) {
	w := receipted(t)
	prepared := w.claim().Claim.Op.Journal.Prepared
	w.spares = []hostclaim.Member{spare}
	require.True(t, w.run(200))
	w.lossless()
	c := w.claim().Claim
	require.Equal(t, spare.Box, c.Op.Exec)
	require.Equal(t, prepared, c.Holder.Generation)
}

func TestATargetThatNeverOpenedTheGenerationReleasesNothing(t *testing.T) {
	w := receipted(t)
	w.reach(stuckFor(hostclaim.NoSpare))
	o := w.claim()
	require.Equal(t, hostclaim.ProbeFailed, o.Claim.Op.Phase)
	turn, err := w.participant().Step(ctx, o)
	require.NoError(t, err)
	require.Equal(t, "probe-failed notes.demo.example is stuck (no spare): waiting for an operator", turn.String())
	require.Equal(t, source.Box, o.Claim.Op.Journal.Release.Box, "what the source released stands")
}

func TestADrainWhoseTargetsNeverAcknowledgeIsGivenUp(t *testing.T) {
	w := served(t)
	w.spares = []hostclaim.Member{spare, fourth}
	for _, m := range []hostclaim.Member{target, spare, fourth} {
		w.down[m.Box] = true
	}
	w.tick = 10 * time.Second
	w.reach(stuckFor(hostclaim.ReplacementsUsedUp))
	w.reach(func(c *hostclaim.Claim) bool { return c.Op.Outcome == hostclaim.Cancelled })
	require.Equal(t, source.Box, w.claim().Claim.Op.Exec)
}

// TestTheNextTargetOfAReleasedHostIsLeftToo: it never acknowledges, and without it
// nothing is pinned.
func TestTheNextTargetOfAReleasedHostIsLeftToo(t *testing.T) {
	w := served(t)
	w.spares = []hostclaim.Member{spare, fourth}
	w.down[spare.Box] = true
	w.reach(in(hostclaim.Releasing))
	w.terminate(target)
	w.tick = time.Second
	began := w.now
	require.True(t, w.run(300))
	w.lossless()
	require.Equal(t, fourth.Box, w.claim().Claim.Op.Exec)
	require.LessOrEqual(t, w.now.Sub(began), hostclaim.AckDeadline+time.Minute)
}

func TestABuildThatDoesNotVerifyIsMadeByAnother(t *testing.T) {
	w := served(t)
	w.spares = []hostclaim.Member{spare}
	w.reach(in(hostclaim.Installing))
	o := w.claim()
	_, err := w.participant().Step(ctx, o)
	require.NoError(t, err)
	key := hostfiles.ManifestKey(o.Claim.Holder.Location, o.Claim.Op.Journal.Prepared)
	_, err = w.data.Put(ctx, key, []byte("damaged"), objstore.Always())
	require.NoError(t, err)
	_, err = w.worker().Step(ctx, w.claim())
	require.ErrorContains(t, err, "verify the build of notes.demo.example")
	w.down[target.Box] = true
	w.tick = 10 * time.Second
	require.True(t, w.run(300))
	w.lossless()
	require.Equal(t, spare.Box, w.claim().Claim.Op.Exec)
}

// closed is a box whose controller does not open.
type closed struct{ hostrelocate.Runtime }

var errClosed = errors.New("being updated")

func (closed) Enter(context.Context, hostclaim.Observed) error { return errClosed }

func TestNothingIsDoneWithoutAController(t *testing.T) {
	w := served(t)
	w.reach(in(hostclaim.Starting))
	gen := w.claim().Claim.Gen
	for _, m := range []hostclaim.Member{source, target} {
		p := w.participantOn(m)
		p.Runtime = closed{p.Runtime}
		_, err := p.Step(ctx, w.claim())
		require.ErrorIs(t, err, errClosed)
	}
	require.Equal(t, gen, w.claim().Claim.Gen)
}

func TestAnAbsentClaimEndsNoParticipation(t *testing.T) {
	w := served(t)
	w.disks[target.Box].entered = "op-9"
	turn, err := w.participant().Step(ctx, hostclaim.Observed{Host: host})
	require.NoError(t, err)
	require.True(t, turn.Done())
	require.Equal(t, "op-9", w.disks[target.Box].entered)
	_, err = w.participant().Step(ctx, w.claim())
	require.NoError(t, err)
	require.Empty(t, w.disks[target.Box].entered)
}
