package console_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
	"github.com/carlosframework/regionha/termfence"
)

// serving is a deployment of two boxes with a host that serves on the first.
func serving(t *testing.T) *deployment {
	t.Helper()
	d := deploy(t)
	_, err := d.Create(t.Context(), wanted())
	require.NoError(t, err)
	d.start(t)
	d.join(t, "box-2", "i-0002")
	return d
}

func (d *deployment) member(t *testing.T, ref string) hostclaim.Member {
	t.Helper()
	box, err := d.Box(t.Context(), ref)
	require.NoError(t, err)
	return hostclaim.Member{Box: ref, Enrollment: box.Enrollment}
}

// acknowledge does what both boxes of a move do first.
func (d *deployment) acknowledge(t *testing.T) {
	t.Helper()
	for _, ref := range []string{"box-1", "box-2"} {
		d.update(t, hostclaim.Acknowledge(d.claim(t).Op.ID, ref, d.member(t, ref).Enrollment))
	}
}

// carry does what workers and boxes do with a move that was acknowledged.
func (d *deployment) carry(t *testing.T, pause func()) {
	t.Helper()
	op, now := d.claim(t).Op.ID, d.Now
	if now == nil {
		now = time.Now
	}
	step := func(steps ...hostclaim.Transition) *hostclaim.Claim {
		d.update(t, hostclaim.Then(steps...))
		pause()
		return d.claim(t)
	}
	c := step(hostclaim.ToReleasing(op, now()))
	h, source := c.Holder, d.member(t, "box-1")
	receipt := stoptest.Receipt(t, stopevidence.Record{Host: c.Host, Op: op, Box: source.Box, Enrollment: source.Enrollment,
		Incarnation: h.Incarnation, Stamp: h.Stamp, Session: h.Session})
	final := hostclaim.Position{Generation: h.Generation, TXID: 7, FilesGeneration: h.Generation, FilesSeq: 3}
	step(hostclaim.JournalRelease(op, hostclaim.Release{Box: source.Box, Enrollment: source.Enrollment, Session: h.Session,
		Final: final, Receipt: receipt.Ref().Key, ReceiptSHA256: receipt.Ref().SHA256}))
	c = step(hostclaim.PinAfterRelease(op, receipt, hostclaim.Member{}, now()))
	step(hostclaim.JournalPin(op, hostclaim.Pin{Key: hostclaim.PinKey(c.Host, op, c.Gen), SHA256: "d", ListedAt: now(),
		FilesSHA256: "f", Position: final}), hostclaim.ToInstalling(op, "p1", now()))
	c = step(hostclaim.ToInstalled(op, hostclaim.PreparedAuthority{Generation: "p1", InstallManifest: h.Location + "/db/p1/install.json",
		SHA256: "m", SnapshotTXID: 7, SourceFilesSeq: 3, FilesManifestSHA256: "n"}, now()))
	target := d.member(t, "box-2")
	step(hostclaim.RecordLocalInstall(op, hostclaim.LocalInstall{Box: target.Box, Enrollment: target.Enrollment,
		InstallStamp: c.Op.Journal.InstallStamp, FilesManifest: h.Location + "/files/p1/manifest.json", SHA256: "n"}),
		hostclaim.ToProbing(op, now()), hostclaim.BeginProbeAttempt(op, 1))
	c = step(hostclaim.AdmitWriter(hostclaim.Admission{Op: op, Phase: hostclaim.Probing, Session: h.Session, Generation: h.Generation,
		Box: target.Box, NewGeneration: "p1", KeepStamp: true, Baseline: final, Coverage: hostclaim.Released}))
	session := c.Holder.Session
	step(hostclaim.PublishGeneration(target.Box, session), hostclaim.RecordProbe(op, target.Box, session))
	step(hostclaim.CompleteRelocation(op))
}

func TestADrainIsOneClaimWriteAndAHint(t *testing.T) {
	d := serving(t)
	watcher := regionfile.Watcher{Store: d.mem, Region: "ie"}
	_, _, err := watcher.Poll(t.Context())
	require.NoError(t, err)
	before := len(d.mem.Log())
	move, err := d.Drain(t.Context(), "notes.example")
	require.NoError(t, err)

	require.Equal(t, hostclaim.Key("notes.example"), d.mem.Log()[before].Key)
	require.Len(t, d.mem.Log(), before+2)
	op := d.claim(t).Op
	require.Equal(t, hostclaim.Starting, op.Phase)
	require.Equal(t, hostclaim.Intent{Region: "ie", Reason: hostclaim.Drain, Source: d.member(t, "box-1"), Target: d.member(t, "box-2"),
		StampFrom: d.claim(t).Holder.Stamp, GenerationFrom: "g1", DirectoryRevision: 3, PinDelay: 30 * time.Second}, op.Intent)
	require.Equal(t, console.Move{Host: "notes.example", Op: op.ID, Reason: hostclaim.Drain, From: "box-1", To: "box-2", StartedAt: d.clock.UTC()}, move)
	changed, _, err := watcher.Poll(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"notes.example"}, changed)
}

