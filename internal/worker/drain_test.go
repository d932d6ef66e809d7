package worker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// drained is a region whose first box is to be emptied, and has been looked at.
func drained(t *testing.T, targets ...string) (*Worker, *cloud) {
	w, seen, _ := region(t)
	for _, ref := range append([]string{"box-1"}, targets...) {
		publish(t, w, ref)
	}
	edit(t, w, "box-1", func(b *roster.Box) { b.Draining = true })
	sweep(t, w)
	return w, seen
}

// acknowledge is what a participant does first.
func acknowledge(t *testing.T, w *Worker, ref string) {
	o, err := hostclaim.Read(t.Context(), w.control, host)
	require.NoError(t, err)
	_, err = hostclaim.Update(t.Context(), w.control, o, hostclaim.Acknowledge(o.Claim.Op.ID, ref, "enr-"+ref))
	require.NoError(t, err)
}

func TestADrainingBoxIsEmptied(t *testing.T) {
	w, _ := drained(t, "box-2")
	require.True(t, w.draining.has("box-1"))
	turn, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	require.Equal(t, "moving notes.demo.example from box-1 to box-2: drain; what follows", turn.String())
	c := claim(t, w)
	require.Equal(t, hostclaim.Drain, c.Op.Intent.Reason)
	require.Equal(t, "box-1", c.Op.Exec, "it serves on meanwhile")
	require.Equal(t, "box-2", c.Op.Target().Box)
}

func TestABoxThatDrainsNoMoreKeepsItsHosts(t *testing.T) {
	w, _ := drained(t, "box-2")
	edit(t, w, "box-1", func(b *roster.Box) { b.Draining = false })
	sweep(t, w)
	turn, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	require.True(t, turn.Done())
}

// TestAnOlderRosterUndoesNoDrain: a sweep may have read it before a hint came.
func TestAnOlderRosterUndoesNoDrain(t *testing.T) {
	w, _ := drained(t, "box-2")
	snap, err := w.roster.Read(t.Context())
	require.NoError(t, err)
	snap.Revision--
	snap.Boxes = map[string]roster.Box{}
	w.empty(snap)
	require.True(t, w.draining.has("box-1"))
}

func TestAHostThatCannotBeDrainedIsUnplacedAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := drained(t)
		turn, err := w.stepHost(t.Context(), host)
		require.NoError(t, err)
		require.Equal(t, "unplaced notes.demo.example: its box is draining and no box may be given it", turn.String())
		require.Greater(t, turn.Again, untilSwept)
		require.Equal(t, hostclaim.Serving, claim(t, w).Op.Kind)
		w.tellWaiting()
		require.True(t, w.alerts.Raised(alert.Unplaced, "ie"))

		publish(t, w, "box-2")
		sweep(t, w)
		w.requeue()
		require.Equal(t, host, taken(t, w.queue).host)
		turn, err = w.stepHost(t.Context(), host)
		require.NoError(t, err)
		require.NotEmpty(t, turn.Did)
		w.tellWaiting()
		require.False(t, w.alerts.Raised(alert.Unplaced, "ie"))
	})
}

// A drain that its source could not end would only wait to be cancelled.
func TestNoDrainBeginsOffABoxThatCannotProveAStop(t *testing.T) {
	w, _ := drained(t, "box-2")
	old, err := placement.Read(t.Context(), w.control, "box-1")
	require.NoError(t, err)
	next := old.Edges
	next.Capabilities = []string{placement.CapabilityRegionHA}
	_, err = placement.Publish(t.Context(), w.control, old, next)
	require.NoError(t, err)
	sweep(t, w)
	turn, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	require.Equal(t, "unplaced notes.demo.example: its box is draining and refused: box-1 does not say that it can prove a stop", turn.String())
	require.Equal(t, hostclaim.Serving, claim(t, w).Op.Kind)
}

// TestADrainingBoxsHostsAreFoundInItsEdgesFile: this worker never saw a claim.
func TestADrainingBoxsHostsAreFoundInItsEdgesFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := region(t)
		_, err := placement.Publish(t.Context(), w.control, placement.Published{}, placement.Edges{Box: "box-1", Region: "ie",
			Address: "127.0.0.1:1", Internal: "127.0.0.1:2", Protocol: roster.Protocol, Capabilities: []string{placement.CapabilityRegionHA},
			SecretsKeyFP: secretFP, At: time.Now().UTC(),
			Hosts: map[string]placement.Host{host: {Role: placement.RoleHome}}})
		require.NoError(t, err)
		edit(t, w, "box-1", func(b *roster.Box) { b.Draining = true })
		sweep(t, w)
		go func() { _ = w.readNews(t.Context()) }()
		require.Equal(t, host, taken(t, w.queue).host)
	})
}

func TestABoxThatIsGoneIsFailedOverThoughItDrains(t *testing.T) {
	w, seen := drained(t, "box-2")
	seen.say("i-box-1", state("terminated"))
	sweep(t, w)
	_, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	require.Equal(t, hostclaim.Failover, claim(t, w).Op.Intent.Reason)
}

func TestATargetThatIsGoneIsReplaced(t *testing.T) {
	w, seen := drained(t, "box-2")
	_, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	publish(t, w, "box-3")
	seen.say("i-box-2", state("terminated"))
	sweep(t, w)
	turn, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	require.Equal(t, "replacing target box-2 of notes.demo.example by box-3; what follows", turn.String())
	c := claim(t, w)
	require.Equal(t, "box-3", c.Op.Target().Box)
	require.True(t, c.IsLost("box-2"))
	require.Equal(t, "box-1", c.Op.Exec)
}

func TestASourceThatIsGoneMakesTheDrainAFailover(t *testing.T) {
	w, seen := drained(t, "box-2")
	_, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	acknowledge(t, w, "box-2")
	seen.say("i-box-1", state("terminated"))
	sweep(t, w)
	for range 2 {
		_, err = w.stepHost(t.Context(), host)
		require.NoError(t, err)
	}
	c := claim(t, w)
	require.Equal(t, hostclaim.Failover, c.Op.Reason())
	require.Equal(t, hostclaim.Pinning, c.Op.Phase)
}

// TestAHintWakesTheDriverOfItsHost: it does not wait for its next poll.
func TestAHintWakesTheDriverOfItsHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := drained(t, "box-2")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var reads int
		w.control.(*memstore.Store).Inject(func(r memstore.Request) memstore.Fault {
			if r.Op == memstore.OpGet && r.Key == hostclaim.Key(host) {
				reads++
			}
			return memstore.None
		})
		var loops sync.WaitGroup
		loops.Go(func() { _ = w.drive(ctx) })
		w.queue.add(host, rank{})
		synctest.Wait() // it waits for the participants
		before := reads
		w.Hint(hint.Hint{Host: host, Gen: 9})
		synctest.Wait()
		require.Equal(t, before+1, reads)
		synctest.Wait()
		require.Equal(t, before+1, reads, "once")
		cancel()
		loops.Wait()
	})
}
