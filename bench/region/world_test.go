package region_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/internal/worker"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

const (
	place    = "ie"
	bucket   = "s3://control"
	account  = "123456789012"
	cloudIn  = "eu-west-1"
	driver   = "worker"
	secretFP = "0123456789abcdef"

	// hintTakes is how long a hint is on its way to another machine.
	hintTakes = 2 * time.Millisecond

	// describeTakes is how long the cloud takes to describe an instance.
	describeTakes = 100 * time.Millisecond
)

// private signs the roster.
var private = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// region is a region at work: a control bucket, a data bucket, boxes, one worker
// and the cloud.
type region struct {
	tb            testing.TB
	seed          uint64
	control, data *memstore.Store
	seen          *tally
	ledger        *ledger
	boxes         map[string]*box
	worker        *worker.Worker
	self          *client // the worker's way to the control bucket
	scratch       string

	gone map[string]time.Time // since when an instance is terminated; guarded by ledger.mu
	heap atomic.Uint64        // the most memory that was seen

	mu    sync.Mutex
	homes map[string]string // by host, as it was published

	end  context.CancelFunc
	done chan error
}

// layout says how many hosts each box has at first.
type layout []int

func (r *region) rand(n uint64) *rand.Rand { return rand.New(rand.NewPCG(r.seed, n)) }

func (r *region) client(who string, b *memstore.Store, n uint64, l *ledger) *client {
	return &client{bucket: b, who: who, seen: r.seen, ledger: l, rng: r.rand(n + 1<<32)}
}

func (r *region) rosterOf(s objstore.Store) *roster.Directory {
	return roster.Open(s, private.Public().(ed25519.PublicKey), bucket)
}

func boxName(i int) string { return fmt.Sprintf("box-%03d", i) }

func hostName(i int) string { return fmt.Sprintf("h%05d.demo.example", i) }

// appOf makes ten hosts the instances of one app.
func appOf(host string) string { return "demo/app-" + host[1:5] }

func address(ref, port string) string { return ref + ":" + port }

// newRegion makes a region whose hosts have been served for a while.
func newRegion(tb testing.TB, seed uint64, boxes layout) *region {
	r := &region{tb: tb, seed: seed, control: memstore.New(), data: memstore.New(), seen: newTally(), ledger: newLedger(),
		boxes: map[string]*box{}, gone: map[string]time.Time{}, homes: map[string]string{}, scratch: tb.TempDir(), done: make(chan error, 1)}
	r.control.Forget, r.data.Forget = true, true
	snap := r.enroll(len(boxes))
	model := r.model()
	n := 0
	for i, hosts := range boxes {
		b := r.newBox(boxName(i), uint64(i))
		r.boxes[b.ref] = b
		claims := map[string]hostclaim.Observed{}
		for range hosts {
			claims[hostName(n)] = r.serve(b, hostName(n), model)
			n++
		}
		e := b.edges()
		for name, o := range claims {
			b.claims.Saw(name, behind(o), time.Now())
		}
		b.claims.Decide(e.Hosts)
		_, err := placement.Publish(tb.Context(), r.control, placement.Published{}, e)
		require.NoError(tb, err)
	}
	var err error
	self, _ := snap.Box(driver)
	r.self = r.client(driver, r.control, 1<<31, r.ledger)
	sender := hint.Sender{Log: quiet, Deliver: r.deliver, Bump: func(ctx context.Context, changes ...regionfile.Change) error {
		return regionfile.Tell(ctx, r.self, place, changes...)
	}}
	var hints *hint.Sender
	r.worker, err = worker.New(worker.Config{Region: place, Self: self, Roster: r.rosterOf(r.self), Control: r.self, Data: r.client(driver, r.data, 1<<31, nil),
		Cloud: worker.Cloud{Instances: r}, SecretFP: secretFP, Internal: address(driver, "82"), Send: func(o hint.Outgoing) { hints.Send(o) },
		Pace: worker.Pace{Sweep: 30 * time.Second, PinDelay: *pinDelay, Parallel: *parallel}, Log: workerLog()})
	require.NoError(tb, err)
	sender.Peers = r.worker.Peers
	hints = hint.NewSender(sender)
	ctx, cancel := context.WithCancel(tb.Context())
	r.end = cancel
	go func() {
		go func() { _ = hints.Run(ctx) }()
		r.done <- r.worker.Drive(ctx)
	}()
	for _, b := range r.all() {
		b.start(ctx)
	}
	go func() {
		for sleep(ctx, 5*time.Second) {
			r.heap.Store(max(r.heap.Load(), heap()))
		}
	}()
	return r
}

// close ends everything.
func (r *region) close() {
	r.end()
	require.NoError(r.tb, <-r.done)
	for _, b := range r.boxes {
		b.work.Wait()
	}
}

// enroll makes a roster of the boxes and the worker.
func (r *region) enroll(boxes int) roster.Snapshot {
	all := roster.Roster{DeploymentBucket: bucket, Boxes: map[string]roster.Box{},
		Regions: map[string]roster.Region{place: {Account: account, AWSRegion: cloudIn, Data: "s3://data"}}}
	add := func(ref string) {
		all.Boxes[ref] = roster.Box{Enrollment: "enr-" + ref, EnrolledAt: time.Now().UTC(), Region: place, Pool: "default", State: roster.Active,
			Cloud: boxid.Cloud{Provider: boxid.AWS, Account: account, Region: cloudIn, InstanceID: "i-" + ref}}
	}
	for i := range boxes {
		add(boxName(i))
	}
	add(driver)
	snap, err := roster.Create(r.tb.Context(), r.control, private, all)
	require.NoError(r.tb, err)
	return snap
}

