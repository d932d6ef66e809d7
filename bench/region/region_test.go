package region_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

var (
	boxes    = flag.Int("boxes", 8, "boxes in the region")
	hosts    = flag.Int("hosts", 200, "hosts in the region")
	seed     = flag.Uint64("seed", 1, "of what chance decides")
	pinDelay = flag.Duration("pin-delay", 30*time.Second, "of the worker")
	parallel = flag.Int("parallel", 16, "of the worker")
	rest     = flag.Duration("rest", 20*time.Minute, "how long the region is watched at rest")
	verbose  = flag.Bool("worker-log", false, "print what the worker says")
)

func workerLog() *slog.Logger {
	if !*verbose {
		return quiet
	}
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// even spreads hosts over boxes.
func even(boxes, hosts int) layout {
	at := make(layout, boxes)
	for i := range at {
		at[i] = hosts*(i+1)/boxes - hosts*i/boxes
	}
	return at
}

// crowded gives the first box a tenth of all hosts, and spreads the others.
func crowded(boxes, hosts int) layout {
	return append(layout{hosts / 10}, even(boxes-1, hosts-hosts/10)...)
}

// unevenAtMost bounds how many more hosts one box has than another after a
// failover.
const unevenAtMost = 5

// perHost is the most requests that a failover may cost for each host: 77 to 81
// in a small region, 101 to 120 in one of 200 boxes, whose files are read.
func perHost() float64 { return 95 + float64(*boxes)/5 }

func TestABoxDies(t *testing.T) {
	var few, all result
	run(t, crowded(*boxes, *hosts/4), func(r *region) { few = r.failover(1) })
	run(t, crowded(*boxes, *hosts), func(r *region) {
		r.atRest(*rest).print()
		all = r.failover(1)
		all.print()
	})
	fmt.Printf("requests a host: %.1f where %d hosts failed over, %.1f where %d did\n", few.perHost(), few.moved, all.perHost(), all.moved)
	require.Less(t, all.perHost(), 1.1*few.perHost(), "they grow with the hosts")
	require.Less(t, all.perHost(), perHost())
}

func TestATenthOfTheBoxesDies(t *testing.T) {
	run(t, even(*boxes, *hosts), func(r *region) {
		all := r.failover(max(2, *boxes/10))
		all.print()
		require.Less(t, all.perHost(), perHost())
	})
}

func TestEveryBoxIsDrainedInTurn(t *testing.T) {
	run(t, even(*boxes, *hosts), func(r *region) { r.rollingDrain(max(1, *boxes/20)).print() })
}

// run lets fn use a fresh region, in a bubble whose time passes as fast as its
// goroutines let it.
func run(t *testing.T, at layout, fn func(r *region)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, *seed, at)
		time.Sleep(settle)
		fn(r)
		r.close()
		require.Empty(t, r.ledger.broken)
	})
}

// settle is how long everything takes to know of what happened: each loop of a
// box and of the worker has come round once.
const settle = 11 * time.Minute

// failover kills the first boxes at once, and waits until their hosts serve
// again and everybody knows.
func (r *region) failover(dead int) result {
	before := r.begin()
	var refs []string
	for i := range dead {
		refs = append(refs, boxName(i))
	}
	moves := r.on(refs...)
	died := time.Now()
	r.kill(refs...)
	took := r.await(func() bool { return r.unsettled() == 0 && len(r.on(refs...)) == 0 })
	out := r.finish(fmt.Sprintf("%d of %d boxes die, with %d of %d hosts", dead, len(r.boxes), len(moves), len(r.ledger.hosts)), before, len(moves))
	out.took, out.dead = took, refs
	now, fenced := r.ledger.copyOf(), r.ledger.fences()
	for name, was := range moves {
		h := now[name]
		require.Equal(r.tb, was.moves+1, h.moves, "%s moved", name)
		require.Equal(r.tb, was.lost+1, h.lost, "%s declared what it lost", name)
		require.Greater(r.tb, h.stamp, was.stamp, name)
		out.fromDeath = append(out.fromDeath, h.served.Sub(died))
		out.fromFence = append(out.fromFence, h.served.Sub(fenced["enr-"+was.exec]))
	}
	r.checkHomes()
	require.LessOrEqual(r.tb, slices.Max(out.after)-slices.Min(out.after), unevenAtMost, "hosts of a box: %v", out.after)
	return out
}

