package region_test

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/announce"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// The pace of an agent.
const (
	pollEvery    = 2 * time.Second
	sweepEvery   = 9 * time.Minute
	refreshEvery = 30 * time.Second
	refreshPer   = 1500 * time.Millisecond // for each file that changed
	refreshMost  = 5 * time.Minute
	publishEvery = 5 * time.Minute
	standEvery   = 10 * time.Second
)

// box is a box of the region: the loops of an agent, and its hosts.
type box struct {
	region        *region
	ref           string
	self          hostclaim.Member
	control, data *client
	leases        hostrelocate.Leases
	claims        placement.Claims
	hints         *hint.Sender
	installing    chan struct{}
	dirty         chan struct{}

	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu       sync.Mutex
	hosts    map[string]*host
	draining bool
	rng      *rand.Rand
	seen     map[string]string // ETags of the edges files
}

func (r *region) newBox(ref string, n uint64) *box {
	b := &box{region: r, ref: ref, self: hostclaim.Member{Box: ref, Enrollment: "enr-" + ref}, installing: make(chan struct{}, installsAtOnce),
		dirty: make(chan struct{}, 1), hosts: map[string]*host{}, rng: r.rand(n), seen: map[string]string{}}
	b.control, b.data = r.client(ref, r.control, n, r.ledger), r.client(ref, r.data, n, nil)
	b.claims.Box = ref
	b.hints = hint.NewSender(hint.Sender{Log: quiet, Deliver: r.deliver, Peers: func(refs []string) []string { return r.peers(ref, refs) }})
	return b
}

// start runs the box until it dies. Its loops are as far into their rounds as
// chance has it.
func (b *box) start(ctx context.Context) {
	b.life, b.end = context.WithCancel(ctx)
	for host := range b.hosts {
		h := b.hosts[host]
		b.work.Go(func() { h.loop(b.life) })
	}
	for every, loop := range map[time.Duration]func(context.Context){
		pollEvery: b.watch, refreshEvery: b.refresh, publishEvery: b.announce, standEvery: b.stand, 0: func(ctx context.Context) { _ = b.hints.Run(ctx) },
	} {
		late := b.within(every)
		b.work.Go(func() {
			if sleep(b.life, late) {
				loop(b.life)
			}
		})
	}
}

// die ends the box at once: nothing that it sends arrives any more.
func (b *box) die() {
	b.control.die()
	b.data.die()
	b.end()
}

func (b *box) within(d time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Duration(b.rng.Int64N(int64(d) + 1))
}

// restoring is the time that the bytes of a database take.
func (b *box) restoring(ctx context.Context) {
	sleep(ctx, restoreLeast+b.within(restoreMost-restoreLeast))
}

