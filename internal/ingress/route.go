package ingress

import (
	"cmp"
	"encoding/hex"
	"net"
	"net/http"
	"sync"
)

type verdict int

const (
	unknown  verdict = iota // no box has or had it
	transit                 // nowhere now
	starting                // here, once its app is up
	forward
)

// A route is where a request goes now.
type route struct {
	verdict verdict
	box     string // this box's own reference: to the app
	target  string // the URL's host: an app's address, or a peer's
	stamp   uint64
	gate    func(*http.Request) error
	host    string  // to the app: the host's own name
	flight  *flight // to the app, once it is counted
}

// depart decides where the request goes now. What goes to this box's own app is
// counted before anyone who waits for that to be quiet looks.
func (q *request) depart() route {
	q.flights.deciding.RLock()
	defer q.flights.deciding.RUnlock()
	to := q.route()
	if to.verdict == forward && to.box == q.cfg.Self {
		to.flight = q.flights.begin(to.host)
	}
	return to
}

// route decides where the request goes now. A marked one goes only to this
// box's own app.
func (q *request) route() route {
	local, mine := q.cfg.Local(q.host)
	home, known := q.cfg.Home(q.host)
	own := cmp.Or(local.Host, q.host)
	elsewhere := known && !home.Transit && home.Box != q.cfg.Self
	if mine && elsewhere && home.Stamp > local.Stamp {
		q.seen.note(own, home.Stamp, q.stampHere)
	}
	serves := mine && local.Ready && !q.seen.above(own, local.Stamp)
	switch {
	case serves && local.Addr != nil:
		return route{verdict: forward, box: q.cfg.Self, target: authority(local.Addr), stamp: local.Stamp, gate: local.WriteGate,
			host: own}
	case serves:
		return route{verdict: starting}
	case q.marked: // it is not passed on
		return route{verdict: transit}
	case elsewhere && home.Addr != "" && (!mine || home.Stamp >= local.Stamp):
		return route{verdict: forward, box: home.Box, target: home.Addr, stamp: home.Stamp}
	case mine || known: // its row is held in an operation, or it has no home
		return route{verdict: transit}
	}
	return route{verdict: unknown}
}

// superseded reports whether the host's home is now a newer one than to.
func (q *request) superseded(to route) bool {
	now := q.route()
	return now.verdict == forward && now.box != to.box && now.stamp > to.stamp
}

// stampHere is the stamp of the host's row here; false: there is no row.
func (g *Ingress) stampHere(host string) (uint64, bool) {
	local, ok := g.cfg.Local(host)
	return local.Stamp, ok
}

// fewNames is how many hosts are remembered before those without use are looked
// for.
const fewNames = 1024

// stamps remembers, of hosts that have a row here, a higher stamp that was seen
// elsewhere: the home map may forget a box's file before this box learns that
// its row is old. Those whose row is gone, or has the stamp, are forgotten.
type stamps struct {
	mu   sync.RWMutex
	high map[string]uint64 // by the host's own name
	most int               // names at which it is tidied again
}

func (s *stamps) note(host string, stamp uint64, here func(host string) (uint64, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.high == nil {
		s.high, s.most = map[string]uint64{}, fewNames
	}
	if stamp > s.high[host] {
		s.high[host] = stamp
	}
	if len(s.high) > s.most {
		s.tidy(here)
		s.most = max(fewNames, 2*len(s.high))
	}
}

// tidy forgets what stops nothing any more. The caller holds the lock.
func (s *stamps) tidy(here func(host string) (uint64, bool)) {
	for host, stamp := range s.high {
		if own, ok := here(host); !ok || own >= stamp {
			delete(s.high, host)
		}
	}
}

// above reports whether a stamp higher than own was seen.
func (s *stamps) above(host string, own uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.high[host] > own
}

// authority names an app's address in a URL. A socket's path is not one, so it
// is written in hex; dialApp reads it back.
func authority(addr net.Addr) string {
	if addr.Network() == "unix" {
		return hex.EncodeToString([]byte(addr.String())) + socketSuffix
	}
	return addr.String()
}

const socketSuffix = ".socket"
