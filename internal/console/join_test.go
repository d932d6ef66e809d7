package console_test

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/internal/proof"
	"github.com/carlosframework/regionha/internal/worker"
	"github.com/carlosframework/regionha/membership"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// machine is the metadata service of one instance.
type machine boxid.Cloud

func (m machine) Document(context.Context) ([]byte, error) {
	return boxidtest.Document(boxid.Cloud(m)), nil
}

func (m machine) Signature(context.Context) ([]byte, error) {
	return []byte(base64.StdEncoding.EncodeToString(boxidtest.Sign(boxidtest.Document(boxid.Cloud(m))))), nil
}

func (m machine) Cloud(context.Context) (boxid.Cloud, error) { return boxid.Cloud(m), nil }

// sky is a cloud whose every instance is of the group of its region.
type sky struct {
	mu     sync.Mutex
	states map[string]string
}

func (s *sky) set(instance, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[instance] = state
}

func (s *sky) Describe(_ context.Context, box boxid.Cloud) (termfence.Observation, boxvolumes.Observation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, found := s.states[box.InstanceID]
	return termfence.Observation{Via: termfence.ViaDescribe, Found: found, InstanceID: box.InstanceID, Account: box.Account,
		Region: box.Region, State: state, RequestID: "r"}, boxvolumes.Observation{}, nil
}

func (s *sky) Member(_ context.Context, region, instance string) (membership.Observation, error) {
	return membership.Observation{Found: true, InstanceID: instance, AWSRegion: region, Zone: region + "a", GroupName: "boxes",
		GroupARN: "arn:" + region, LifecycleState: membership.InService, RequestIDs: []string{"r"}}, nil
}

// country is two placements under a virtual clock, each with the machines that
// the roster has, and a console that serves.
type country struct {
	*sky
	mem    *memstore.Store
	dir    *roster.Directory
	seat   *console.Console
	cancel context.CancelFunc
	ran    sync.WaitGroup
	ctx    context.Context
}

func newCountry(t *testing.T, boxes map[string]roster.Box) *country {
	t.Helper()
	c := &country{sky: &sky{states: map[string]string{}}, mem: memstore.New()}
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	c.dir = roster.Open(c.mem, private.Public().(ed25519.PublicKey), "memory")
	r := roster.Roster{DeploymentBucket: "memory", Boxes: boxes, Regions: map[string]roster.Region{}}
	certs := map[string]*x509.Certificate{}
	for code, region := range map[string]string{"ie": "eu-west-1", "de": "eu-central-1"} {
		r.Regions[code] = roster.Region{Account: "123456789012", AWSRegion: region, Data: "dir:///data", GroupName: "boxes", GroupARN: "arn:" + region}
		certs[region] = boxidtest.Cert()
	}
	for ref, box := range boxes {
		box.Enrollment, box.EnrolledAt, box.Pool, box.State = "e-"+ref, time.Now().UTC(), "default", roster.Active
		box.Cloud = instance(r.Regions[box.Region].AWSRegion, "i-"+ref)
		boxes[ref] = box
		c.set("i-"+ref, "running")
	}
	_, err := roster.Create(t.Context(), c.mem, private, r)
	require.NoError(t, err)
	c.seat = &console.Console{Store: c.mem, Roster: c.dir, Private: private, Certs: certs, SecretFP: fingerprint}
	c.ctx, c.cancel = context.WithCancel(t.Context())
	return c
}

func instance(region, id string) boxid.Cloud {
	return boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: region, InstanceID: id}
}

// runs starts a part of the country; end ends them all.
func (c *country) runs(part func(context.Context) error) {
	c.ran.Go(func() { _ = part(c.ctx) }) // it ends with its context
}

func (c *country) end() {
	c.cancel()
	c.ran.Wait()
}

func (c *country) serve() {
	c.runs((&console.Enroller{Console: c.seat, Alerts: alert.New(slog.New(slog.DiscardHandler)), Log: slog.New(slog.DiscardHandler)}).Run)
}