func (b *box) install(ctx context.Context) bool {
	select {
	case b.installing <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *box) installed() { <-b.installing }

// watch is the agent's: the region's file, and a slow listing of all claims.
func (b *box) watch(ctx context.Context) {
	w := regionfile.Watcher{Store: b.control, Region: place, For: b.ref}
	listed := time.Now().Add(-b.within(sweepEvery))
	known := time.Now()
	for first := true; ; first = false {
		changed, hole, err := w.Poll(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
		case hole && !first || time.Since(listed) > sweepEvery:
			listed = time.Now()
			b.sweep(ctx, known)
			known = listed
		}
		if !first {
			each(changed, func(name string) { b.look(ctx, name) })
		}
		if !sleep(ctx, pollEvery) {
			return
		}
	}
}

// sweep reads every claim that changed since the last listing began, but for
// those of hosts that another box publishes. An agent knows claims by their
// ETags; here their times do, so that 200 boxes need not remember 20,000 each.
func (b *box) sweep(ctx context.Context, since time.Time) {
	began, etags := time.Now(), map[string]string{}
	for info, err := range b.control.List(ctx, claimPrefix) {
		if err != nil {
			return
		}
		name := info.Key[len(claimPrefix) : len(info.Key)-len(".json")]
		_, mine := b.host(name)
		if mine {
			etags[name] = info.ETag
		}
		if info.ModTime.After(since) && (mine || b.region.home(name) == "") {
			b.concern(ctx, name)
		}
	}
	b.claims.Listed(etags, began)
}

func (b *box) host(name string) (*host, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h, ok := b.hosts[name]
	return h, ok
}

// look makes a host's claim be read now.
func (b *box) look(ctx context.Context, name string) {
	if h, ok := b.host(name); ok {
		h.poke()
		return
	}
	b.concern(ctx, name)
}

// concern reads a claim, and gives a host that it names this box for to a
// supervisor.
func (b *box) concern(ctx context.Context, name string) {
	o, err := b.control.Get(ctx, hostclaim.Key(name))
	if err != nil || !bytes.Contains(o.Body, []byte(`"`+b.ref+`"`)) {
		return
	}
	c, err := hostclaim.Decode(o.Body)
	if err != nil {
		return
	}
	if h, ok := b.host(name); ok {
		if h.seen.Load() < c.Gen {
			h.poke()
		}
		return
	}
	if !names(c, b.ref) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hosts[name] != nil || b.life.Err() != nil {
		return
	}
	h := newHost(b, name)
	b.hosts[name] = h
	b.work.Go(func() { h.loop(b.life) })
}

// names reports whether a claim concerns the box.
func names(c *hostclaim.Claim, ref string) bool {
	_, owes := chore(c, ref)
	return owes || c.Op.Exec == ref || hostrelocate.Takes(c, ref)
}

// hint is what a peer tells this box.
func (b *box) hint(h hint.Hint) {
	if h.Gen == 0 {
		return // of a new home, for who holds requests: nobody does here
	}
	if known, ok := b.host(h.Host); ok && known.seen.Load() >= h.Gen {
		return
	}
	b.work.Go(func() { b.look(b.life, h.Host) })
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// refresh reads the edges files that changed, as the agent's home map does, and
// paces itself so. It keeps their ETags only.
func (b *box) refresh(ctx context.Context) {
	for ctx.Err() == nil {
		cost := time.Duration(b.readEdges(ctx))
		sleep(ctx, min(max(refreshEvery, cost*refreshPer), refreshMost))
	}
}

func (b *box) readEdges(ctx context.Context) (cost int) {
	var changed []string
	for info, err := range b.control.List(ctx, placement.Prefix) {
		if err != nil {
			return 0
		}
		if b.seen[info.Key] != info.ETag {
			changed = append(changed, info.Key)
		}
		b.seen[info.Key] = info.ETag
	}
	each(changed, func(key string) { _, _ = b.control.Get(ctx, key) })
	return len(changed)
}

// each calls do for each of list, up to 16 at a time.
func each(list []string, do func(string)) {
	var all errgroup.Group
	all.SetLimit(16)
	for _, item := range list {
		all.Go(func() error { do(item); return nil })
	}
	_ = all.Wait()
}

// stand reads the roster.
func (b *box) stand(ctx context.Context) {
	for sleep(ctx, standEvery) {
		snap, err := b.region.rosterOf(b.control).Read(ctx)
		if err != nil {
			continue
		}
		b.mu.Lock()
		was := b.draining
		b.draining = snap.Boxes[b.ref].Draining
		b.mu.Unlock()
		if was != snap.Boxes[b.ref].Draining {
			signal(b.dirty)
		}
	}
}

// announce publishes the box's edges file by the real publisher.
func (b *box) announce(ctx context.Context) {
	a := announce.Announcer{Store: b.control, Changed: b.dirty, Every: publishEvery, Log: quiet, Edges: b.edges, Claims: &b.claims,
		Read: b.readClaim, Moved: b.tellMoved, Clock: func(time.Duration) {}}
	_ = a.Run(ctx)
}

func (b *box) readClaim(ctx context.Context, name string) (placement.Claim, error) {
	o, err := hostclaim.Read(ctx, b.control, name)
	if err != nil {
		return placement.Claim{}, err
	}
	return behind(o), nil
}

// behind is what an edges file needs of a claim.
func behind(o hostclaim.Observed) placement.Claim {
	if o.Claim == nil || o.Claim.Holder == nil {
		return placement.Claim{}
	}
	return placement.Claim{Stamp: o.Claim.Holder.Stamp, Exec: o.Claim.Op.Exec, Gen: o.Claim.Gen, ETag: o.ETag}
}

// tellMoved tells everybody that hosts have a new home here.
func (b *box) tellMoved(hosts []string) {
	b.hints.Send(hint.Outgoing{Hint: hint.Hint{Host: hosts[0]}})
}

// edges is what the box says of itself.
func (b *box) edges() placement.Edges {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := placement.Edges{Box: b.ref, Region: place, Address: address(b.ref, "80"), Internal: address(b.ref, "82"), Protocol: roster.Protocol,
		Capabilities: []string{placement.CapabilityRegionHA, placement.CapabilityRelease}, Accepting: !b.draining, Draining: b.draining,
		SecretsKeyFP: secretFP, At: time.Now().UTC(), Hosts: map[string]placement.Host{}}
	for name, h := range b.hosts {
		if h.ready.Load() {
			e.Hosts[name] = placement.Host{Role: placement.RoleHome, App: h.app}
		}
	}
	b.claims.Keep(e.Hosts)
	b.region.publish(b.ref, e.Hosts)
	return e
}

func (b *box) drop(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.hosts, name)
}

// all lists the boxes by reference.
func (r *region) all() []*box {
	return slices.SortedFunc(maps.Values(r.boxes), func(a, b *box) int { return bytes.Compare([]byte(a.ref), []byte(b.ref)) })
}

var quiet = slog.New(slog.DiscardHandler)
