package hostrelocate_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

const (
	host   = "notes.demo.example"
	region = "ie"
	bucket = "s3://control"
)

var (
	ctx    = context.Background()
	source = hostclaim.Member{Box: "box-1", Enrollment: "enr-1"}
	target = hostclaim.Member{Box: "box-2", Enrollment: "enr-2"}
	driver = hostclaim.Member{Box: "box-9", Enrollment: "enr-9"}
)

// world is a region with one served host whose box is fenced: a real database
// and real files in a store, a real roster and a real fence.
type world struct {
	tb            testing.TB
	control, data *memstore.Store
	roster        *roster.Directory
	private       ed25519.PrivateKey
	fence         termfence.Evidence
	now           time.Time
	root          string // of the target box
	key           []byte // the host's instance key
}

func newWorld(tb testing.TB) *world {
	w := &world{tb: tb, control: memstore.New(), data: memstore.New(), root: tb.TempDir(), now: time.Now()}
	public, private := roster.GenerateKey()
	w.roster, w.private = roster.Open(w.control, public, bucket), private
	r := roster.Roster{DeploymentBucket: bucket, Boxes: map[string]roster.Box{},
		Regions: map[string]roster.Region{region: {Account: "123456789012", AWSRegion: "eu-west-1", Data: "s3://data"}}}
	for _, m := range []hostclaim.Member{source, target, driver} {
		r.Boxes[m.Box] = roster.Box{Enrollment: m.Enrollment, EnrolledAt: w.now.UTC(), Region: region, Pool: "default", State: roster.Active,
			Cloud: boxid.Cloud{Provider: "aws", Account: "123456789012", Region: "eu-west-1", InstanceID: "i-" + m.Box}}
	}
	snap, err := roster.Create(ctx, w.control, private, r)
	require.NoError(tb, err)
	w.serve()
	w.fence = w.terminate(snap)
	return w
}

func (w *world) terminate(snap roster.Snapshot) termfence.Evidence {
	box, _ := snap.Box(source.Box)
	worker, _ := snap.Box(driver.Box)
	rec, err := termfence.Verify(box, worker, termfence.Observation{Via: termfence.ViaDescribe, Found: true, InstanceID: box.Cloud.InstanceID,
		Account: box.Cloud.Account, Region: box.Cloud.Region, State: termfence.Terminated, RequestID: "r"}, w.now)
	require.NoError(w.tb, err)
	e, err := termfence.Publish(ctx, w.control, termfence.Reader{Store: w.control, Roster: w.roster}, rec)
	require.NoError(w.tb, err)
	return e
}

// declare lets an operator declare the first box lost.
func (w *world) declare() termfence.Evidence {
	_, err := roster.Update(ctx, w.control, w.private, w.roster, func(r *roster.Roster) error { return r.Quarantine(source.Box) })
	require.NoError(w.tb, err)
	e, err := termfence.Declare(ctx, w.control, termfence.Reader{Store: w.control, Roster: w.roster}, termfence.Declaration{
		Box: source.Box, Enrollment: source.Enrollment, Region: region, Who: "ada", Why: "unreachable since noon",
		Cloud:   boxid.Cloud{Provider: "aws", Account: "123456789012", Region: "eu-west-1", InstanceID: "i-" + source.Box},
		Checked: []string{"powered off by hand"}, Confirmation: source.Box, DeclaredAt: w.now})
	require.NoError(w.tb, err)
	return e
}

// serve runs the host on its first box until it is published.
func (w *world) serve() {
	o := w.step(hostclaim.Observed{Host: host}, hostclaim.BeginCreate(hostclaim.NewHost{Incarnation: "inc", Account: "demo", App: "notes",
		RecordKey: "apps/demo/notes/instances/" + host + ".json", RecordSHA256: "aa", Region: region}, "op-1", "console", w.now, source))
	o = w.step(o, hostclaim.CompleteCreate("op-1", source.Box, source.Enrollment))
	o = w.step(o, hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Box: source.Box, NewGeneration: "g-1", KeepStamp: true}))
	w.writeFirst(o.Claim)
	w.step(o, hostclaim.PublishGeneration(source.Box, o.Claim.Holder.Session))
}

// writeFirst is what the first writer leaves in the store.
func (w *world) writeFirst(c *hostclaim.Claim) {
	dir := w.tb.TempDir()
	files := hostfiles.Target{Location: c.Holder.Location, Generation: "g-1", Session: c.Holder.Session, Stamp: c.Holder.Stamp}
	root, platform := filepath.Join(dir, "files"), filepath.Join(dir, "platform")
	require.NoError(w.tb, os.Mkdir(root, 0o700))
	require.NoError(w.tb, os.Mkdir(platform, 0o700))
	var err error
	w.key, err = hostfiles.EnsureInstanceKey(ctx, w.data, files, platform)
	require.NoError(w.tb, err)
	require.NoError(w.tb, os.WriteFile(filepath.Join(root, "photo"), []byte("pixels"), 0o644))
	p, err := hostfiles.New(ctx, w.data, hostfiles.Config{Root: root, Platform: platform, Target: files})
	require.NoError(w.tb, err)
	_, err = p.SyncDir(ctx)
	require.NoError(w.tb, err)
	require.NoError(w.tb, p.Close())

	r := w.open(c, filepath.Join(dir, "db"), hostdb.Config{Empty: true})
	_, err = r.Durable(ctx)
	require.NoError(w.tb, err)
	require.NoError(w.tb, r.Close())
}

