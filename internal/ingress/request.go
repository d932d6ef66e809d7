package ingress

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// mostSent is how often a request may reach a backend: once at its home, and
// once more where that failed. One that ends its app is not to end it again and
// again.
const mostSent = 2

// A request is one request on its way to an answer.
type request struct {
	*Ingress
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context // the client's, until the request is cut
	cut    context.CancelCauseFunc
	host   string
	marked bool // by another ingress: not passed on, not held
	share  *share
	body   *replay
	until  time.Time // when it is held no longer; zero until it is held
	sent   int       // how often it reached a backend

	length atomic.Int32 // the answer's, a length
	wrote  atomic.Int64 // when a part of the answer was last sent to the client, Unix nanoseconds
}

// ServeHTTP serves one request for whatever host it names.
func (g *Ingress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer g.busy(r)()
	q := &request{Ingress: g, w: w, r: r, marked: len(r.Header.Values(hopHeader)) > 0}
	host, ok := hostOf(r.Host)
	switch {
	case !ok:
		q.page(badHost)
		return
	case r.Method == http.MethodConnect:
		q.page(noTunnel)
		return
	}
	q.host = host
	if q.share = g.shares.enter(g.ownName(host)); q.share == nil {
		q.page(busy)
		return
	}
	defer q.share.leave()
	q.body = &replay{body: r.Body, max: g.cfg.MaxBody, share: q.share, stalls: q.stalls, stall: g.cfg.Stall}
	defer q.body.release()
	defer q.letGo()
	q.ctx, q.cut = context.WithCancelCause(r.Context())
	defer q.cut(nil)
	g.open.add(q)
	defer g.open.remove(q)
	q.serve()
}

// ownName is the name that the host's requests are counted under, whatever alias
// it is asked for by.
func (g *Ingress) ownName(host string) string {
	local, _ := g.cfg.Local(host)
	return cmp.Or(local.Host, host)
}

// page answers with the page. What the server still reads of the client's body,
// so that the connection can be used again, it reads within a bound.
func (q *request) page(p page) {
	if q.r.ContentLength != 0 {
		q.stalls(time.Now().Add(q.cfg.Stall))
	}
	writePage(q.w, q.r, p)
}

// early prepares the client's connection for an app's answer that begins before
// the client's body ended. The server would else read, and lose, up to 256 KiB of
// that first. It cannot use the connection again: it reads on at the end.
func (q *request) early() {
	if q.r.ContentLength == 0 || q.body.ended() {
		return
	}
	if http.NewResponseController(q.w).EnableFullDuplex() == nil {
		q.w.Header().Set("Connection", "close")
		q.stalls(time.Now().Add(q.cfg.Stall))
	}
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
			q.page(unknownHost)
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
			q.warn("request is not held any longer", err)
			q.unserved()
			return
		}
	}
}

// unserved says that no app answered the request: to a client, or to the ingress
// that passed it on, which holds it.
func (q *request) unserved() {
	if q.marked {
		q.w.Header().Set(unservedHeader, unseen)
	}
	if q.marked && q.sent > 0 {
		q.w.Header().Set(unservedHeader, seen)
	}
	q.page(inTransit)
}

// warn logs at most once a second for each host.
func (q *request) warn(what string, err error) {
	if q.warns.may(q.host, time.Now()) {
		q.cfg.Log.Warn(what, "host", q.host, "err", err)
	}
}

// dropped ends a request whose client went away. An empty answer would say that
// all went well to a client that is there after all.
func dropped() { panic(http.ErrAbortHandler) }

// forward sends the request there and reports whether it is to be tried again:
// nothing went to the client, and sending it twice can do no harm.
func (q *request) forward(to route) (again bool) {
	if to.flight != nil {
		defer q.flights.end(to.host, to.flight, q.stampHere)
	}
	if to.gate != nil && mayWrite(q.r) {
		if err := to.gate(q.r); err != nil {
			q.warn("write is refused", err)
			q.page(writesPaused)
			return false
		}
	}
	err := q.send(to)
	if err == nil {
		return false
	}
	if q.ctx.Err() != nil && !errors.Is(err, errClient) {
		dropped()
	}
	q.cfg.Log.Debug("backend failed", "host", q.host, "box", to.box, "err", err)
	q.hint(to, err)
	if q.mayRepeat(err) {
		return true
	}
	q.failed(err)
	return false
}

// hint tells of a box that took no connection, or ended it without an answer.
func (q *request) hint(to route, err error) {
	gone := errors.Is(err, errUnreached) || errors.Is(err, errSilent)
	if gone && to.box != q.cfg.Self && q.hints.may(to.box, time.Now()) {
		q.cfg.Unreachable(to.box)
	}
}

// mayRepeat reports whether a request that failed with err may be sent again.
func (q *request) mayRepeat(err error) bool {
	switch {
	case errors.Is(err, errClient), errors.Is(err, errRequest), errors.Is(err, errAnswered), !q.body.whole():
		return false
	case errors.Is(err, errUnreached), errors.Is(err, errUnserved):
		return true
	}
	return q.harmless() && q.sent < mostSent
}

// lastWord is how long a home that was superseded may still answer a request, or
// refuse it unseen, that cannot be sent again: one that is drained does so
// within the time that a drain waits for it.
const lastWord = 5 * time.Second

// harmless reports whether the request may reach an app twice.
func (q *request) harmless() bool {
	return !mayWrite(q.r) || q.r.Header.Get("Idempotency-Key") != ""
}

// failed answers a request that is not sent again.
func (q *request) failed(err error) {
	what := brokenOff
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		what = slowBody
	case errors.Is(err, errClient), errors.Is(err, errRequest):
		what = badRequest
	case errors.Is(err, errUnreached), errors.Is(err, errUnserved): // but it is not whole any more
		q.unserved()
		return
	}
	if what.status < http.StatusInternalServerError { // nothing more is read of it
		q.w.Header().Set("Connection", "close")
		q.stalls(time.Now())
	}
	writePage(q.w, q.r, what)
}

// mayWrite reports whether the request's method is not a safe one.
func mayWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return true
}