const (
	modelHost       = "model.demo.example"
	firstGeneration = "g-1"
)

// model is what the first session of a host leaves in the store, by key, made
// once by what makes it for real.
func (r *region) model() map[string][]byte {
	ctx, dir, store := r.tb.Context(), r.tb.TempDir(), memstore.New()
	location := hostclaim.LocationOf(modelHost, "inc")
	_, err := hostfiles.EnsureInstanceKey(ctx, store, hostfiles.Target{Location: location, Generation: firstGeneration, Session: 1, Stamp: 1}, dir)
	require.NoError(r.tb, err)
	replicator, err := hostdb.Open(ctx, store, hostdb.Config{Path: filepath.Join(dir, "app.db"), MetaDir: filepath.Join(dir, "meta"), Empty: true,
		Check: func() error { return nil }, Generation: hostdb.Generation{Location: location, ID: firstGeneration, Session: 1}})
	require.NoError(r.tb, err)
	_, err = replicator.Durable(ctx)
	require.NoError(r.tb, err)
	require.NoError(r.tb, replicator.Close())
	objects := map[string][]byte{}
	for _, w := range store.Log() {
		objects[w.Key] = w.Body
	}
	return objects
}

// serve puts a host in the store that its first session serves on a box.
func (r *region) serve(b *box, name string, model map[string][]byte) hostclaim.Observed {
	ctx := r.tb.Context()
	account, app, _ := strings.Cut(appOf(name), "/")
	stored, err := hostrecord.Create(ctx, r.control, hostrecord.Record{V: 1, Gen: 1, Write: "w", Host: name, Account: account, App: app, Region: place,
		Pool: "default", Command: []string{"/bin/notes"}, Incarnation: "inc", CreatedAt: time.Now().UTC()}.WithDefaults())
	require.NoError(r.tb, err)
	o, err := hostclaim.Update(ctx, r.control, hostclaim.Observed{Host: name}, hostclaim.Then(
		hostclaim.BeginCreate(hostclaim.NewHost{Incarnation: "inc", Account: account, App: app, RecordKey: hostrecord.Key(account, app, name),
			RecordSHA256: stored.SHA256, Region: place}, "op-1", "console", time.Now(), b.self),
		hostclaim.CompleteCreate("op-1", b.ref, b.self.Enrollment),
		hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Box: b.ref, NewGeneration: firstGeneration, KeepStamp: true}),
		hostclaim.PublishGeneration(b.ref, 1)))
	require.NoError(r.tb, err)
	r.ledger.note(o.Claim)
	for key, body := range model {
		key, body := strings.ReplaceAll(key, modelHost, name), strings.ReplaceAll(string(body), modelHost, name)
		_, err := r.data.Put(ctx, key, []byte(body), always)
		require.NoError(r.tb, err)
	}
	h := newHost(b, name)
	h.ready.Store(true)
	b.hosts[name] = h
	return o
}

// publish notes which hosts a box says it is home for.
func (r *region) publish(ref string, hosts map[string]placement.Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range hosts {
		r.homes[name] = ref
	}
}

// home is the box that a host was published by last; "": none.
func (r *region) home(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.homes[name]
}

// Describe is the cloud's.
func (r *region) Describe(ctx context.Context, box boxid.Cloud) (termfence.Observation, boxvolumes.Observation, error) {
	sleep(ctx, describeTakes)
	r.ledger.mu.Lock()
	_, gone := r.gone[box.InstanceID]
	r.ledger.mu.Unlock()
	o := termfence.Observation{Via: termfence.ViaDescribe, Found: true, InstanceID: box.InstanceID, Account: box.Account, Region: box.Region,
		State: "running", RequestID: "r"}
	if gone {
		o.State = termfence.Terminated
	}
	return o, boxvolumes.Observation{}, ctx.Err()
}

// deliver brings a hint to who listens at an address.
func (r *region) deliver(ctx context.Context, addr string, h hint.Hint) error {
	if !sleep(ctx, hintTakes) {
		return ctx.Err()
	}
	ref, _, _ := strings.Cut(addr, ":")
	switch b := r.boxes[ref]; {
	case ref == driver:
		r.worker.Hint(h)
	case b.control.isDead():
		sleep(ctx, time.Second)
		return errDead
	default:
		b.hint(h)
	}
	return nil
}

// peers lists where the boxes named, and the worker, take hints.
func (r *region) peers(self string, refs []string) []string {
	list := []string{address(driver, "82")}
	for ref := range r.boxes {
		if ref != self && (refs == nil || slices.Contains(refs, ref)) {
			list = append(list, address(ref, "82"))
		}
	}
	return list
}

// kill terminates boxes' machines at once.
func (r *region) kill(refs ...string) {
	for _, ref := range refs {
		r.ledger.mu.Lock()
		r.gone["i-"+ref] = time.Now()
		r.ledger.mu.Unlock()
		r.boxes[ref].die()
	}
}
