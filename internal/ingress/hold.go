package ingress

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	askAgain    = 200 * time.Millisecond // a held request asks again where its host is, should it not be told
	failedAgain = time.Second            // and tries a backend again that failed
	onceIn      = time.Second            // and has its claim looked at; a box is hinted as often
)

var (
	errHeldLong = errors.New("it was held to its bound")
	errHeldMany = errors.New("too many requests are held")
	errNoRoom   = errors.New("no room to keep its body")
	errEnding   = errors.New("this box is ending")
)

// wait holds the request until it is worth asking again where its host is
// served: until something changed, or for about the time again. Its error says
// why the request is held no longer.
func (q *request) wait(changed <-chan struct{}, again time.Duration) error {
	if q.until.IsZero() {
		if !q.share.hold() {
			return errHeldMany
		}
		q.until = time.Now().Add(q.cfg.HoldFor)
		if err := q.fillBody(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithDeadline(q.ctx, q.until)
	defer cancel()
	if q.looks.may(q.host, time.Now()) {
		q.cfg.Look(q.host)
	}
	select {
	case <-q.ending:
		return errEnding
	default:
	}
	if pause(ctx, changed, q.ending, again) {
		return nil
	}
	if q.ctx.Err() != nil {
		dropped()
	}
	return errHeldLong
}

// letGo gives back the request's place among the held ones.
func (q *request) letGo() {
	if !q.until.IsZero() {
		q.share.letGo()
	}
}

// fillBody reads a short body whole, because only then does the server notice
// that the client went away. A client that does not send what it announced is
// dropped at the bound.
func (q *request) fillBody() error {
	if q.r.ContentLength <= 0 || q.r.ContentLength > q.cfg.MaxBody {
		return nil
	}
	if err := q.body.fill(q.until); err != nil {
		dropped()
	}
	if !q.body.whole() {
		return errNoRoom
	}
	return nil
}

// stalls sets the deadline of reading from the client, where the server can.
func (q *request) stalls(t time.Time) {
	_ = http.NewResponseController(q.w).SetReadDeadline(t)
}

// pause waits for a change, or the end of the box, but no longer than about d;
// false if ctx ended.
func pause(ctx context.Context, changed, ending <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d - rand.N(d/4))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-ending:
	case <-timer.C:
	}
	return true
}

// mostNames bounds the names that a pace remembers at a time.
const mostNames = 4096

// A pace lets something be done at most once a second for each name, and not at
// all for names beyond mostNames: strangers choose them.
type pace struct {
	mu     sync.Mutex
	last   map[string]time.Time
	pruned time.Time // when those older than a second were last forgotten
}

func (p *pace) may(name string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prune(now)
	if at, ok := p.last[name]; ok && now.Sub(at) < onceIn {
		return false
	}
	if len(p.last) >= mostNames {
		return false
	}
	p.last[name] = now
	return true
}

// prune goes through all names once a second only. The caller holds mu.
func (p *pace) prune(now time.Time) {
	if p.last == nil {
		p.last = map[string]time.Time{}
	}
	if now.Sub(p.pruned) < onceIn {
		return
	}
	p.pruned = now
	for n, at := range p.last {
		if now.Sub(at) >= onceIn {
			delete(p.last, n)
		}
	}
}
