package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/awscloud/imds"
	"github.com/carlosframework/regionha/internal/admin"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/proof"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/internal/serve"
	"github.com/carlosframework/regionha/objstore/storetest"
	"github.com/carlosframework/regionha/objstore/storeurl"
	"github.com/carlosframework/regionha/roster"
)

// reachWithin bounds a try to connect to a box.
const reachWithin = 2 * time.Second

// NewCloud opens the cloud that the settings name.
type NewCloud func(ctx context.Context, set Settings) (Cloud, error)

// process is a worker as a process: a Worker with its listeners.
type process struct {
	set      Settings
	log      *slog.Logger
	alerts   *alert.Board
	metrics  *prometheus.Registry
	listener net.Listener // for hints

	waits  atomic.Pointer[string] // what is waited for before there is a worker
	worker atomic.Pointer[Worker]
}

// Run is the worker until ctx ends. Its error is for config.Exit.
func Run(ctx context.Context, set Settings, newCloud NewCloud) error {
	if err := set.check(); err != nil {
		return err
	}
	log := set.Logger(os.Stderr).With("box", set.Box, "region", set.Region)
	p := &process{set: set, log: log, alerts: alert.New(log), metrics: prometheus.NewRegistry()}
	p.metrics.MustRegister(p.alerts.Metrics())
	p.waitsFor("starting")
	var err error
	if p.listener, err = net.Listen("tcp", set.Internal); err != nil {
		return fmt.Errorf("internal: %w", err)
	}
	adm, err := admin.Listen(admin.Config{Addr: set.Admin.Admin, Ready: p.ready, Registry: p.metrics, Log: log})
	if err != nil {
		return errors.Join(err, p.listener.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return adm.Serve(ctx) })
	group.Go(func() error {
		err := p.work(ctx, newCloud)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil
		}
		return err
	})
	return group.Wait()
}

// work proves who this machine is, and then drives the region.
func (p *process) work(ctx context.Context, newCloud NewCloud) error {
	defer p.listener.Close()
	secret, err := boxauth.LoadSecret(p.set.SecretFile.SecretFile, p.log)
	if err != nil {
		return err
	}
	c, err := p.config(ctx, newCloud)
	if err != nil {
		return err
	}
	sender := hint.NewSender(hint.Sender{Secret: secret, Log: p.log,
		Peers: func(refs []string) []string { return p.worker.Load().Peers(refs) },
		Bump: func(ctx context.Context, changes ...regionfile.Change) error {
			return regionfile.Tell(ctx, c.Control, c.Region, changes...)
		}})
	c.SecretFP, c.Send = secret.Fingerprint(), sender.Send
	w, err := New(c)
	if err != nil {
		return err
	}
	p.worker.Store(w)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.Drive(ctx) })
	group.Go(func() error { return sender.Run(ctx) })
	group.Go(func() error { return p.serve(ctx, secret, w) })
	return group.Wait()
}

// config opens the stores and the cloud, and waits until this machine is the
// box.
func (p *process) config(ctx context.Context, newCloud NewCloud) (Config, error) {
	c := Config{Region: p.set.Region, Pace: p.set.Pace, Log: p.log, Alerts: p.alerts, Metrics: p.metrics, Reach: reach}
	name, err := storeurl.Name(p.set.Control)
	if err != nil {
		return c, fmt.Errorf("%w: control: %w", config.ErrUsage, err)
	}
	if c.Internal, err = serve.Advertised(p.listener, p.set.Advertise); err != nil {
		return c, err
	}
	if c.Certs, err = p.set.Certs(p.log); err != nil {
		return c, err
	}
	if c.Control, err = storeurl.Open(ctx, p.set.Control); err != nil {
		return c, err
	}
	if err := storetest.Guard(ctx, c.Control); err != nil {
		return c, fmt.Errorf("control store %s: %w", name, err)
	}
	if c.Cloud, err = newCloud(ctx, p.set); err != nil {
		return c, err
	}
	c.Roster = roster.Open(c.Control, p.set.RosterKey.PublicKey, name)
	self, region, err := proof.Wait(ctx, proof.Config{
		Control: c.Control, Roster: c.Roster, Machine: imds.New(""), Box: p.set.Box, Region: p.set.Region, Log: p.log, Waiting: p.waitsFor,
	})
	if err != nil {
		return c, err
	}
	c.Self = self
	c.Data, err = storeurl.Open(ctx, region.Data)
	return c, err
}

// serve takes hints.
func (p *process) serve(ctx context.Context, secret boxauth.Secret, w *Worker) error {
	handler := hint.Handler(&boxauth.Verifier{Secret: secret, Log: p.log}, w.Hint)
	s := &http.Server{Handler: handler, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	return serve.HTTP(ctx, p.listener, s, time.Second)
}

func reach(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{Timeout: reachWithin}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (p *process) waitsFor(why string) { p.waits.Store(&why) }

func (p *process) ready() error {
	if w := p.worker.Load(); w != nil {
		return w.Ready()
	}
	return errors.New(*p.waits.Load())
}
