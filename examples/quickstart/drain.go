package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/placement"
)

const (
	// settle is how many notes are acknowledged before and after each move.
	settle = 20

	// movedWithin bounds one move, and what it leaves to be put away.
	movedWithin = 2 * time.Minute

	// closeLook is the pace at which the claim is read while the host is moved:
	// a phase may be over in milliseconds.
	closeLook = 10 * time.Millisecond
)

// drain moves the host off its box on purpose, as often as was asked, while it
// is written to, and judges what was seen.
func (r *region) drain(ctx context.Context) (moves, error) {
	from, err := r.home(ctx, hostName)
	if err != nil {
		return moves{}, err
	}
	if why, err := r.cannotDrain(ctx, from.box); why != "" || err != nil {
		return moves{skipped: why}, err
	}
	via := r.peer(from.box)
	w := newWriter(newClient(via.address("ingress"), hostName), "moved", heldWithin)
	r.say("writing to %s through %s, %s between notes; drains to come: %d", hostName, via.ref, noteEvery, r.opts.drains)
	if err := r.fill(ctx, w); err != nil {
		return moves{}, err
	}
	look := r.watch(closeLook, hostName)
	var rec recorder
	running, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { look.run(running) })
	group.Go(func() { w.run(running) })
	if r.opts.chaos {
		group.Go(func() { rec.run(running, w.client) })
	}
	kills, err := r.moveAbout(ctx, via, w, &rec)
	stop()
	group.Wait()
	if err != nil {
		return moves{}, err
	}
	ev := evidence{store: storeKind(r.control)}
	if err := r.collect(ctx, &ev, from, w, look); err != nil {
		return moves{}, err
	}
	r.earlier, r.sent = ev.notes, ev.sent
	m := judgeMoves(ev, w.failed, r.opts.chaos)
	m.kills = kills
	if r.opts.chaos {
		m.judgeHistory(rec.history())
	}
	m.peak, err = r.peakMemory()
	return m, err
}

// fill grows the database where that was asked for, once.
func (r *region) fill(ctx context.Context, w *writer) error {
	if r.opts.dbSize == 0 || r.filled {
		return nil
	}
	if err := w.fill(ctx, int64(r.opts.dbSize)); err != nil {
		return err
	}
	r.filled = true
	r.say("the database holds %s", r.opts.dbSize.String())
	return nil
}

// cannotDrain says why no host is moved off b while b lives, or "".
func (r *region) cannotDrain(ctx context.Context, b *box) (string, error) {
	if r.opts.drains == 0 {
		return "none was asked for", nil
	}
	file, err := placement.Read(ctx, r.store, b.ref)
	if err != nil || slices.Contains(file.Edges.Capabilities, placement.CapabilityRelease) {
		return "", err
	}
	return fmt.Sprintf("%s cannot prove that a host of it has stopped: that takes root and cgroup v2", b.ref), nil
}

// moveAbout moves the host, again and again, and returns how often an agent was
// killed meanwhile.
func (r *region) moveAbout(ctx context.Context, via *box, w *writer, rec *recorder) (kills int, err error) {
	if err := r.more(ctx, w, enough); err != nil {
		return 0, err
	}
	for n := range r.opts.drains {
		if err := r.putAway(ctx); err != nil {
			return kills, err
		}
		rec.next()
		killed, err := r.moveOnce(ctx, n, via)
		kills += killed
		if err != nil {
			return kills, err
		}
		if err := r.more(ctx, w, settle); err != nil {
			return kills, err
		}
	}
	return kills, nil
}

// moveOnce runs console host drain to its end. Where an agent was killed the
// move may have been given up: then the host has to be served all the same.
func (r *region) moveOnce(ctx context.Context, n int, via *box) (killed int, err error) {
	var group sync.WaitGroup
	if r.opts.chaos && n%2 == 1 {
		group.Go(func() { killed = r.killAgent(ctx, via) })
	}
	r.say("console host drain %s --wait", hostName)
	err = r.console(ctx, "host", "drain", hostName, "--wait", "--timeout", movedWithin.String())
	group.Wait()
	if err == nil {
		r.say("%s", r.consoleSaid())
		return killed, nil
	}
	if killed == 0 || ctx.Err() != nil {
		return killed, err
	}
	r.say("the move did not end well, with an agent killed: %v", err)
	return killed, until(ctx, movedWithin, "the host serves", func(ctx context.Context) (bool, error) {
		_, err := r.home(ctx, hostName)
		return err == nil || !errors.Is(err, errNotServed), ignore(err, errNotServed)
	})
}

// putAway waits until the boxes that the host left have put away what they hold
// of it, so that it may be moved to them again.
func (r *region) putAway(ctx context.Context) error {
	return until(ctx, movedWithin, "the old homes put their copies away", func(ctx context.Context) (bool, error) {
		o, err := hostclaim.Read(ctx, r.store, hostName)
		if err != nil || o.Claim == nil {
			return false, err
		}
		return !slices.ContainsFunc(o.Claim.Obligations, func(o hostclaim.Obligation) bool { return o.Kind == hostclaim.ParkLocal }), nil
	})
}

// more waits until n more notes are acknowledged.
func (r *region) more(ctx context.Context, w *writer, n int) error {
	notes, _ := w.acked()
	return r.acknowledged(ctx, w, len(notes)+n)
}

// ignore is err, unless it is what.
func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// peakMemory is the most that any agent held in memory, in bytes.
func (r *region) peakMemory() (peak int64, err error) {
	for _, b := range r.boxes {
		n, err := b.peakMemory(r.in("bin", "agent"))
		if err != nil {
			return 0, err
		}
		peak = max(peak, n)
	}
	return peak, nil
}
