package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// version is one version of a claim, when it was first seen.
type version struct {
	*hostclaim.Claim
	at time.Time
}

// watch looks at hosts from outside while everything runs: at their claims, and
// at which boxes run a process of their apps. It trusts no box's word.
type watch struct {
	*region
	hosts []string
	pace  time.Duration // between two looks at the first host's claim; pollEvery if zero

	mu       sync.Mutex
	versions map[string][]version // by host
	most     map[string]int       // boxes that ran its app at one time
	lookErr  error

	counting sync.Mutex
	apart    *box // a box that is not counted: it was fenced, and woken on purpose
}

func (r *region) watch(pace time.Duration, hosts ...string) *watch {
	return &watch{region: r, hosts: hosts, pace: cmp.Or(pace, pollEvery), versions: map[string][]version{}, most: map[string]int{}}
}

// lookGently is how often all processes of the machine are looked through where
// there are many.
const lookGently = 500 * time.Millisecond

// run looks until ctx ends: often at the first host, at the others in turn.
func (w *watch) run(ctx context.Context) {
	counted := pollEvery
	if len(w.hosts) > 10 {
		counted = lookGently
	}
	var group sync.WaitGroup
	group.Go(func() { every(ctx, w.pace, func() { w.readClaim(ctx, w.hosts[0]) }) })
	group.Go(func() { every(ctx, counted, w.countWriters) })
	if others := w.hosts[1:]; len(others) > 0 {
		turn := 0
		group.Go(func() {
			every(ctx, closeLook, func() {
				w.readClaim(ctx, others[turn%len(others)])
				turn++
			})
		})
	}
	group.Wait()
}

// readClaim keeps a claim where it is a new version, and says so of the first
// host's. A read that fails is tried again in the next turn.
func (w *watch) readClaim(ctx context.Context, host string) {
	o, err := hostclaim.Read(ctx, w.store, host)
	if err != nil || o.Claim == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, last := w.versions[host], ""
	if n := len(seen); n > 0 {
		if seen[n-1].Gen == o.Claim.Gen {
			return
		}
		last = stage(seen[n-1].Claim)
	}
	w.versions[host] = append(seen, version{o.Claim, time.Now()})
	if now := stage(o.Claim); now != last && host == w.hosts[0] {
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

// countWriters counts, for each host, the boxes on which its app runs at this
// moment.
func (w *watch) countWriters() {
	w.counting.Lock()
	defer w.counting.Unlock()
	running, err := w.running(w.apart)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookErr = cmp.Or(w.lookErr, err)
	for host, boxes := range running {
		w.most[host] = max(w.most[host], len(boxes))
	}
}

// setApart stops counting b.
func (w *watch) setApart(b *box) {
	w.counting.Lock()
	defer w.counting.Unlock()
	w.apart = b
}

// seen copies the versions of a host's claim so far.
func (w *watch) seen(host string) []version {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]version(nil), w.versions[host]...)
}

// latest is the newest version, if any was seen yet.
func (w *watch) latest(host string) (version, bool) {
	seen := w.seen(host)
	if len(seen) == 0 {
		return version{}, false
	}
	return seen[len(seen)-1], true
}

// writers is the most boxes that ran a host's app at one time.
func (w *watch) writers(host string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most[host], w.lookErr
}

// running is the boxes, but apart, on which a process of each host's app runs
// now: a frozen one does not.
func (r *region) running(apart *box) (map[string]map[*box]bool, error) {
	sessions, err := executing(r.in("bin", "notes"))
	if err != nil {
		return nil, fmt.Errorf("look for the app: %w", err)
	}
	found := map[string]map[*box]bool{}
	for _, b := range r.boxes {
		if b == apart {
			continue
		}
		for _, m := range sessions[b.pid] {
			host := m.host()
			if m.frozen() || host == "" {
				continue
			}
			if found[host] == nil {
				found[host] = map[*box]bool{}
			}
			found[host][b] = true
		}
	}
	return found, nil
}
