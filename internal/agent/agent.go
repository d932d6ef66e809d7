package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/admin"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/ingress"
	"github.com/carlosframework/regionha/internal/proof"
	"github.com/carlosframework/regionha/internal/runner"
	"github.com/carlosframework/regionha/internal/serve"
	"github.com/carlosframework/regionha/objstore/storetest"
	"github.com/carlosframework/regionha/objstore/storeurl"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// Agent is one running box.
type Agent struct {
	set     Settings
	log     *slog.Logger
	secret  boxauth.Secret
	bootID  string
	machine runner.Machine // nil: apps run in process groups only
	looked  atomic.Bool    // a look at the machine was complete

	control, data storeurl.Store
	roster        *roster.Directory
	self          hostclaim.Member
	who           proof.Config // who this machine is to be; set before prove
	participant   *hostrelocate.Participant
	leases        hostrelocate.Leases
	homes         *homes
	gateway       *ingress.Ingress
	hints         *hint.Sender
	alerts        *alert.Board
	beat          heartbeat
	place         place
	claims        placement.Claims // behind the rows that the edges file names
	dirty         chan struct{}    // rows changed: publish the edges file
	unexplained   map[string]bool  // hosts that are alerted; the watch's own

	ingressListener, internalListener net.Listener
	ingressAddr, internalAddr         string // what peers dial

	mu     sync.Mutex
	hosts  map[string]*host
	loops  sync.WaitGroup
	life   context.Context // of the supervisors
	closed bool
	ready  error // why the box does no work yet; nil: it does
}

// Run is the agent until ctx ends. Its error is for config.Exit.
func Run(ctx context.Context, set Settings) error {
	if err := set.check(); err != nil {
		return err
	}
	a := &Agent{set: set, log: set.Logger(os.Stderr).With("box", set.Box, "region", set.Region), hosts: map[string]*host{},
		dirty: make(chan struct{}, 1), ready: errors.New("starting")}
	lock, err := a.claimDataDir(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := a.listen(); err != nil {
		return err
	}
	a.alerts = alert.New(a.log)
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(a.alerts.Metrics())
	adm, err := admin.Listen(admin.Config{Addr: set.Admin.Admin, DataDir: set.DataDir, Ready: a.readiness, Registry: metrics, Log: a.log})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return adm.Serve(ctx) })
	group.Go(func() error { return a.work(ctx) })
	return group.Wait()
}

