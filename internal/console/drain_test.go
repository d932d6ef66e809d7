package console_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

func TestADrainedBoxIsOneRosterWriteAndAHintOfItsHosts(t *testing.T) {
	d := serving(t)
	watcher := regionfile.Watcher{Store: d.mem, Region: "ie"}
	_, _, err := watcher.Poll(t.Context())
	require.NoError(t, err)
	before := len(d.mem.Log())
	require.NoError(t, d.DrainBox(t.Context(), "box-1"))
	require.Len(t, d.mem.Log(), before+2)
	changed, _, err := watcher.Poll(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"notes.example"}, changed)
	snap, err := d.Roster.Read(t.Context())
	require.NoError(t, err)
	require.True(t, snap.Boxes["box-1"].Draining)
	require.False(t, snap.Boxes["box-2"].Draining)

	before = len(d.mem.Log())
	require.NoError(t, d.DrainBox(t.Context(), "box-1"))
	require.Len(t, d.mem.Log(), before+1, "the same again is the hint alone")
	require.NoError(t, d.UndrainBox(t.Context(), "box-1"))
	require.NoError(t, d.UndrainBox(t.Context(), "box-1"))
	require.Len(t, d.mem.Log(), before+2)
}

func TestADrainingOfUnknownOutcomeIsSettled(t *testing.T) {
	for name, fault := range map[string]memstore.Fault{"lost": memstore.Lose, "answer lost": memstore.LoseAnswer, "replayed": memstore.Replay} {
		t.Run(name, func(t *testing.T) {
			d := serving(t)
			d.mem.Inject(memstore.Once(memstore.OpPut, "control/host-actors.json", fault))
			require.NoError(t, d.DrainBox(t.Context(), "box-1"))
			box, err := d.Box(t.Context(), "box-1")
			require.NoError(t, err)
			require.True(t, box.Draining)
		})
	}
}

func TestOnlyAnEnrolledActiveBoxIsDrained(t *testing.T) {
	d := serving(t)
	_, err := d.DeclareLost(t.Context(), console.Loss{Ref: "box-2", Who: "Ana", Why: "burned", Checked: []string{"ping"}, Confirm: "box-2"})
	require.NoError(t, err)
	before := len(d.mem.Log())
	for ref, why := range map[string]string{"box-2": "it is quarantined", "box-9": "it is not in the roster"} {
		for _, change := range []func(context.Context, string) error{d.DrainBox, d.UndrainBox} {
			err := change(t.Context(), ref)
			var refusal *console.Refusal
			require.ErrorAs(t, err, &refusal)
			require.ErrorContains(t, refusal.Err, why)
		}
	}
	d.Private = ed25519.NewKeyFromSeed([]byte("another seed of thirty-two bytes"))
	require.ErrorContains(t, d.DrainBox(t.Context(), "box-1"), "not the one that this deployment trusts")
	require.Len(t, d.mem.Log(), before)
}

func TestABoxIsWatchedUntilItIsEmptyHostByHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := serving(t)
		d.Now = nil
		require.NoError(t, d.DrainBox(t.Context(), "box-1"))
		var said []string
		left := 0
		done := make(chan error)
		go func() {
			var err error
			left, err = d.AwaitEmpty(t.Context(), "box-1", time.Hour, func(line string) { said = append(said, line) })
			done <- err
		}()
		time.Sleep(2500 * time.Millisecond)
		_, err := d.Drain(t.Context(), "notes.example") // as a worker would
		require.NoError(t, err)
		d.acknowledge(t)
		time.Sleep(2 * time.Second)
		d.carry(t, func() {})
		require.NoError(t, <-done)
		require.Equal(t, 1, left)
		require.Equal(t, []string{
			"   0.0 s  notes.example serving on box-1, which drains; waiting for a worker to move it",
			"   3.0 s  notes.example moves to box-2, starting: waiting for box-2 to fetch a copy, while box-1 serves on",
			"   5.0 s  notes.example left for box-2",
		}, said)
	})
}

func TestABoxThatIsToTakeANewHostIsNotEmpty(t *testing.T) {
	d := deploy(t)
	_, err := d.Create(t.Context(), wanted())
	require.NoError(t, err)
	_, err = d.AwaitEmpty(t.Context(), "box-1", -1, func(string) {})
	require.ErrorContains(t, err, "notes.example being created on box-1")
}

func TestABoxWhoseHostsCannotBeReadIsNotEmpty(t *testing.T) {
	d := deploy(t)
	left, err := d.AwaitEmpty(t.Context(), "box-1", time.Hour, func(string) {})
	require.NoError(t, err)
	require.Zero(t, left)
	_, err = d.mem.Put(t.Context(), hostclaim.Key("broken.example"), []byte("{}"), objstore.IfAbsent())
	require.NoError(t, err)
	_, err = d.AwaitEmpty(t.Context(), "box-1", -1, func(string) {})
	require.ErrorIs(t, err, hostclaim.ErrMalformed)
}

func TestWaitingForAnEmptyBoxEndsWithItsContext(t *testing.T) {
	d := serving(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	_, err := d.AwaitEmpty(ctx, "box-1", time.Hour, func(string) {})
	require.ErrorContains(t, err, "drains on without us (interrupted)")
}
