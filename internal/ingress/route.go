package ingress

import (
	"cmp"
	"encoding/hex"
	"net"
	"net/http"
	"strings"
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
	elsewhere := known && !home.Transit && home.Box != q.cfg.Self
	if mine && elsewhere {
		q.seen.note(q.host, home.Stamp)
	}
	serves := mine && local.Ready && !q.seen.above(q.host, local.Stamp)
	switch {
	case serves && local.Addr != nil:
		return route{verdict: forward, box: q.cfg.Self, target: authority(local.Addr), stamp: local.Stamp, gate: local.WriteGate,
			host: cmp.Or(local.Host, q.host)}
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

// stamps remembers, of hosts that have a row here, a higher stamp that was seen
// elsewhere: the home map may forget a box's file before this box learns that
// its row is old. It holds no more hosts than had a row here.
type stamps struct {
	mu   sync.Mutex
	high map[string]uint64
}

func (s *stamps) note(host string, stamp uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.high == nil {
		s.high = map[string]uint64{}
	}
	if stamp > s.high[host] {
		s.high[host] = stamp
	}
}

// above reports whether a stamp higher than own was seen.
func (s *stamps) above(host string, own uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// hostOf is the host that a Host header names: no port, lower case, no final
// dot. false: it is not a DNS name or an address.
func hostOf(header string) (string, bool) {
	host := header
	if h, _, err := net.SplitHostPort(header); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" || len(host) > 253 {
		return "", false
	}
	for _, c := range host {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-._", c) {
			return "", false
		}
	}
	return host, true
}
