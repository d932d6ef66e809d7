package hostrelocate_test

import (
	"context"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostrelocate"
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
	spare  = hostclaim.Member{Box: "box-3", Enrollment: "enr-3"}
	fourth = hostclaim.Member{Box: "box-4", Enrollment: "enr-4"}
	driver = hostclaim.Member{Box: "box-9", Enrollment: "enr-9"}
)

// world is a region with one served host: a real database and real files in a
// store, a real roster and real fences. Its drivers have no memory but what lies
// on the boxes' disks.
type world struct {
	tb            testing.TB
	control, data *memstore.Store
	roster        *roster.Directory
	snap          roster.Snapshot
	private       ed25519.PrivateKey
	fence         termfence.Evidence // of the source; zero: it lives
	now           time.Time
	tick          time.Duration // that passes while everyone waits
	key           []byte        // the host's instance key

	gone   map[string]termfence.Evidence // by box
	down   map[string]bool               // boxes that make no steps
	spares []hostclaim.Member            // whom a worker may choose, in this order
	disks  map[string]*disk              // by box
	probes []error                       // what the next probes say; nil once used up
	wrote  hostclaim.Observed            // what the last step says that it wrote
}

// newWorld is a region whose source is fenced.
func newWorld(tb testing.TB) *world {
	w := served(tb)
	w.fence = w.terminate(source)
	return w
}

// served is a region in which every box lives.
func served(tb testing.TB) *world {
	w := &world{tb: tb, control: memstore.New(), data: memstore.New(), now: time.Now(), tick: 500 * time.Millisecond,
		gone: map[string]termfence.Evidence{}, down: map[string]bool{}, disks: map[string]*disk{}}
	public, private := roster.GenerateKey()
	w.roster, w.private = roster.Open(w.control, public, bucket), private
	r := roster.Roster{DeploymentBucket: bucket, Boxes: map[string]roster.Box{},
		Regions: map[string]roster.Region{region: {Account: "123456789012", AWSRegion: "eu-west-1", Data: "s3://data"}}}
	for _, m := range []hostclaim.Member{source, target, spare, fourth, driver} {
		w.disks[m.Box] = &disk{root: tb.TempDir()}
		r.Boxes[m.Box] = roster.Box{Enrollment: m.Enrollment, EnrolledAt: w.now.UTC(), Region: region, Pool: "default", State: roster.Active,
			Cloud: boxid.Cloud{Provider: "aws", Account: "123456789012", Region: "eu-west-1", InstanceID: "i-" + m.Box}}
	}
	var err error
	w.snap, err = roster.Create(ctx, w.control, private, r)
	require.NoError(tb, err)
	w.serve()
	return w
}

// terminate fences a box.
func (w *world) terminate(m hostclaim.Member) termfence.Evidence {
	box, _ := w.snap.Box(m.Box)
	worker, _ := w.snap.Box(driver.Box)
	rec, err := termfence.Verify(box, worker, termfence.Observation{Via: termfence.ViaDescribe, Found: true, InstanceID: box.Cloud.InstanceID,
		Account: box.Cloud.Account, Region: box.Cloud.Region, State: termfence.Terminated, RequestID: "r"}, w.now)
	require.NoError(w.tb, err)
	e, err := termfence.Publish(ctx, w.control, termfence.Reader{Store: w.control, Roster: w.roster}, rec)
	require.NoError(w.tb, err)
	w.gone[m.Box], w.down[m.Box] = e, true
	return e
}

// declare lets an operator declare the first box lost.
func (w *world) declare() termfence.Evidence {
	w.quarantine(source)
	e, err := termfence.Declare(ctx, w.control, termfence.Reader{Store: w.control, Roster: w.roster}, termfence.Declaration{
		Box: source.Box, Enrollment: source.Enrollment, Region: region, Who: "ada", Why: "unreachable since noon",
		Cloud:   boxid.Cloud{Provider: "aws", Account: "123456789012", Region: "eu-west-1", InstanceID: "i-" + source.Box},
		Checked: []string{"powered off by hand"}, Confirmation: source.Box, DeclaredAt: w.now})
	require.NoError(w.tb, err)
	return e
}

func (w *world) quarantine(m hostclaim.Member) {
	_, err := roster.Update(ctx, w.control, w.private, w.roster, func(r *roster.Roster) error { return r.Quarantine(m.Box) })
	require.NoError(w.tb, err)
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
	dir := w.disks[source.Box].root
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
		PinDelay: time.Second, Now: func() time.Time { return w.now },
		Gone: func(box string) (hostclaim.Gone, bool) { e, ok := w.gone[box]; return hostclaim.Gone{Evidence: e}, ok },
		Choose: func(_ context.Context, c *hostclaim.Claim, exclude []string) (hostclaim.Member, bool, error) {
			for _, m := range w.spares {
				if _, gone := w.gone[m.Box]; !gone && !slices.Contains(exclude, m.Box) && !c.IsLost(m.Box) && !c.Owes(m.Box, hostclaim.ParkLocal) {
					return m, true, nil
				}
			}
			return hostclaim.Member{}, false, nil
		}}
}

// participant is the target's.
func (w *world) participant() *hostrelocate.Participant { return w.participantOn(target) }

func (w *world) participantOn(m hostclaim.Member) *hostrelocate.Participant {
	return &hostrelocate.Participant{Control: w.control, Self: m, Runtime: &box{world: w, self: m, disk: w.disks[m.Box]},
		Now: func() time.Time { return w.now }}
}

// start begins the relocation that the test is about.
func (w *world) start(o hostclaim.Observed) (hostrelocate.Turn, error) {
	if w.fence.Box() != "" {
		return w.worker().StartFailover(ctx, o, hostclaim.Gone{Evidence: w.fence}, target.Box)
	}
	return w.worker().Drain(ctx, o, hostclaim.Drain, target)
}

// run lets every driver that lives step, each a new one without memory, until
// the relocation is over; false if it is not. A step that fails is made again;
// time passes while all wait.
func (w *world) run(steps int) bool {
	return w.until(steps, func(c *hostclaim.Claim) bool {
		return c.Op.Kind == hostclaim.Serving && c.Op.Outcome == hostclaim.Completed
	})
}

// until is run until something else.
func (w *world) until(steps int, over func(*hostclaim.Claim) bool) bool {
	for range steps {
		o, err := hostclaim.Read(ctx, w.control, host)
		if err != nil {
			continue
		}
		if w.wrote.Claim != nil {
			require.Equal(w.tb, w.wrote, o, "a step says what it wrote")
			w.wrote = hostclaim.Observed{}
		}
		if over(o.Claim) {
			return true
		}
		if o.Claim.Op.Kind == hostclaim.Serving && o.Claim.Op.Outcome == "" {
			_, _ = w.start(o) // a failure is made again
			continue
		}
		if !w.stepAll(o) {
			w.now = w.now.Add(w.tick)
		}
	}
	return false
}

// stepAll lets one driver make a step, the worker if it can; false: all wait.
func (w *world) stepAll(o hostclaim.Observed) bool {
	if turn, _ := w.worker().Step(ctx, o); turn.Did != "" {
		w.wrote = turn.Now
		return true
	}
	for _, m := range []hostclaim.Member{source, target, spare, fourth} {
		if w.down[m.Box] {
			continue
		}
		if turn, _ := w.participantOn(m).Step(ctx, o); turn.Did != "" {
			w.wrote = turn.Now
			return true
		}
	}
	return false
}
