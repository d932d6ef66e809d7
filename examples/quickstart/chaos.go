package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// killAfter is the longest from the start of a move to the kill.
const killAfter = 2 * time.Second

// killAgent kills, at a random moment of the move that is about to start, the
// agent of its source or its target, but not the one that the clients speak to:
// what is lost there is the client's connection. It returns how many it killed.
func (r *region) killAgent(ctx context.Context, but *box) int {
	select {
	case <-ctx.Done():
		return 0
	case <-time.After(rand.N(killAfter)):
	}
	o, err := hostclaim.Read(ctx, r.store, hostName)
	if err != nil || o.Claim == nil {
		return 0
	}
	op := o.Claim.Op
	var victims []*box
	for _, ref := range []string{op.Intent.Source.Box, op.Target().Box, op.Exec} {
		if b := r.box(ref); b != nil && b != but {
			victims = append(victims, b)
		}
	}
	if len(victims) == 0 {
		return 0
	}
	b := victims[rand.N(len(victims))]
	n, err := b.killProgram(r.in("bin", "agent"))
	r.say("killed the agent of %s, with the host %s", b.ref, stage(o.Claim))
	if err != nil {
		r.say("kill the agent of %s: %v", b.ref, err)
	}
	return n
}

// logPrefix begins the id of every note of a recorded log.
const logPrefix = "log-"

// Clients of the recorded history.
const (
	recorders = 3
	registers = 4
	recordGap = 80 * time.Millisecond
	readEvery = 5 // appends
)

// recorder is several clients at once that append to a few logs and read them,
// with what each saw and when. A log is the notes whose id begins with its name,
// in the order of their rows. The logs are new in every round, so that each
// stays short.
type recorder struct {
	mu    sync.Mutex
	began time.Time
	round int
	list  []event
}

// next begins a round.
func (rec *recorder) next() {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.round++
}

func (rec *recorder) add(e event) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.list = append(rec.list, e)
}

// history is what was recorded.
func (rec *recorder) history() []event {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return append([]event(nil), rec.list...)
}

// run records until ctx ends.
func (rec *recorder) run(ctx context.Context, c *client) {
	rec.began = time.Now()
	var group sync.WaitGroup
	for id := range recorders {
		group.Go(func() {
			n := 0
			every(ctx, recordGap, func() {
				n++
				rec.mu.Lock()
				log := fmt.Sprintf("%s%d-%d/", logPrefix, rec.round, rand.N(registers))
				rec.mu.Unlock()
				if n%readEvery == 0 {
					rec.read(ctx, c, id, log)
				} else {
					rec.append(ctx, c, id, log, fmt.Sprintf("%d-%d", id, n))
				}
			})
		})
	}
	group.Wait()
}

// append adds a value to a log. Whether one that failed was added is unknown.
func (rec *recorder) append(ctx context.Context, c *client, id int, log, value string) {
	ctx, cancel := context.WithTimeout(ctx, heldWithin)
	defer cancel()
	e := event{client: id, log: log, value: value, call: time.Since(rec.began)}
	e.unknown = c.add(ctx, log+value, "") != nil
	e.ret = time.Since(rec.began)
	rec.add(e)
}

// read reads a log. One that failed says nothing.
func (rec *recorder) read(ctx context.Context, c *client, id int, log string) {
	ctx, cancel := context.WithTimeout(ctx, heldWithin)
	defer cancel()
	e := event{client: id, log: log, read: true, call: time.Since(rec.began)}
	list, err := c.notes(ctx)
	if err != nil {
		return
	}
	e.ret, e.saw = time.Since(rec.began), logOf(list, log)
	rec.add(e)
}
