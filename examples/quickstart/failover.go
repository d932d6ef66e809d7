package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/carlosframework/regionha/internal/simcloud"
)

const (
	// enough is how many notes are acknowledged before the box dies, and how
	// many after the host serves again.
	enough = 60

	// recoverWithin bounds the failover, beside the pin delay.
	recoverWithin = 2 * time.Minute
)

// failover kills the host's box, waits until all that served there does so on
// others, and judges what was seen.
func (r *region) failover(ctx context.Context) (outcome, neighbourhood, error) {
	from, err := r.home(ctx, hostName)
	if err != nil {
		return outcome{}, neighbourhood{}, err
	}
	peer := r.peer(from.box)
	w := newWriter(newClient(peer.address("ingress"), hostName), "note", answerWithin)
	r.say("writing to %s through %s, %s between notes", hostName, peer.ref, noteEvery)
	if err := r.fill(ctx, w); err != nil {
		return outcome{}, neighbourhood{}, err
	}
	near, err := r.neighbours(ctx, peer)
	if err != nil {
		return outcome{}, neighbourhood{}, err
	}
	look := r.watch(0, r.hosts...)
	watching, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	for _, run := range append([]func(context.Context){look.run, w.run}, near.writing()...) {
		group.Go(func() { run(watching) })
	}
	ev, err := r.lose(ctx, from, w, near, look)
	stop()
	group.Wait()
	if err != nil {
		return outcome{}, near, err
	}
	if err := near.judge(ctx, ev, look); err != nil {
		return outcome{}, near, err
	}
	if err := r.collect(ctx, &ev, from, w, look); err != nil {
		return outcome{}, near, err
	}
	out := judge(ev)
	near.add(out)
	return out, near, nil
}

// lose takes the box away under load and waits for its hosts to come back.
func (r *region) lose(ctx context.Context, from home, w *writer, near neighbourhood, look *watch) (evidence, error) {
	ev := evidence{store: storeKind(r.control)}
	if err := r.warm(ctx, w); err != nil {
		return ev, err
	}
	if err := near.warm(ctx); err != nil {
		return ev, err
	}
	if err := r.takeDown(ctx, from.box, &ev); err != nil {
		return ev, err
	}
	err := until(ctx, recoverWithin+r.opts.pinDelay, "the host serves on another box", func(context.Context) (bool, error) {
		claim, ok := look.latest(hostName)
		return ok && servesBeside(claim.Claim, from.box), nil
	})
	if err != nil {
		return ev, err
	}
	notes, _ := w.acked()
	if err := r.acknowledged(ctx, w, len(notes)+enough); err != nil {
		return ev, err
	}
	if err := near.recover(ctx, from.box, look); err != nil {
		return ev, err
	}
	if r.opts.zombie {
		err = r.wakeZombie(ctx, from.box, &ev, look)
	}
	return ev, err
}

// warm waits until there is something to lose, and uploads that must not be.
func (r *region) warm(ctx context.Context, w *writer) error {
	if err := r.acknowledged(ctx, w, 1); err != nil {
		return err
	}
	r.say("the first note is acknowledged")
	if err := r.acknowledged(ctx, w, enough); err != nil {
		return err
	}
	return until(ctx, startWithin, "uploads are old enough", func(context.Context) (bool, error) {
		_, files := w.acked()
		return len(files) > 1 && time.Since(files[1].at) > uploadWindow, nil
	})
}

// acknowledged waits until n notes are.
func (r *region) acknowledged(ctx context.Context, w *writer, n int) error {
	what := fmt.Sprintf("%d notes are acknowledged", n)
	return until(ctx, startWithin, what, func(context.Context) (bool, error) {
		notes, _ := w.acked()
		return len(notes) >= n, nil
	})
}

// takeDown kills or freezes everything on the box, then terminates its
// instance, and waits until the cloud says so.
func (r *region) takeDown(ctx context.Context, b *box, ev *evidence) error {
	if r.opts.zombie {
		if err := b.freeze(ctx); err != nil {
			return err
		}
		r.say("%s is frozen: every process of its session is stopped", b.ref)
	} else {
		if err := b.kill(); err != nil {
			return err
		}
		r.say("%s is killed: no process of its session is left", b.ref)
	}
	ev.died = time.Now()
	if err := r.cloud.Terminate(ctx, b.instance.ID); err != nil {
		return err
	}
	err := until(ctx, startWithin, b.instance.ID+" is terminated", func(ctx context.Context) (bool, error) {
		return r.isTerminated(ctx, b.instance.ID)
	})
	ev.terminated = time.Now()
	r.say("the cloud reports %s terminated", b.instance.ID)
	return err
}

func (r *region) isTerminated(ctx context.Context, id string) (bool, error) {
	all, err := r.cloud.Instances(ctx)
	for _, i := range all {
		if i.ID == id {
			return i.State == simcloud.Terminated, nil
		}
	}
	return false, err
}

// collect reads what is there now, when nobody writes any more.
func (r *region) collect(ctx context.Context, ev *evidence, from home, w *writer, look *watch) (err error) {
	ev.session, ev.source, ev.versions = from.session, from.box.ref, look.seen(w.host)
	ev.notes, ev.uploads = w.acked()
	ev.sent = w.sent
	if w.host == hostName {
		maps.Copy(ev.sent, r.sent)
		ev.earlier = r.earlier
	}
	if ev.writers, err = look.writers(w.host); err != nil {
		return err
	}
	if ev.listed, err = w.client.notes(ctx); err != nil {
		return fmt.Errorf("list the notes: %w", err)
	}
	if ev.files, err = w.client.files(ctx); err != nil {
		return fmt.Errorf("list the files: %w", err)
	}
	return nil
}
