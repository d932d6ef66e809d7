package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

// crew is the boxes of a region as far as a worker meets them: each makes its
// steps by the real participant, with databases that are empty, and publishes
// what it serves.
type crew struct {
	t       *testing.T
	control *memstore.Store // as the workers use it
	own     *memstore.Store // where it is kept; what boxes ask is not counted
	dir     string

	mu      sync.Mutex
	boxes   map[string]*fakeBox
	workers []*Worker
}

// fakeBox is one box.
type fakeBox struct {
	*crew
	self  hostclaim.Member
	wake  chan string
	alive context.Context
	die   context.CancelFunc

	hosts  map[string]bool // which it is to look at
	served map[string]bool
	built  map[string]string
	file   placement.Published
}

func newCrew(t *testing.T, s *memstore.Store) *crew {
	return &crew{t: t, control: s, own: s, dir: t.TempDir(), boxes: map[string]*fakeBox{}}
}

// start runs boxes until the test or they end.
func (f *crew) start(ctx context.Context, loops *sync.WaitGroup, refs ...string) {
	for _, ref := range refs {
		b := &fakeBox{crew: f, self: hostclaim.Member{Box: ref, Enrollment: "enr-" + ref}, wake: make(chan string, 10_000),
			hosts: map[string]bool{}, served: f.servedBy(ref), built: map[string]string{}}
		b.alive, b.die = context.WithCancel(ctx)
		f.mu.Lock()
		f.boxes[ref] = b
		f.mu.Unlock()
		b.publish()
		loops.Go(b.loop)
	}
}

// send brings a worker's hints to the boxes.
func (f *crew) send(o hint.Outgoing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ref := range o.To {
		if b := f.boxes[ref]; b != nil {
			select {
			case b.wake <- o.Host:
			default:
			}
		}
	}
}

// tell has the boxes bring their hints to a worker.
func (f *crew) tell(w *Worker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.workers = append(f.workers, w)
}

// changed tells the workers of a claim that a box wrote.
func (f *crew) changed(_ context.Context, c *hostclaim.Claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.workers {
		w.Hint(hint.Hint{Host: c.Host, Gen: c.Gen})
	}
}

// loop steps every host that the box is told of, or has.
func (b *fakeBox) loop() {
	for {
		select {
		case <-b.alive.Done():
			return
		case host := <-b.wake:
			b.hosts[host] = true
		case <-time.After(time.Second):
		}
		changed := false
		for host := range b.hosts {
			changed = b.step(host) || changed
		}
		if changed {
			b.publish()
		}
	}
}

// step makes what a host waits for here; true where it is served now.
func (b *fakeBox) step(host string) (served bool) {
	p := &hostrelocate.Participant{Control: b.control, Self: b.self, Runtime: b, Changed: b.changed}
	for b.alive.Err() == nil {
		o, err := hostclaim.Read(b.alive, b.control, host)
		if err != nil {
			return served
		}
		turn, err := p.Step(b.alive, o)
		if err != nil && b.alive.Err() == nil {
			b.t.Logf("%s: %s: %v", b.self.Box, host, err)
		}
		if turn.Did == "" {
			serves := o.Claim.Op.Kind == hostclaim.Serving && o.Claim.Op.Exec == b.self.Box
			if o.Claim.Op.Kind != hostclaim.Relocating {
				delete(b.hosts, host)
			}
			if delete(b.served, host); serves {
				b.served[host] = true
			}
			return served || serves
		}
		served = true
	}
	return served
}

// servedBy is what claims say that a box serves.
func (f *crew) servedBy(ref string) map[string]bool {
	served := map[string]bool{}
	for info, err := range f.own.List(f.t.Context(), "control/hosts/") {
		require.NoError(f.t, err)
		host := info.Key[len("control/hosts/") : len(info.Key)-len(".json")]
		o, err := hostclaim.Read(f.t.Context(), f.own, host)
		require.NoError(f.t, err)
		if o.Claim.Op.Kind == hostclaim.Serving && o.Claim.Op.Exec == ref {
			served[host] = true
		}
	}
	return served
}

