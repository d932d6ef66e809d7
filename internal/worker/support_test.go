package worker

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

const host = "notes.demo.example"

// private signs the roster of every region here.
var private = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// secretFP is of the deployment's secret.
const secretFP = "0011223344556677"

// cloud answers what a test says of each instance, and counts what it was asked.
type cloud struct {
	mu     sync.Mutex
	answer map[string]func(boxid.Cloud) (termfence.Observation, error)
	asked  map[string]int
}

func newCloud() *cloud {
	return &cloud{answer: map[string]func(boxid.Cloud) (termfence.Observation, error){}, asked: map[string]int{}}
}

func (c *cloud) say(instance string, answer func(boxid.Cloud) (termfence.Observation, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer[instance] = answer
}

func (c *cloud) count(instance string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[instance]
}

func (c *cloud) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.asked {
		n += m
	}
	return n
}

func (c *cloud) Describe(_ context.Context, box boxid.Cloud) (termfence.Observation, boxvolumes.Observation, error) {
	c.mu.Lock()
	answer := c.answer[box.InstanceID]
	c.asked[box.InstanceID]++
	c.mu.Unlock()
	if answer == nil {
		answer = state("running")
	}
	seen, err := answer(box)
	return seen, boxvolumes.Observation{}, err
}

func state(s string) func(boxid.Cloud) (termfence.Observation, error) {
	return func(box boxid.Cloud) (termfence.Observation, error) {
		return termfence.Observation{Via: termfence.ViaDescribe, Found: true, InstanceID: box.InstanceID, Account: box.Account,
			Region: box.Region, State: s, RequestID: "r"}, nil
	}
}

// region is a deployment of three boxes and this worker, with one host that
// serves on the first. Its clock was compared, and no look keeps another waiting.
func region(t *testing.T) (*Worker, *cloud, *memstore.Store) {
	t.Helper()
	s := memstore.New()
	enroll(t, s)
	createHost(t, s)
	seen := newCloud()
	return join(t, s, "worker", seen), seen, s
}

// join is one more worker of the region, whose clock was compared and whose turn
// it is.
func join(t *testing.T, s hostrelocate.Store, ref string, seen *cloud) *Worker {
	t.Helper()
	w := newWorker(t, s, ref, seen)
	w.clock.set(0)
	w.queue.set(true)
	return w
}

// newWorker is one more worker of the region as it is made.
func newWorker(t *testing.T, s hostrelocate.Store, ref string, seen *cloud) *Worker {
	t.Helper()
	directory := roster.Open(s, private.Public().(ed25519.PublicKey), "s3://control")
	snap, err := directory.Read(t.Context())
	require.NoError(t, err)
	self, _ := snap.Box(ref)
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(t.Output(), nil)).With("worker", ref)
	}
	w, err := New(Config{Region: "ie", Self: self, Roster: directory, Control: s, Data: s, Cloud: Cloud{Instances: seen}, SecretFP: secretFP,
		Internal: "127.0.0.1:9", Pace: Pace{Sweep: 30 * time.Second, PinDelay: time.Second, Parallel: 4}, Log: log, Alerts: alert.New(log)})
	require.NoError(t, err)
	return w
}

// sweep is one sweep, as if none had been for long.
func sweep(t *testing.T, w *Worker) {
	t.Helper()
	forget(w)
	require.NoError(t, w.sweep(t.Context()))
}

// forget lets every box be described at once.
func forget(w *Worker) {
	w.looks.mu.Lock()
	defer w.looks.mu.Unlock()
	clear(w.looks.by)
}

func enroll(t *testing.T, s *memstore.Store) roster.Snapshot {
	r := roster.Roster{DeploymentBucket: "s3://control", Boxes: map[string]roster.Box{},
		Regions: map[string]roster.Region{"ie": {Account: "123456789012", AWSRegion: "eu-west-1", Data: "s3://data"}}}
	for _, ref := range []string{"box-1", "box-2", "box-3", "worker", "worker-2"} {
		r.Boxes[ref] = roster.Box{Enrollment: "enr-" + ref, EnrolledAt: time.Now().UTC(), Region: "ie", Pool: "default", State: roster.Active,
			Cloud: boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: "i-" + ref}}
	}
	snap, err := roster.Create(t.Context(), s, private, r)
	require.NoError(t, err)
	return snap
}

func createHost(t *testing.T, s *memstore.Store) {
	rec := hostrecord.Record{V: 1, Gen: 1, Write: "w", Host: host, Account: "demo", App: "notes", Region: "ie", Pool: "default",
		Command: []string{"/bin/notes"}, Incarnation: "inc", CreatedAt: time.Now().UTC()}.WithDefaults()
	stored, err := hostrecord.Create(t.Context(), s, rec)
	require.NoError(t, err)
	o := hostclaim.Observed{Host: host}
	for _, step := range []hostclaim.Transition{
		hostclaim.BeginCreate(hostclaim.NewHost{Incarnation: "inc", Account: "demo", App: "notes", RecordKey: hostrecord.Key("demo", "notes", host),
			RecordSHA256: stored.SHA256, Region: "ie"}, "op-1", "console", time.Now(), hostclaim.Member{Box: "box-1", Enrollment: "enr-box-1"}),
		hostclaim.CompleteCreate("op-1", "box-1", "enr-box-1"),
	} {
		o, err = hostclaim.Update(t.Context(), s, o, step)
		require.NoError(t, err)
	}
}

// publish gives a box a fresh edges file.
func publish(t *testing.T, w *Worker, ref string) {
	_, err := placement.Publish(t.Context(), w.control, placement.Published{}, placement.Edges{Box: ref, Region: "ie",
		Address: "127.0.0.1:1", Internal: "127.0.0.1:2", Protocol: roster.Protocol, Capabilities: []string{placement.CapabilityRegionHA, placement.CapabilityRelease},
		Accepting: true, SecretsKeyFP: secretFP, At: time.Now().UTC()})
	require.NoError(t, err)
}

func claim(t *testing.T, w *Worker) *hostclaim.Claim {
	o, err := hostclaim.Read(t.Context(), w.control, host)
	require.NoError(t, err)
	return o.Claim
}

func hintAbout(box string) hint.Hint { return hint.Hint{Box: box} }
