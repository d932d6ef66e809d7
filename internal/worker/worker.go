package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/awscloud"
	"github.com/carlosframework/regionha/awscloud/imds"
	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/admin"
	"github.com/carlosframework/regionha/internal/announce"
	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/proof"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/internal/serve"
	"github.com/carlosframework/regionha/internal/survey"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/storetest"
	"github.com/carlosframework/regionha/objstore/storeurl"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// announceEvery is how often the worker's own edges file is published, and its
// clock compared with the store's.
const announceEvery = time.Minute

// Describer reads the state of a box's instance.
type Describer interface {
	Describe(ctx context.Context, box boxid.Cloud) (termfence.Observation, error)
}

// Worker drives one region.
type Worker struct {
	set    Settings
	log    *slog.Logger
	secret boxauth.Secret

	control   objstore.Store
	roster    *roster.Directory
	self      roster.Box
	describer Describer
	fences    termfence.Reader
	relocate  *hostrelocate.Worker
	hints     *hint.Sender

	internal     net.Listener
	internalAddr string

	survey   *survey.Surveyor
	gone     gone
	draining draining
	claims   index
	queue    queue
	hurry    chan struct{} // describe every box now
	ownWork  chan struct{} // never signalled: the worker's edges file does not change
	clocked  atomic.Int64  // how far this clock is off, in nanoseconds

	compared     chan struct{} // closed once the clock was compared with the store's
	compareFirst sync.Once

	ready atomic.Pointer[string]
}

// Run is the worker until ctx ends. Its error is for config.Exit.
func Run(ctx context.Context, set Settings) error {
	if err := set.check(); err != nil {
		return err
	}
	w := &Worker{set: set, log: set.Logger(os.Stderr).With("box", set.Box, "region", set.Region), hurry: make(chan struct{}, 1),
		compared: make(chan struct{})}
	w.notReady("starting")
	var err error
	if w.internal, err = net.Listen("tcp", set.Internal); err != nil {
		return fmt.Errorf("internal: %w", err)
	}
	if w.internalAddr, err = serve.Advertised(w.internal, set.Advertise); err != nil {
		return err
	}
	adm, err := admin.Listen(admin.Config{Addr: set.Admin.Admin, Ready: w.readiness, Log: w.log})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return adm.Serve(ctx) })
	group.Go(func() error {
		err := w.work(ctx)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil
		}
		return err
	})
	return group.Wait()
}

// work proves who this machine is, and then drives the region.
func (w *Worker) work(ctx context.Context) error {
	data, err := w.open(ctx)
	if err != nil {
		return err
	}
	w.relocate = &hostrelocate.Worker{
		Control: w.control, Data: data, Region: w.set.Region, Roster: w.roster, PinDelay: w.set.PinDelay, Skew: announce.ClockLimit,
		Self: hostclaim.Member{Box: w.self.Ref, Enrollment: w.self.Enrollment}, Changed: w.changed,
		Gone: w.gone.get,
	}
	w.fences = termfence.Reader{Store: w.control, Roster: w.roster}
	w.survey = w.surveyor()
	w.relocate.Choose = w.survey.Choose
	w.queue.open()
	w.hints = hint.NewSender(hint.Sender{Secret: w.secret, Peers: w.peers, Log: w.log,
		Bump: func(ctx context.Context, hosts ...string) error {
			return regionfile.Bump(ctx, w.control, w.set.Region, hosts...)
		}})
	w.ready.Store(nil)
	w.log.Info("driving the region", "sweep", w.set.Sweep, "pin_delay", w.set.PinDelay, "internal", w.internalAddr)

	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range []func(context.Context) error{w.watch, w.fenceLoop, w.drive, w.announce, w.serve, w.hints.Run} {
		group.Go(func() error { return loop(ctx) })
	}
	return group.Wait()
}