// publish says what it serves.
func (b *fakeBox) publish() {
	e := placement.Edges{Box: b.self.Box, Region: "ie", Address: "127.0.0.1:1", Internal: b.self.Box + ":2", Protocol: roster.Protocol,
		Capabilities: []string{placement.CapabilityRegionHA, placement.CapabilityRelease}, Accepting: true, SecretsKeyFP: secretFP,
		At: time.Now().UTC(), Hosts: map[string]placement.Host{}}
	for host := range b.served {
		e.Hosts[host] = placement.Host{Role: placement.RoleHome, App: "demo/notes"}
	}
	if file, err := placement.Publish(b.alive, b.own, b.file, e); err == nil {
		b.file = file
	}
}

// The effects of a box, on databases that nobody ever wrote.

func (b *fakeBox) Enter(context.Context, hostclaim.Observed) error         { return nil }
func (b *fakeBox) Leave(context.Context, string, string) error             { return nil }
func (b *fakeBox) VerifyInstall(context.Context, hostclaim.Observed) error { return nil }
func (b *fakeBox) Start(context.Context, hostclaim.Observed) error         { return nil }
func (b *fakeBox) Probe(context.Context, hostclaim.Observed) error         { return nil }
func (b *fakeBox) Stop(context.Context, string) error                      { return nil }

func (b *fakeBox) Warm(context.Context, hostclaim.Observed) (hostrelocate.Warmth, error) {
	return hostrelocate.Warmth{}, nil
}

func (b *fakeBox) Release(ctx context.Context, o hostclaim.Observed) (hostclaim.Release, error) {
	h := o.Claim.Holder
	receipt, err := stopevidence.Publish(ctx, b.own, stoptest.Filled(stopevidence.Record{Host: o.Host, Op: o.Claim.Op.ID,
		Box: b.self.Box, Enrollment: b.self.Enrollment, Incarnation: h.Incarnation, Stamp: h.Stamp, Session: h.Session}))
	return hostclaim.Release{Box: b.self.Box, Enrollment: b.self.Enrollment, Session: h.Session,
		Receipt: receipt.Ref().Key, ReceiptSHA256: receipt.Ref().SHA256}, err
}

func (b *fakeBox) Build(ctx context.Context, o hostclaim.Observed) error {
	c, j := o.Claim, o.Claim.Op.Journal
	if b.built[c.Host] == j.Prepared {
		return nil
	}
	pin, err := hostrelocate.ReadPin(ctx, b.own, *j.Pin)
	if err != nil {
		return err
	}
	retained, err := hostrelocate.ReadRetained(ctx, b.own, pin)
	if err != nil {
		return err
	}
	if _, err := hostfiles.WritePrepared(ctx, b.own, retained, hostrelocate.PreparedTarget(c)); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(b.dir, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	builder := hostdb.Builder{Store: b.own, Check: func(context.Context) error { return nil }}
	if _, err = builder.BuildPrepared(ctx, pin.Set, c.Holder.Location, j.Prepared, dir+"/app.db"); err == nil {
		b.built[c.Host] = j.Prepared
	}
	return err
}

func (b *fakeBox) Install(_ context.Context, o hostclaim.Observed) (hostclaim.LocalInstall, error) {
	c, j := o.Claim, o.Claim.Op.Journal
	return hostclaim.LocalInstall{Box: b.self.Box, Enrollment: b.self.Enrollment, InstallStamp: j.InstallStamp,
		FilesManifest: hostfiles.ManifestKey(c.Holder.Location, j.Prepared), SHA256: j.PreparedAuthority.FilesManifestSHA256}, nil
}

func (b *fakeBox) Admit(ctx context.Context, o hostclaim.Observed, first ...hostclaim.Transition) (hostclaim.Observed, error) {
	c := o.Claim
	a := hostclaim.Admission{Op: c.Op.ID, Phase: hostclaim.Probing, Session: c.Holder.Session, Generation: c.Holder.Generation,
		Box: b.self.Box, NewGeneration: c.Op.Journal.Prepared, KeepStamp: true, Baseline: c.Op.Journal.Pin.Position}
	return hostclaim.Update(ctx, b.control, o, hostclaim.Then(append(first, hostclaim.AdmitWriter(a))...))
}

// hostNamed is the name of the nth host.
func hostNamed(n int) string { return fmt.Sprintf("h%04d.example", n) }

// crowd makes n hosts that serve on a box.
func crowd(t *testing.T, s *memstore.Store, box string, n int) {
	t.Helper()
	for i := range n {
		createOn(t, s, hostNamed(i), box)
	}
}

// createOn makes a host that serves on a box.
func createOn(t *testing.T, s *memstore.Store, host, box string) {
	t.Helper()
	rec := hostrecord.Record{V: 1, Gen: 1, Write: "w", Host: host, Account: "demo", App: "notes", Region: "ie", Pool: "default",
		Command: []string{"/bin/notes"}, Incarnation: "inc", CreatedAt: time.Now().UTC()}.WithDefaults()
	stored, err := hostrecord.Create(t.Context(), s, rec)
	require.NoError(t, err)
	o := hostclaim.Observed{Host: host}
	for _, step := range []hostclaim.Transition{
		hostclaim.BeginCreate(hostclaim.NewHost{Incarnation: "inc", Account: "demo", App: "notes", RecordKey: hostrecord.Key("demo", "notes", host),
			RecordSHA256: stored.SHA256, Region: "ie"}, "op-1", "console", time.Now(), hostclaim.Member{Box: box, Enrollment: "enr-" + box}),
		hostclaim.CompleteCreate("op-1", box, "enr-"+box),
	} {
		o, err = hostclaim.Update(t.Context(), s, o, step)
		require.NoError(t, err)
	}
}

// away waits until no claim names a box as its executor, and every host serves;
// how long that took.
func away(t *testing.T, s *memstore.Store, within time.Duration, boxes ...string) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		left := 0
		for info, err := range s.List(t.Context(), "control/hosts/") {
			require.NoError(t, err)
			o, err := hostclaim.Read(t.Context(), s, info.Key[len("control/hosts/"):len(info.Key)-len(".json")])
			require.NoError(t, err)
			if o.Claim.Op.Kind != hostclaim.Serving || contains(boxes, o.Claim.Op.Exec) {
				left++
			}
		}
		if left == 0 {
			return time.Since(began)
		}
		require.Less(t, time.Since(began), within, "%d hosts are not back", left)
		require.True(t, pause.For(t.Context(), time.Second))
	}
}