// claimDataDir makes this process the data directory's one agent, and ends what
// a dead one left running before anything else.
func (a *Agent) claimDataDir(ctx context.Context) (*hostguard.DirLock, error) {
	if err := os.MkdirAll(filepath.Join(a.set.DataDir, "hosts"), 0o700); err != nil {
		return nil, err
	}
	lock, err := hostguard.LockDataDir(a.set.DataDir)
	if err != nil {
		return nil, err
	}
	if a.machine, err = a.openMachine(ctx); err == nil {
		err = a.killLeftovers(ctx)
	}
	if err == nil {
		a.bootID, err = bootID()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func (a *Agent) killLeftovers(ctx context.Context) error {
	entries, err := os.ReadDir(filepath.Join(a.set.DataDir, "hosts"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := runner.KillLeftover(ctx, a.machine, filepath.Join(a.set.DataDir, "hosts", e.Name())); err != nil {
			return fmt.Errorf("end what an earlier agent left of %s: %w", e.Name(), err)
		}
	}
	return nil
}

// listen binds the box's two listeners, so that a port in use is known before
// anything is done, and writes their addresses for scripts.
func (a *Agent) listen() (err error) {
	if a.ingressListener, err = net.Listen("tcp", a.set.Ingress); err != nil {
		return fmt.Errorf("ingress: %w", err)
	}
	if a.internalListener, err = net.Listen("tcp", a.set.Internal); err != nil {
		return fmt.Errorf("internal: %w", err)
	}
	if a.ingressAddr, err = serve.Advertised(a.ingressListener, a.set.Advertise); err != nil {
		return err
	}
	if a.internalAddr, err = serve.Advertised(a.internalListener, a.set.Advertise); err != nil {
		return err
	}
	for name, addr := range map[string]string{"ingress.addr": a.ingressAddr, "internal.addr": a.internalAddr} {
		if err := os.WriteFile(filepath.Join(a.set.DataDir, name), []byte(addr+"\n"), 0o644); err != nil {
			return err
		}
	}
	a.log.Info("listening", "ingress", a.ingressAddr, "internal", a.internalAddr)
	return nil
}

// work proves who the box is, and then is that box.
func (a *Agent) work(ctx context.Context) error {
	if err := a.openStores(ctx); err != nil {
		return err
	}
	if err := a.prove(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return a.serve(ctx)
}

// openStores opens the control store and what it takes to believe it. A store
// that accepts two conditional writes is refused before anything is written.
func (a *Agent) openStores(ctx context.Context) (err error) {
	if a.secret, err = boxauth.LoadSecret(a.set.SecretFile.SecretFile, a.log); err != nil {
		return err
	}
	name, err := storeurl.Name(a.set.Control)
	if err != nil {
		return err
	}
	if a.control, err = storeurl.Open(ctx, a.set.Control); err != nil {
		return err
	}
	if err := storetest.Guard(ctx, a.control); err != nil {
		return fmt.Errorf("control store %s: %w", name, err)
	}
	a.roster = roster.Open(a.control, a.set.RosterKey.PublicKey, name)
	return nil
}

// serve runs the box's loops until ctx ends, answers the requests that it took,
// and then ends every session in order before it returns.
func (a *Agent) serve(ctx context.Context) error {
	a.participant = &hostrelocate.Participant{Control: a.control, Self: a.self, Runtime: runtime{a}, Changed: a.wrote}
	a.homes = newHomes(a)
	a.hints = hint.NewSender(hint.Sender{Secret: a.secret, Peers: a.homes.peers, Log: a.log})
	a.claims.Box = a.self.Box
	a.beat.start(time.Now())
	if err := errors.Join(a.makeGateway(), a.recallJoining()); err != nil {
		return err
	}
	supervisors, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	a.mu.Lock()
	a.life, a.ready = supervisors, nil
	a.mu.Unlock()
	a.recall()

	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range []func(context.Context) error{
		a.homes.run, a.publishEdges, a.watch, a.stand, a.heartbeats, a.serveInternal, a.sweepParked, a.sendHints,
	} {
		group.Go(func() error { return loop(ctx) })
	}
	answered := make(chan struct{})
	group.Go(func() error {
		defer close(answered)
		return a.serveIngress(ctx)
	})
	group.Go(func() error {
		<-answered
		a.close(stop)
		return nil
	})
	return group.Wait()
}

// sendHints sends hints until ctx ends, and then one more: the workers are to
// ask the cloud about this box now, which may be ending with its machine.
func (a *Agent) sendHints(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		a.hints.Send(hint.Outgoing{Hint: hint.Hint{Box: a.self.Box}, To: []string{}})
		stop()
	})()
	return a.hints.Run(sending)
}

// close ends every supervisor, which ends its session in order.
func (a *Agent) close(stop context.CancelFunc) {
	a.mu.Lock()
	a.closed, a.ready = true, errors.New("stopping")
	a.mu.Unlock()
	stop()
	a.loops.Wait()
}

func (a *Agent) readiness() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ready
}

func (a *Agent) notReady(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ready = why
}

// errClosed: the agent is ending and takes no new host.
var errClosed = errors.New("the agent is ending")

// supervisor is the one that looks after a host, made at the first call. One that
// is there looks now.
func (a *Agent) supervisor(name string) (*host, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if h, ok := a.hosts[name]; ok {
		h.poke()
		return h, nil
	}
	if a.closed {
		return nil, errClosed
	}
	guard, err := hostguard.Open(a.set.DataDir, name, hostguard.Identity{Box: a.self.Box, Enrollment: a.self.Enrollment, BootID: a.bootID})
	if err != nil {
		return nil, err
	}
	h := &host{agent: a, name: name, log: a.log.With("host", name), guard: guard, wake: make(chan struct{}, 1)}
	if err := h.newExecution(); err != nil {
		return nil, err
	}
	a.hosts[name] = h
	a.loops.Go(func() { h.loop(a.life) })
	return h, nil
}

// rows lists the supervisors.
func (a *Agent) rows() []*host {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]*host, 0, len(a.hosts))
	for _, h := range a.hosts {
		list = append(list, h)
	}
	return list
}

// supervised is the supervisor that a host has, by its own name alone.
func (a *Agent) supervised(name string) (*host, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h, ok := a.hosts[name]
	return h, ok
}

// row is the supervisor of a host that this box has, by its name or an alias.
func (a *Agent) row(name string) (*host, bool) {
	if h, ok := a.supervised(name); ok {
		return h, true
	}
	for _, h := range a.rows() {
		if s := h.shown.Load(); s != nil && contains(s.record.Aliases, name) {
			return h, true
		}
	}
	return nil, false
}

// rowsChanged makes the edges file be published, and wakes held requests.
func (a *Agent) rowsChanged() {
	select {
	case a.dirty <- struct{}{}:
	default:
	}
	a.homes.wake()
}