// work lets a worker drive the region of the box that it runs on.
func (c *country) work(t *testing.T, ref string) {
	t.Helper()
	snap, err := c.dir.Read(t.Context())
	require.NoError(t, err)
	self, _ := snap.Box(ref)
	log := slog.New(slog.DiscardHandler)
	w, err := worker.New(worker.Config{Region: self.Region, Self: self, Roster: c.dir, Control: c.mem, Data: c.mem, Certs: c.seat.Certs,
		Cloud: worker.Cloud{Instances: c.sky, Groups: c.sky}, SecretFP: fingerprint, Log: log, Alerts: alert.New(log),
		Pace: worker.Pace{Sweep: 30 * time.Second, PinDelay: 30 * time.Second, Parallel: 16}})
	require.NoError(t, err)
	c.runs(w.Drive)
}

// boot starts an instance of a region's group: it publishes who it is and waits,
// and then has an edges file.
func (c *country) boot(ref, code string, cloud boxid.Cloud) <-chan roster.Box {
	c.set(cloud.InstanceID, "running")
	enrolled := make(chan roster.Box, 1)
	c.runs(func(ctx context.Context) error {
		box, _, err := proof.Wait(ctx, proof.Config{Control: c.mem, Roster: c.dir, Machine: machine(cloud), Box: ref, Region: code,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		_, err = placement.Publish(ctx, c.mem, placement.Published{}, placement.Edges{Box: ref, Region: code, Address: ref + ":80", Internal: ref + ":81",
			Capabilities: []string{placement.CapabilityRegionHA}, Accepting: true, SecretsKeyFP: fingerprint, At: time.Now()})
		if err == nil {
			enrolled <- box
		}
		return err
	})
	return enrolled
}

func (c *country) eligible(t *testing.T, code string) string {
	t.Helper()
	created, err := c.seat.Create(t.Context(), console.NewHost{Host: code + ".example", Account: "demo", App: "notes", Region: code, Command: []string{"/bin/notes"}})
	require.NoError(t, err)
	return created.Box
}

func TestABoxOfTheGroupJoinsWithoutAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCountry(t, map[string]roster.Box{"worker-1": {Region: "ie"}, "worker-2": {Region: "ie"}})
		defer c.end()
		c.work(t, "worker-1")
		c.work(t, "worker-2")
		c.serve()
		c.serve() // two workers and two consoles, all at once
		time.Sleep(time.Minute)
		began := time.Now()
		box := <-c.boot("new", "ie", instance("eu-west-1", "i-new"))
		require.Less(t, time.Since(began), 40*time.Second)
		require.Equal(t, "i-new", box.Cloud.InstanceID)
		require.Equal(t, "new", c.eligible(t, "ie"))
		for range 20 {
			time.Sleep(time.Minute)
			snap, err := c.dir.Read(t.Context())
			require.NoError(t, err)
			require.Equal(t, box.Enrollment, snap.Boxes["new"].Enrollment)
			require.Len(t, snap.Boxes, 3)
		}
	})
}

func TestAnEmptiedRegionGetsItsFirstBoxFromAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCountry(t, map[string]roster.Box{"worker-1": {Region: "ie"}, "de-1": {Region: "de"}, "de-2": {Region: "de"}})
		defer c.end()
		c.work(t, "worker-1")
		c.serve()
		c.set("i-de-1", "terminated")
		c.set("i-de-2", "stopped")
		enrolled := c.boot("new", "de", instance("eu-central-1", "i-new"))
		time.Sleep(10 * time.Minute)
		require.Empty(t, enrolled, "a stopped box may still act")
		box, err := c.seat.Box(t.Context(), "new")
		require.NoError(t, err)
		require.Equal(t, "waits for a worker to confirm that group boxes launched it, or for you", box.Status)

		c.set("i-de-2", "terminated")
		time.Sleep(2 * time.Minute)
		require.Len(t, enrolled, 1)
		require.Equal(t, "de", (<-enrolled).Region)
		require.Equal(t, "new", c.eligible(t, "de"))
		for _, ref := range []string{"de-1", "de-2"} {
			_, fenced, err := termfence.Reader{Store: c.mem, Roster: c.dir}.Fenced(t.Context(), "e-"+ref)
			require.NoError(t, err)
			require.False(t, fenced, "only its own region fences a box")
		}
	})
}