func contains(list []string, name string) bool { return named(append([]string{}, list...), name) }

// counted is a worker's own way to the store. It counts what the worker asks,
// and what others were faster with, and can cut the worker off at a request.
type counted struct {
	*memstore.Store
	mu        sync.Mutex
	requests  map[string]int // by operation and the first two parts of the key
	conflicts int
	left      int // requests until cut is called; zero or below: never
	cut       func()
	dead      bool
	died      <-chan struct{}
}

// cutAfter has the worker cut off at its nth request from now.
func (c *counted) cutAfter(n int) (died <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = n
	return c.died
}

func (c *counted) count(op, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := strings.SplitN(key, "/", 3)
	c.requests[op+" "+strings.Join(parts[:min(2, len(parts))], "/")]++
	if c.left--; c.left == 0 {
		c.dead = true
		c.cut()
	}
	if c.dead {
		return errDead
	}
	return nil
}

// errDead: nothing that a worker which died sends arrives.
var errDead = errors.New("the worker is dead")

func (c *counted) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests, c.conflicts = map[string]int{}, 0
}

func (c *counted) of(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[kind]
}

func (c *counted) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.requests {
		n += m
	}
	return n
}

func (c *counted) Get(ctx context.Context, key string) (objstore.Object, error) {
	if err := c.count("GET", key); err != nil {
		return objstore.Object{}, err
	}
	return c.Store.Get(ctx, key)
}

func (c *counted) GetReader(ctx context.Context, key, ifMatch string, offset int64) (io.ReadCloser, objstore.Info, error) {
	if err := c.count("GET", key); err != nil {
		return nil, objstore.Info{}, err
	}
	return c.Store.GetReader(ctx, key, ifMatch, offset)
}

func (c *counted) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	if err := c.count("PUT", key); err != nil {
		return objstore.Info{}, fmt.Errorf("%w: %w", objstore.ErrUnknown, err)
	}
	info, err := c.Store.Put(ctx, key, body, cond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, objstore.ErrConflict) {
		c.conflicts++
	}
	return info, err
}

func (c *counted) PutReader(ctx context.Context, key string, r io.ReadSeeker, size int64, cond objstore.Condition) (objstore.Info, error) {
	if err := c.count("PUT", key); err != nil {
		return objstore.Info{}, fmt.Errorf("%w: %w", objstore.ErrUnknown, err)
	}
	return c.Store.PutReader(ctx, key, r, size, cond)
}

func (c *counted) List(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	if err := c.count("LIST", prefix); err != nil {
		return func(yield func(objstore.Info, error) bool) { yield(objstore.Info{}, err) }
	}
	return c.Store.List(ctx, prefix)
}