// rollingDrain empties k boxes at a time, until each was, and lets them take
// hosts again.
func (r *region) rollingDrain(k int) result {
	before := r.begin()
	was := r.ledger.copyOf()
	all, took, moved := r.all(), time.Duration(0), 0
	for i := 0; i < len(all); i += k {
		var refs []string
		for _, b := range all[i:min(i+k, len(all))] {
			refs = append(refs, b.ref)
		}
		moved += len(r.on(refs...))
		r.setDraining(true, refs...)
		took += r.await(func() bool { return r.unsettled() == 0 && len(r.on(refs...)) == 0 })
		r.setDraining(false, refs...)
		time.Sleep(standEvery + refreshEvery)
	}
	out := r.finish(fmt.Sprintf("every box is drained, %d at a time: %d moves of %d hosts", k, moved, len(was)), before, moved)
	out.took = took
	for name, h := range r.ledger.copyOf() {
		require.Equal(r.tb, was[name].lost, h.lost, "%s lost nothing", name)
		require.Greater(r.tb, h.stamp, was[name].stamp, name)
		out.each = append(out.each, h.served.Sub(h.began))
	}
	r.checkHomes()
	return out
}

// setDraining does what the console does.
func (r *region) setDraining(to bool, refs ...string) {
	_, err := roster.Update(r.tb.Context(), r.control, private, r.rosterOf(r.control), func(all *roster.Roster) error {
		for _, ref := range refs {
			b := all.Boxes[ref]
			b.Draining = to
			all.Boxes[ref] = b
		}
		return nil
	})
	require.NoError(r.tb, err)
	for _, ref := range refs {
		r.worker.Hint(hint.Hint{Box: ref})
	}
}

// await waits until done, and says how long that took.
func (r *region) await(done func() bool) time.Duration {
	began := time.Now()
	for !done() {
		if time.Since(began) > 24*time.Hour {
			r.tb.Fatalf("%d hosts move still after a day", r.unsettled())
		}
		time.Sleep(time.Second)
	}
	return time.Since(began)
}

// on is the hosts of the boxes named, as their claims say.
func (r *region) on(refs ...string) map[string]life {
	these := map[string]bool{}
	for _, ref := range refs {
		these[ref] = true
	}
	on := map[string]life{}
	for name, h := range r.ledger.copyOf() {
		if these[h.exec] {
			on[name] = h
		}
	}
	return on
}

// unsettled is how many hosts move.
func (r *region) unsettled() int {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	return r.ledger.moving
}

// checkHomes requires that each host is served by exactly one live box, which is
// the one that its claim names and the one that the edges files name.
func (r *region) checkHomes() {
	served := map[string][]string{}
	for _, b := range r.all() {
		if b.control.isDead() {
			continue
		}
		for name := range b.edges().Hosts {
			served[name] = append(served[name], b.ref)
		}
	}
	reader := placement.Reader{Store: r.control}
	snap, err := reader.Read(context.Background())
	require.NoError(r.tb, err)
	require.Empty(r.tb, snap.Problems)
	homes := placement.Fold(snap.Files, nil, time.Now())
	for name, h := range r.ledger.copyOf() {
		require.Equal(r.tb, []string{h.exec}, served[name], name)
		home, status := homes.Lookup(name, time.Now())
		require.Equal(r.tb, placement.Known, status, name)
		require.Equal(r.tb, h.exec, home.Box, name)
		require.Equal(r.tb, h.stamp, home.Stamp, name)
	}
}