func (w *Worker) open(ctx context.Context) (storeurl.Store, error) {
	var err error
	if w.secret, err = boxauth.LoadSecret(w.set.SecretFile.SecretFile, w.log); err != nil {
		return nil, err
	}
	name, err := storeurl.Name(w.set.Control)
	if err != nil {
		return nil, fmt.Errorf("%w: control: %w", config.ErrUsage, err)
	}
	if w.control, err = storeurl.Open(ctx, w.set.Control); err != nil {
		return nil, err
	}
	if err := storetest.Guard(ctx, w.control); err != nil {
		return nil, fmt.Errorf("control store %s: %w", name, err)
	}
	w.roster = roster.Open(w.control, w.set.RosterKey.PublicKey, name)
	if w.describer, err = awscloud.NewDescriber(ctx); err != nil {
		return nil, err
	}
	self, region, err := proof.Wait(ctx, proof.Config{
		Control: w.control, Roster: w.roster, Machine: imds.New(""), Box: w.set.Box, Region: w.set.Region, Log: w.log,
		Waiting: w.notReady,
	})
	if err != nil {
		return nil, err
	}
	w.self = self
	return storeurl.Open(ctx, region.Data)
}

// announce publishes where this worker takes hints, and watches its clock.
func (w *Worker) announce(ctx context.Context) error {
	announcer := announce.Announcer{
		Store: w.control, Changed: w.ownWork, Every: announceEvery, Log: w.log,
		Edges: func() placement.Edges {
			return placement.Edges{Box: w.self.Ref, Region: w.set.Region, Internal: w.internalAddr, Protocol: roster.Protocol,
				Capabilities: []string{placement.CapabilityWorker}, SecretsKeyFP: w.secret.Fingerprint(), At: time.Now().UTC()}
		},
		Clock: func(off time.Duration) {
			w.clocked.Store(int64(off))
			w.compareFirst.Do(func() { close(w.compared) })
			if off.Abs() > announce.ClockLimit {
				w.log.Error("this worker's clock is off from the store's: it drives nothing", "off", off.Round(time.Second), "at_most", announce.ClockLimit)
			}
		},
	}
	return announcer.Run(ctx)
}

// awaitClock waits until the clock was compared once; false where ctx ended
// first.
func (w *Worker) awaitClock(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-w.compared:
		return true
	}
}

// clockOff refuses to drive with a clock that is off: the bound on what a
// failover loses counts on it.
func (w *Worker) clockOff() error {
	if off := time.Duration(w.clocked.Load()); off.Abs() > announce.ClockLimit {
		return fmt.Errorf("this worker's clock is off by %s", off.Round(time.Second))
	}
	return nil
}

// serve takes hints: a claim that moved, or a box that does not answer.
func (w *Worker) serve(ctx context.Context) error {
	handler := hint.Handler(&boxauth.Verifier{Secret: w.secret, Log: w.log}, func(h hint.Hint) {
		switch {
		case h.Box != "":
			w.hurryUp()
		case h.Gen > 0 && hostclaim.CheckHost(h.Host) == nil:
			w.queue.add(h.Host)
		}
	})
	s := &http.Server{Handler: handler, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	return serve.HTTP(ctx, w.internal, s, time.Second)
}

// changed tells the boxes that take part, without waiting, that a claim moved.
func (w *Worker) changed(_ context.Context, c *hostclaim.Claim) {
	w.claims.put(c)
	w.hints.Send(hint.Outgoing{Hint: hint.Hint{Host: c.Host, Gen: c.Gen}, To: append([]string{c.Op.Exec}, c.Op.Participants...)})
}

func (w *Worker) notReady(why string) { w.ready.Store(&why) }

func (w *Worker) readiness() error {
	if why := w.ready.Load(); why != nil {
		return errors.New(*why)
	}
	return w.clockOff()
}

func (w *Worker) hurryUp() { signal(w.hurry) }

// index is the newest claim that this worker saw of each host. It only says
// where to look: every step reads the claim again.
type index struct {
	mu sync.Mutex
	by map[string]*hostclaim.Claim
}

func (x *index) put(c *hostclaim.Claim) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by == nil {
		x.by = map[string]*hostclaim.Claim{}
	}
	if old := x.by[c.Host]; old == nil || old.Gen < c.Gen {
		x.by[c.Host] = c
	}
}

// hosts lists the hosts whose newest claim passes.
func (x *index) hosts(pass func(*hostclaim.Claim) bool) (list []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for host, c := range x.by {
		if pass(c) {
			list = append(list, host)
		}
	}
	return list
}