func TestARelocationGoesWhereItIsTold(t *testing.T) {
	d := serving(t)
	d.join(t, "box-3", "i-0003")
	for _, to := range []string{"box-3", "box-2"} {
		move, err := d.Relocate(t.Context(), "notes.example", to)
		require.NoError(t, err)
		require.Equal(t, to, move.To)
		require.Equal(t, hostclaim.Rebalance, d.claim(t).Op.Intent.Reason)
		d.update(t, hostclaim.CancelDrain(move.Op, d.clock.Add(hostclaim.DrainDeadline)))
	}
}

func TestADrainSettlesAWriteOfUnknownOutcome(t *testing.T) {
	for name, fault := range map[string]memstore.Fault{"lost": memstore.Lose, "answer lost": memstore.LoseAnswer, "replayed": memstore.Replay} {
		t.Run(name, func(t *testing.T) {
			d := serving(t)
			d.mem.Inject(memstore.Once(memstore.OpPut, "control/hosts/", fault))
			move, err := d.Drain(t.Context(), "notes.example")
			require.NoError(t, err)
			require.Equal(t, move.Op, d.claim(t).Op.ID)
		})
	}
}

func TestARefusedMoveWritesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		prepare func(*testing.T, *deployment)
		why     string
	}{
		"the only other box drains": {func(t *testing.T, d *deployment) { require.NoError(t, d.DrainBox(t.Context(), "box-2")) },
			"no box of region ie may take it: box-1 (excluded by the running operation), box-2 (draining, by the roster)"},
		"its own box is silent": {func(t *testing.T, d *deployment) {
			d.clock = d.clock.Add(time.Hour)
			d.publish(t, "box-2", placement.CapabilityRegionHA)
		}, "box-1 is silent"},
		"its own box is quarantined": {func(t *testing.T, d *deployment) {
			_, err := d.DeclareLost(t.Context(), console.Loss{Ref: "box-1", Who: "Ana", Why: "burned", Checked: []string{"ping"}, Confirm: "box-1"})
			require.NoError(t, err)
		}, "box-1 is declared lost"},
		"its box cannot prove that it stopped": {func(t *testing.T, d *deployment) {
			d.publish(t, "box-1", placement.CapabilityRegionHA)
		}, "box-1 cannot prove that a host of it has stopped"},
		"the other box still has an old copy": {func(t *testing.T, d *deployment) {
			d.edit(t, func(c *hostclaim.Claim) {
				c.Obligations = []hostclaim.Obligation{{ID: "a", Op: "op-0", Kind: hostclaim.ParkLocal, Box: "box-2", Owner: "box:box-2"}}
			})
		}, "box-2 (it still has to retire its old copy of this host)"},
		"its own box still has an old copy": {func(t *testing.T, d *deployment) {
			d.edit(t, func(c *hostclaim.Claim) {
				c.Obligations = []hostclaim.Obligation{{ID: "a", Op: "op-0", Kind: hostclaim.ParkLocal, Box: "box-1", Owner: "box:box-1"}}
			})
		}, "source box-1 still owes this host a park-local"},
		"its record is of another incarnation": {func(t *testing.T, d *deployment) {
			old, err := hostrecord.Read(t.Context(), d.mem, "demo", "notes", "notes.example")
			require.NoError(t, err)
			other := old.Record
			other.Gen, other.Write, other.Incarnation = 2, "w2", "another"
			_, err = hostrecord.Replace(t.Context(), d.mem, old, other)
			require.NoError(t, err)
		}, "its record is of incarnation another"},
		"a move runs": {func(t *testing.T, d *deployment) {
			_, err := d.Drain(t.Context(), "notes.example")
			require.NoError(t, err)
		}, "an operation runs: moving from box-1 to box-2 (starting, begun 0s ago); waiting for box-1 and box-2 to say that they are ready"},
	} {
		t.Run(name, func(t *testing.T) {
			d := serving(t)
			row.prepare(t, d)
			before := len(d.mem.Log())
			_, err := d.Drain(t.Context(), "notes.example")
			var refusal *console.Refusal
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, "notes.example was not moved", refusal.What)
			require.ErrorContains(t, refusal.Err, row.why)
			require.NotEmpty(t, refusal.Next)
			require.Len(t, d.mem.Log(), before)
		})
	}
}

// edit writes a claim as it could have become.
func (d *deployment) edit(t *testing.T, change func(*hostclaim.Claim)) {
	t.Helper()
	d.update(t, func(c *hostclaim.Claim) error {
		change(c)
		return nil
	})
}

