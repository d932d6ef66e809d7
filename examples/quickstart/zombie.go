package main

import (
	"context"
	"sync"
	"time"
)

// stopWithin is how long a woken box may take to stop its app by itself.
const stopWithin = 30 * time.Second

// zombie is what a box did that was woken after the host had moved on.
type zombie struct {
	stoppedAfter time.Duration     // from waking until its app ran no more
	notes        []ack             // what was acknowledged through its own ingress
	sent         map[string]string // all that was tried
}

// wakeZombie lets the frozen box go on, with a write already waiting at its
// ingress, and writes to it until its app has stopped by itself.
func (r *region) wakeZombie(ctx context.Context, b *box, ev *evidence, look *watch) error {
	late := newWriter(newClient(b.address("ingress"), hostName), "late", answerWithin)
	look.setApart(b)
	writing, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { late.run(writing) })
	err := r.wakeAndWait(ctx, b, late, ev)
	stop()
	group.Wait()
	if ev.zombie != nil {
		ev.zombie.sent = late.sent
		ev.zombie.notes, _ = late.acked()
	}
	return err
}

func (r *region) wakeAndWait(ctx context.Context, b *box, late *writer, ev *evidence) error {
	err := until(ctx, startWithin, "a write waits at "+b.ref, func(context.Context) (bool, error) {
		return late.tried() > 0, nil
	})
	if err != nil {
		return err
	}
	if err := b.wake(); err != nil {
		return err
	}
	woken := time.Now()
	r.say("%s is awake again, and is written to directly", b.ref)
	err = until(ctx, stopWithin, b.ref+" stops its app by itself", func(context.Context) (bool, error) {
		left, err := b.has(r.in("bin", "notes"))
		return !left, err
	})
	if err != nil {
		return err
	}
	ev.zombie = &zombie{stoppedAfter: time.Since(woken)}
	r.say("%s stopped its app by itself", b.ref)
	return nil
}
