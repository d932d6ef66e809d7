package worker

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/announce"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/survey"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// Config is everything that a worker drives a region with. It reaches nothing
// outside of the process by itself.
type Config struct {
	Region  string
	Self    roster.Box // this worker's own entry, on whose machine it was proven to run
	Roster  *roster.Directory
	Control objstore.Store
	Data    hostrelocate.Store // of Region
	Cloud   Cloud
	Certs   map[string]*x509.Certificate // what boxes' identities are verified with; nil: none verifies

	SecretFP string // of the deployment's secret
	Internal string // where peers bring hints to, host:port

	// Send tells others of a claim that was written, without waiting; nil: they
	// find out by themselves.
	Send func(hint.Outgoing)

	// Reach tries to connect to a box's internal listener; nil: whether a box
	// can be reached is not known.
	Reach func(ctx context.Context, addr string) error

	Pace
	Log     *slog.Logger          // slog.Default if nil
	Alerts  *alert.Board          // nil: nobody is told
	Metrics prometheus.Registerer // nil: nothing is measured
}

// Worker drives one region. It is safe for concurrent use.
type Worker struct {
	set     Config
	control objstore.Store
	roster  *roster.Directory
	self    roster.Box
	cloud   Cloud
	certs   map[string]*x509.Certificate
	log     *slog.Logger
	alerts  *alert.Board

	fences   termfence.Reader
	relocate *hostrelocate.Worker
	survey   *survey.Surveyor

	clock    clock
	standing standing
	gone     gone
	disks    *disks
	draining draining
	looks    looks
	sights   sights
	doubts   pending // boxes that a hint is about
	news     pending // hosts whose claims are to be read
	claims   index
	unplaced unplaced
	moves    moves
	queue    *queue
	gauges   gauges
	rosters  chan roster.Snapshot // of sweeps, for confirmLoop
	members  members
	volumes  volumes
}

// New makes a worker. It sends no request. Call Drive.
func New(c Config) (*Worker, error) {
	if err := c.Pace.check(); err != nil {
		return nil, err
	}
	if c.Cloud.Instances == nil || c.Self.Ref == "" || c.Self.Region != c.Region {
		return nil, fmt.Errorf("worker: want a cloud, and an entry of region %q: got %q of %q", c.Region, c.Self.Ref, c.Self.Region)
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Send == nil {
		c.Send = func(hint.Outgoing) {}
	}
	w := &Worker{set: c, control: c.Control, roster: c.Roster, self: c.Self, cloud: c.Cloud, certs: c.Certs, log: c.Log, alerts: c.Alerts,
		fences: termfence.Reader{Store: c.Control, Roster: c.Roster}, clock: newClock(), looks: newLooks(), disks: newDisks(), doubts: newPending(),
		news: newPending(), rosters: make(chan roster.Snapshot)}
	w.queue = newQueue(w.mayBegin)
	w.survey = &survey.Surveyor{SecretFP: c.SecretFP, Log: c.Log,
		Reader: survey.Reader{Store: c.Control, Roster: c.Roster, Region: c.Region, Gone: w.gone.has}}
	w.relocate = &hostrelocate.Worker{
		Control: c.Control, Data: c.Data, Region: c.Region, Roster: c.Roster, PinDelay: c.PinDelay, Skew: announce.ClockLimit,
		Self:    hostclaim.Member{Box: c.Self.Ref, Enrollment: c.Self.Enrollment},
		Changed: w.changed, Gone: w.evidence, Choose: w.survey.Choose,
	}
	return w, w.gauges.register(c.Metrics, w)
}

// Drive runs the region until ctx ends: every loop of the worker, joined.
func (w *Worker) Drive(ctx context.Context) error {
	w.log.Info("driving the region", "sweep", w.set.Sweep, "pin_delay", w.set.PinDelay, "internal", w.set.Internal)
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range []func(context.Context) error{
		w.announce, w.watch, w.readNews, w.sweepLoop, w.confirmLoop, w.lookLoop, w.events, w.takeTurns, w.drive, w.judgeDisks, w.recordLoop, w.report,
	} {
		group.Go(func() error { return loop(ctx) })
	}
	return group.Wait()
}

// Hint is told where to look now; it does not wait. A hint about a box makes it
// be looked up in the roster and in the cloud, one about a host makes its claim
// be read.
func (w *Worker) Hint(h hint.Hint) {
	switch {
	case h.Box != "":
		w.doubts.add(h.Box)
	case h.Gen > 0 && hostclaim.CheckHost(h.Host) == nil:
		w.notice(h.Host, w.queue.wake)
	}
}

// Ready is nil while this worker may drive its region.
func (w *Worker) Ready() error {
	if !w.clock.isCompared() {
		return errors.New("its clock was not compared with the store's yet")
	}
	return w.mayDrive()
}

// mayDrive refuses to drive with a clock that is off, which the bound on what a
// failover loses counts on, and without an active entry of this worker's own.
func (w *Worker) mayDrive() error { return errors.Join(w.clock.check(), w.standing.check()) }

// changed takes in a claim that this worker wrote, and tells others.
func (w *Worker) changed(_ context.Context, c *hostclaim.Claim) {
	w.saw(c)
	w.set.Send(hint.Of(c))
}

// Peers lists the internal addresses of the region's boxes named, nil for all,
// as of the last look at them.
func (w *Worker) Peers(refs []string) []string {
	var list []string
	for _, f := range w.survey.Edges().Files {
		if e := f.Edges; e.Internal != "" && e.Region == w.set.Region && e.Box != w.self.Ref && named(refs, e.Box) {
			list = append(list, e.Internal)
		}
	}
	return list
}

func named(refs []string, ref string) bool { return refs == nil || slices.Contains(refs, ref) }