func TestWhereAFenceCannotBeReadNobodyIsNamedEither(t *testing.T) {
	d := serving(t)
	d.join(t, "box-3", "i-0003")
	_, err := d.mem.Put(t.Context(), "control/box-fences/"+d.member(t, "box-3").Enrollment+".json", []byte("{}\n"), objstore.IfAbsent())
	require.NoError(t, err)
	_, err = d.Drain(t.Context(), "notes.example")
	require.ErrorIs(t, err, termfence.ErrUnverified)
	_, err = d.Relocate(t.Context(), "notes.example", "box-2")
	require.ErrorIs(t, err, termfence.ErrUnverified)
	require.Equal(t, hostclaim.Serving, d.claim(t).Op.Kind)
}

func TestAMoveIsWatchedPhaseByPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := serving(t)
		d.Now = nil // the bubble's clock
		move, err := d.Drain(t.Context(), "notes.example")
		require.NoError(t, err)
		var said []string
		box := ""
		done := make(chan error)
		go func() {
			var err error
			box, err = d.AwaitMove(t.Context(), move, time.Hour, func(line string) { said = append(said, line) })
			done <- err
		}()
		time.Sleep(950 * time.Millisecond)
		d.acknowledge(t)
		time.Sleep(time.Second)
		d.carry(t, func() { time.Sleep(time.Second) })
		require.NoError(t, <-done)
		require.Equal(t, "box-2", box)
		require.Equal(t, []string{
			"  0.00 s  starting: waiting for box-1 and box-2 to say that they are ready",
			"  1.00 s  starting: waiting for box-2 to fetch a copy, while box-1 serves on",
			"  2.00 s  releasing: waiting for box-1 to stop the app and give it up",
			"  3.00 s  releasing: waiting for a worker to go on",
			"  4.00 s  pinning: waiting for a worker to select the newest data",
			"  5.00 s  installing: waiting for box-2 to build a copy of the data",
			"  6.00 s  installed: waiting for box-2 to put the files in place",
			"  7.00 s  probing: waiting for the app on box-2 to answer, attempt 1 of 3",
			"  9.00 s  probing: waiting for a worker to go on",
		}, said)
	})
}

func TestAMoveThatDidNotCompleteIsAnError(t *testing.T) {
	for name, row := range map[string]struct {
		befall func(*testing.T, *deployment, console.Move)
		why    string
	}{
		"cancelled": {func(t *testing.T, d *deployment, m console.Move) {
			d.update(t, hostclaim.CancelDrain(m.Op, d.clock.Add(hostclaim.DrainDeadline)))
		}, "its move could not begin and was cancelled: box-1 serves on"},
		"stuck": {func(t *testing.T, d *deployment, m console.Move) {
			d.acknowledge(t)
			d.update(t, hostclaim.ToReleasing(m.Op, d.clock))
			d.update(t, hostclaim.MarkStuck(m.Op, hostclaim.ReleaseOverdue, d.clock.Add(hostclaim.ReleaseDeadline)))
		}, "waiting for an operator: it is stuck for 0s, release overdue; look at the agents on box-1 and box-2"},
		"followed by another": {func(t *testing.T, d *deployment, m console.Move) {
			d.update(t, hostclaim.CancelDrain(m.Op, d.clock.Add(hostclaim.DrainDeadline)))
			_, err := d.Drain(t.Context(), "notes.example")
			require.NoError(t, err)
		}, "another operation came after its move"},
		"too slow": {func(_ *testing.T, d *deployment, _ console.Move) { d.clock = d.clock.Add(2 * time.Hour) },
			"moving from box-1 to box-2 (starting, begun 2h ago); waiting for box-1 and box-2"},
	} {
		t.Run(name, func(t *testing.T) {
			d := serving(t)
			move, err := d.Drain(t.Context(), "notes.example")
			require.NoError(t, err)
			row.befall(t, d, move)
			_, err = d.AwaitMove(t.Context(), move, time.Hour, func(string) {})
			var refusal *console.Refusal
			require.ErrorAs(t, err, &refusal)
			require.ErrorContains(t, refusal.Err, row.why)
			require.NotEmpty(t, refusal.Next)
		})
	}
}

func TestWaitingForAMoveEndsWithItsContext(t *testing.T) {
	d := serving(t)
	move, err := d.Drain(t.Context(), "notes.example")
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	_, err = d.AwaitMove(ctx, move, time.Hour, func(string) {})
	require.ErrorContains(t, err, "goes on without us (interrupted)")
	require.Equal(t, hostclaim.Relocating, d.claim(t).Op.Kind)
}

func TestAReadThatFailsIsSaidAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := serving(t)
		d.Now = nil
		move, err := d.Drain(t.Context(), "notes.example")
		require.NoError(t, err)
		d.update(t, hostclaim.CancelDrain(move.Op, time.Now().Add(hostclaim.DrainDeadline)))
		d.mem.Inject(memstore.Once(memstore.OpGet, "control/hosts/", memstore.Lose))
		var said []string
		_, err = d.AwaitMove(t.Context(), move, time.Hour, func(line string) { said = append(said, line) })
		require.ErrorContains(t, err, "was cancelled")
		require.Len(t, said, 1)
		require.Contains(t, said[0], "its claim cannot be read, trying again")
	})
}
