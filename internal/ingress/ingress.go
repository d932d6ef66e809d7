package ingress

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"time"
)

// Config tells an Ingress what it may know. Its functions are called for every
// request, by many goroutines, answer from memory and do not wait.
type Config struct {
	Self  string                          // this box's reference
	Local func(host string) (Local, bool) // what this box has for a host (or alias); false: no row
	Home  func(host string) (Home, bool)  // where the home map says it is; false: it knows no such host

	// Changed is a channel that is closed when an answer of Local or Home has
	// changed since the call. nil: held requests only ask again now and then.
	Changed func() <-chan struct{}

	// Look makes a host's claim and the edges files be looked at, now; what is
	// found is told by Changed. It is called only while requests for the host
	// are held, at most once a second for each host: one that sleeps is to
	// wake. nil: nothing is looked at.
	Look func(host string)

	// Unreachable is told, at most once a second for each box, that it did not
	// accept a connection: a hint to describe it now. It does not wait. nil:
	// nobody is told.
	Unreachable func(box string)

	PeerToken string // the mark that peers share, a secret; empty: nobody's forwarding headers are believed

	HoldFor     time.Duration // how long a request is held; 10s if zero
	MaxHeld     int           // held requests in all; 4000 if zero
	MaxHeldHost int           // held requests of one host; 1000 if zero

	MaxBody       int64 // bytes of one request's body kept for sending again; 1 MiB if zero
	MaxBodies     int64 // bytes of all such bodies; 64 MiB if zero
	MaxBodiesHost int64 // bytes of those of one host; 16 MiB if zero

	// Requests under way, upgraded connections among them. With its buffers
	// each takes about 100 KiB here while its body streams, so that all of
	// them fit in 1 GiB.
	MaxRequests     int // in all; 8192 if zero
	MaxRequestsHost int // of one host; 2048 if zero, a quarter, so that a slow one leaves room

	// MaxConns bounds the connections that Serve has open, those without a
	// request among them; 16384 if zero, twice the requests.
	MaxConns int

	// Stall is how long a client may take to send the next bytes of a body
	// that is read, or to receive any that are written; 1m if zero: no TCP
	// that still works takes longer. A stream in which nobody sends is not
	// bounded.
	Stall time.Duration

	// Drain is how long requests may still take when Serve ends; 10s if zero.
	Drain time.Duration

	Log *slog.Logger
}

// Local is what this box has for a host.
type Local struct {
	Host  string   // its own name, where it was asked for by an alias; "": the name asked for
	Ready bool     // its row is ready; false: held in an operation
	Addr  net.Addr // where its app answers, TCP or unix; nil while it does not
	Stamp uint64   // the installation's; of a held row, the one it is held for

	// WriteGate may refuse a request that may write, before it reaches the
	// app; its error is logged. nil: nothing is refused.
	WriteGate func(*http.Request) error
}

// Home is where the home map says a host is served.
type Home struct {
	Box     string // the box's reference
	Addr    string // host:port of its ingress
	Stamp   uint64 // the installation's; 0: published without one
	Transit bool   // it has no home now, but it may have: it had one, or no map was read yet
}

// An Ingress is an http.Handler for every host. Close it when no request is
// served any more.
type Ingress struct {
	cfg    Config
	seen   stamps
	hints  pace
	looks  pace
	warns  pace
	shares shares

	flights flights
	open    requests
	ending  chan struct{} // closed when Serve ends

	apps, peers     *http.Transport
	toApps, toPeers *httputil.ReverseProxy
}

// New checks cfg and makes an Ingress.
func New(cfg Config) (*Ingress, error) {
	switch {
	case cfg.Self == "":
		return nil, errors.New("ingress: no box reference of its own")
	case cfg.Local == nil || cfg.Home == nil:
		return nil, errors.New("ingress: Local and Home must be set")
	case min(cfg.MaxHeld, cfg.MaxHeldHost, cfg.MaxRequests, cfg.MaxRequestsHost, cfg.MaxConns) < 0,
		min(cfg.MaxBody, cfg.MaxBodies, cfg.MaxBodiesHost) < 0, min(cfg.HoldFor, cfg.Stall, cfg.Drain) < 0:
		return nil, errors.New("ingress: a bound is negative")
	}
	cfg = cfg.withDefaults()
	g := &Ingress{cfg: cfg, ending: make(chan struct{}),
		apps: newTransport(dialApp, appIdle, cfg.HoldFor), peers: newTransport(dialPeer, peerIdle, cfg.HoldFor)}
	g.toApps, g.toPeers = newProxy(g.apps, cfg.Log), newProxy(g.peers, cfg.Log)
	g.shares.limits = limits{requests: cfg.MaxRequests, requestsHost: cfg.MaxRequestsHost,
		held: cfg.MaxHeld, heldHost: cfg.MaxHeldHost, kept: cfg.MaxBodies, keptHost: cfg.MaxBodiesHost}
	return g, nil
}

func (c Config) withDefaults() Config {
	orElse(&c.HoldFor, 10*time.Second)
	orElse(&c.MaxHeld, 4000)
	orElse(&c.MaxHeldHost, 1000)
	orElse(&c.MaxBody, 1<<20)
	orElse(&c.MaxBodies, 64<<20)
	orElse(&c.MaxBodiesHost, 16<<20)
	orElse(&c.MaxRequests, 8192)
	orElse(&c.MaxRequestsHost, 2048)
	orElse(&c.MaxConns, 16384)
	orElse(&c.Stall, time.Minute)
	orElse(&c.Drain, 10*time.Second)
	orElse(&c.Log, slog.Default())
	if c.Changed == nil {
		c.Changed = func() <-chan struct{} { return nil }
	}
	if c.Look == nil {
		c.Look = func(string) {}
	}
	if c.Unreachable == nil {
		c.Unreachable = func(string) {}
	}
	return c
}

func orElse[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// Held is how many requests are held now.
func (g *Ingress) Held() int { return g.shares.now().held }

// Close closes idle connections to apps and peers.
func (g *Ingress) Close() {
	g.apps.CloseIdleConnections()
	g.peers.CloseIdleConnections()
}