func (w *world) open(c *hostclaim.Claim, dir string, cfg hostdb.Config) *hostdb.Replicator {
	require.NoError(w.tb, os.MkdirAll(dir, 0o700))
	cfg.Path, cfg.MetaDir, cfg.Check = filepath.Join(dir, "app.db"), filepath.Join(dir, "meta"), func() error { return nil }
	cfg.Generation = hostdb.Generation{Location: c.Holder.Location, ID: c.Holder.Generation, Session: c.Holder.Session}
	r, err := hostdb.Open(ctx, w.data, cfg)
	require.NoError(w.tb, err)
	return r
}

func (w *world) step(o hostclaim.Observed, t hostclaim.Transition) hostclaim.Observed {
	next, err := hostclaim.Update(ctx, w.control, o, t)
	require.NoError(w.tb, err)
	return next
}

func (w *world) claim() hostclaim.Observed {
	o, err := hostclaim.Read(ctx, w.control, host)
	require.NoError(w.tb, err)
	return o
}

func (w *world) worker() *hostrelocate.Worker {
	return &hostrelocate.Worker{Control: w.control, Data: w.data, Region: region, Self: driver, Roster: w.roster,
		PinDelay: time.Second, Now: func() time.Time { return w.now }}
}

func (w *world) participant() *hostrelocate.Participant {
	return &hostrelocate.Participant{Control: w.control, Self: target, Runtime: &box{world: w}, Now: func() time.Time { return w.now }}
}

// box is the target's effects, without processes: the database and the files
// are real.
type box struct {
	*world
	probes []error // what the next probes say; nil once used up
}

func (b *box) Acknowledge(context.Context, hostclaim.Observed) error { return nil }

func (b *box) Build(ctx context.Context, o hostclaim.Observed) error {
	c := o.Claim
	pin, err := hostrelocate.ReadPin(ctx, b.control, *c.Op.Journal.Pin)
	if err != nil {
		return err
	}
	retained, err := hostrelocate.ReadRetained(ctx, b.control, pin)
	if err != nil {
		return err
	}
	if _, err := hostfiles.WritePrepared(ctx, b.data, retained, hostrelocate.PreparedTarget(c)); err != nil {
		return err
	}
	if err := os.RemoveAll(b.dir("db")); err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir("db"), 0o700); err != nil {
		return err
	}
	builder := hostdb.Builder{Store: b.data, Check: func(context.Context) error { return nil }}
	_, err = builder.BuildPrepared(ctx, pin.Set, c.Holder.Location, c.Op.Journal.Prepared, filepath.Join(b.dir("db"), "app.db"))
	return err
}

func (b *box) dir(name string) string { return filepath.Join(b.root, name) }

func (b *box) Install(ctx context.Context, o hostclaim.Observed) (hostclaim.LocalInstall, error) {
	c := o.Claim
	key := hostfiles.ManifestKey(c.Holder.Location, c.Op.Journal.Prepared)
	digest := c.Op.Journal.PreparedAuthority.FilesManifestSHA256
	for _, dir := range []string{"files", "platform"} {
		if err := os.RemoveAll(b.dir(dir)); err != nil {
			return hostclaim.LocalInstall{}, err
		}
	}
	err := hostfiles.Restore(ctx, b.data, hostfiles.ManifestRef{Key: key, SHA256: digest}, b.dir("files"), b.dir("platform"))
	return hostclaim.LocalInstall{Box: target.Box, Enrollment: target.Enrollment, InstallStamp: c.Op.Journal.InstallStamp, FilesManifest: key, SHA256: digest}, err
}

func (b *box) Admit(ctx context.Context, o hostclaim.Observed, first ...hostclaim.Transition) (hostclaim.Observed, error) {
	c := o.Claim
	a := hostclaim.Admission{Op: c.Op.ID, Phase: hostclaim.Probing, Session: c.Holder.Session, Generation: c.Holder.Generation,
		Box: target.Box, NewGeneration: c.Op.Journal.Prepared, KeepStamp: true, Baseline: c.Op.Journal.Pin.Position}
	if c.Op.Journal.PreparedOpened != "" {
		base, err := hostrelocate.Newest(ctx, b.data, c)
		if err != nil {
			return hostclaim.Observed{}, err
		}
		a.NewGeneration, a.KeepStamp, a.Baseline = "g-"+record.Nonce(), false, base.Position
	}
	return hostclaim.Update(ctx, b.control, o, hostclaim.Then(append(first, hostclaim.AdmitWriter(a))...))
}

func (b *box) Start(context.Context, hostclaim.Observed) error { return nil }

func (b *box) Probe(context.Context, hostclaim.Observed) error {
	if len(b.probes) == 0 {
		return nil
	}
	err := b.probes[0]
	b.probes = b.probes[1:]
	return err
}

func (b *box) Stop(context.Context, string) error { return nil }

var errProbe = errors.New("the app answers 500")

// run steps both drivers, each a new one without memory, until the host serves.
// A step that fails is made again; time passes while one waits.
func (w *world) run(steps int) bool {
	for range steps {
		o, err := hostclaim.Read(ctx, w.control, host)
		if err != nil {
			continue
		}
		if o.Claim.Op.Kind == hostclaim.Serving && o.Claim.Op.Exec == target.Box {
			return true
		}
		if o.Claim.Op.Kind == hostclaim.Serving {
			_, _ = w.worker().StartFailover(ctx, o, w.fence, target.Box) // a failure is made again
			continue
		}
		turn, _ := w.worker().Step(ctx, o)
		if turn.Did == "" {
			turn, _ = w.participant().Step(ctx, o)
		}
		if turn.Did == "" {
			w.now = w.now.Add(500 * time.Millisecond)
		}
	}
	return false
}
