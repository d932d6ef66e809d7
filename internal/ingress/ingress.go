package ingress

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
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
	MaxBody     int64         // bytes of one request's body kept for sending again; 1 MiB if zero
	MaxBodies   int64         // bytes of all such bodies; 64 MiB if zero

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
	cfg   Config
	held  holder
	seen  stamps
	hints pace
	bytes budget

	flights flights
	apps    *http.Transport
	peers   *http.Transport
}

// New checks cfg and makes an Ingress.
func New(cfg Config) (*Ingress, error) {
	switch {
	case cfg.Self == "":
		return nil, errors.New("ingress: no box reference of its own")
	case cfg.Local == nil || cfg.Home == nil:
		return nil, errors.New("ingress: Local and Home must be set")
	case cfg.HoldFor < 0 || cfg.MaxHeld < 0 || cfg.MaxHeldHost < 0 || cfg.MaxBody < 0 || cfg.MaxBodies < 0:
		return nil, errors.New("ingress: a bound is negative")
	}
	cfg = cfg.withDefaults()
	g := &Ingress{cfg: cfg, apps: newTransport(dialApp, appIdle), peers: newTransport(dialPeer, peerIdle)}
	g.held.max, g.held.maxHost = cfg.MaxHeld, cfg.MaxHeldHost
	g.bytes.max = cfg.MaxBodies
	return g, nil
}

func (c Config) withDefaults() Config {
	orElse(&c.HoldFor, 10*time.Second)
	orElse(&c.MaxHeld, 4000)
	orElse(&c.MaxHeldHost, 1000)
	orElse(&c.MaxBody, 1<<20)
	orElse(&c.MaxBodies, 64<<20)
	if c.Changed == nil {
		c.Changed = func() <-chan struct{} { return nil }
	}
	if c.Look == nil {
		c.Look = func(string) {}
	}
	if c.Unreachable == nil {
		c.Unreachable = func(string) {}
	}
	if c.Log == nil {
		c.Log = slog.Default()
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
func (g *Ingress) Held() int { return g.held.count() }

// Close closes idle connections to apps and peers.
func (g *Ingress) Close() {
	g.apps.CloseIdleConnections()
	g.peers.CloseIdleConnections()
}

// ServeHTTP serves one request for whatever host it names.
func (g *Ingress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, ok := hostOf(r.Host)
	if !ok {
		writePage(w, r, badHost)
		return
	}
	q := &request{Ingress: g, w: w, r: r, host: host, marked: len(r.Header.Values(hopHeader)) > 0}
	q.body = &replay{body: r.Body, max: g.cfg.MaxBody, bytes: &g.bytes}
	defer q.body.release()
	defer q.letGo()
	q.serve()
}

// A request is one request on its way to an answer.
type request struct {
	*Ingress
	w      http.ResponseWriter
	r      *http.Request
	host   string
	marked bool // by another ingress: not passed on, not held
	body   *replay
	until  time.Time // when it is held no longer; zero until it is held
}

// serve tries where the host is served now, and holds the request as long as
// that is nowhere.
func (q *request) serve() {
	for {
		changed := q.cfg.Changed() // before the question, so that no change is missed
		again := askAgain
		to := q.depart()
		switch to.verdict {
		case unknown:
			writePage(q.w, q.r, unknownHost)
			return
		case forward:
			if !q.forward(to) {
				return
			}
			again = failedAgain
		}
		if q.marked && to.verdict != starting {
			q.unserved()
			return
		}
		if err := q.wait(changed, again); err != nil {
			q.cfg.Log.Warn("request is not held any longer", "host", q.host, "err", err)
			q.unserved()
			return
		}
	}
}

// unserved says that no app saw the request: to a client, or to the ingress that
// passed it on, which holds it.
func (q *request) unserved() {
	if q.marked {
		q.w.Header().Set(unservedHeader, "1")
	}
	writePage(q.w, q.r, inTransit)
}

// dropped ends a request whose client went away. An empty answer would say that
// all went well to a client that is there after all.
func dropped() { panic(http.ErrAbortHandler) }

// forward sends the request there and reports whether it is to be tried again:
// nothing went to the client, and sending it twice can do no harm.
func (q *request) forward(to route) (again bool) {
	if to.flight != nil {
		defer q.flights.end(to.host, to.flight)
	}
	if to.gate != nil && mayWrite(q.r) {
		if err := to.gate(q.r); err != nil {
			q.cfg.Log.Warn("write is refused", "host", q.host, "err", err)
			writePage(q.w, q.r, writesPaused)
			return false
		}
	}
	err := q.send(to)
	if err == nil {
		return false
	}
	if q.r.Context().Err() != nil {
		dropped()
	}
	q.cfg.Log.Debug("backend failed", "host", q.host, "box", to.box, "err", err)
	if errors.Is(err, errUnreached) && to.box != q.cfg.Self && q.hints.may(to.box, time.Now()) {
		q.cfg.Unreachable(to.box)
	}
	if !q.mayRepeat(err) {
		writePage(q.w, q.r, brokenOff)
		return false
	}
	return true
}

// mayRepeat reports whether a request that failed with err may be sent again.
func (q *request) mayRepeat(err error) bool {
	harmless := errors.Is(err, errUnreached) || errors.Is(err, errUnserved) ||
		!mayWrite(q.r) || q.r.Header.Get("Idempotency-Key") != ""
	return harmless && q.body.whole()
}

// mayWrite reports whether the request's method is not a safe one.
func mayWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return true
}
