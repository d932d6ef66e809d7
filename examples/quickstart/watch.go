package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// version is one version of the claim, when it was first seen.
type version struct {
	*hostclaim.Claim
	at time.Time
}

// watch looks at the host from outside while everything runs: at its claim, and
// at which boxes run a process of its app. It trusts no box's word.
type watch struct {
	*region
	pace time.Duration // between two looks at the claim; pollEvery if zero

	mu       sync.Mutex
	versions []version
	most     int // boxes that ran the app at one time
	lookErr  error

	counting sync.Mutex
	apart    *box // a box that is not counted: it was fenced, and woken on purpose
}

// run looks until ctx ends.
func (w *watch) run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { every(ctx, cmp.Or(w.pace, pollEvery), func() { w.readClaim(ctx) }) })
	group.Go(func() { every(ctx, pollEvery, w.countWriters) })
	group.Wait()
}

// readClaim keeps the claim where it is a new version, and says so. A read that
// fails is tried again at the next tick.
func (w *watch) readClaim(ctx context.Context) {
	o, err := hostclaim.Read(ctx, w.store, hostName)
	if err != nil || o.Claim == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last := ""
	if n := len(w.versions); n > 0 {
		if w.versions[n-1].Gen == o.Claim.Gen {
			return
		}
		last = stage(w.versions[n-1].Claim)
	}
	w.versions = append(w.versions, version{o.Claim, time.Now()})
	if now := stage(o.Claim); now != last {
		w.say("claim %d: %s", o.Claim.Gen, now)
	}
}

// stage is what a claim is in, for people.
func stage(c *hostclaim.Claim) string {
	if c.Op.Kind == hostclaim.Relocating {
		return fmt.Sprintf("%s from %s to %s: %s, exec %s", c.Op.Intent.Reason,
			c.Op.Intent.Source.Box, c.Op.Target().Box, c.Op.Phase, c.Op.Exec)
	}
	return fmt.Sprintf("%s, exec %s", c.Op.Kind, c.Op.Exec)
}

// countWriters counts the boxes on which the app runs at this moment.
func (w *watch) countWriters() {
	w.counting.Lock()
	defer w.counting.Unlock()
	running := 0
	var failed error
	for _, b := range w.boxes {
		if b == w.apart {
			continue
		}
		runs, err := b.runs(w.in("bin", "notes"))
		if err != nil && failed == nil {
			failed = fmt.Errorf("look for the app on %s: %w", b.ref, err)
		}
		if runs {
			running++
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookErr = cmp.Or(w.lookErr, failed)
	w.most = max(w.most, running)
}

// setApart stops counting b.
func (w *watch) setApart(b *box) {
	w.counting.Lock()
	defer w.counting.Unlock()
	w.apart = b
}

// seen copies the versions so far.
func (w *watch) seen() []version {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]version(nil), w.versions...)
}

// latest is the newest version, if any was seen yet.
func (w *watch) latest() (version, bool) {
	seen := w.seen()
	if len(seen) == 0 {
		return version{}, false
	}
	return seen[len(seen)-1], true
}

// writers is the most boxes that ran the app at one time.
func (w *watch) writers() (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most, w.lookErr
}
