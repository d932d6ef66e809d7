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
	lookEvery   = time.Second            // and has its claim looked at
)

var (
	errHeldLong = errors.New("it was held to its bound")
	errHeldMany = errors.New("too many requests are held")
	errNoRoom   = errors.New("no room to keep its body")
)

// A holder counts the held requests.
type holder struct {
	max, maxHost int
	looks        pace

	mu    sync.Mutex
	all   int
	hosts map[string]int // those with held requests
}

func (h *holder) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}

func (h *holder) enter(host string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all >= h.max || h.hosts[host] >= h.maxHost {
		return errHeldMany
	}
	if h.hosts == nil {
		h.hosts = map[string]int{}
	}
	h.all++
	h.hosts[host]++
	return nil
}

func (h *holder) leave(host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all--
	h.hosts[host]--
	if h.hosts[host] == 0 {
		delete(h.hosts, host)
	}
}

// wait holds the request until it is worth asking again where its host is
// served: until something changed, or for about the time again. Its error says
// why the request is held no longer.
func (q *request) wait(changed <-chan struct{}, again time.Duration) error {
	if q.until.IsZero() {
		if err := q.held.enter(q.host); err != nil {
			return err
		}
		q.until = time.Now().Add(q.cfg.HoldFor)
		if err := q.fillBody(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithDeadline(q.r.Context(), q.until)
	defer cancel()
	if q.held.looks.may(q.host, time.Now()) {
		q.cfg.Look(q.host)
	}
	if pause(ctx, changed, again) {
		return nil
	}
	if q.r.Context().Err() != nil {
		dropped()
	}
	return errHeldLong
}

// letGo gives back the request's place among the held ones.
func (q *request) letGo() {
	if !q.until.IsZero() {
		q.held.leave(q.host)
	}
}

// fillBody reads a short body whole, because only then does the server notice
// that the client went away. A client that does not send what it announced is
// dropped at the bound.
func (q *request) fillBody() error {
	if q.r.ContentLength <= 0 || q.r.ContentLength > q.cfg.MaxBody {
		return nil
	}
	if err := q.readDeadline(q.until); err != nil {
		return err
	}
	if err := q.body.fill(); err != nil {
		dropped()
	}
	if !q.body.whole() {
		return errNoRoom
	}
	return q.readDeadline(time.Time{})
}

// readDeadline bounds reading from the client, where the server can.
func (q *request) readDeadline(t time.Time) error {
	err := http.NewResponseController(q.w).SetReadDeadline(t)
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// pause waits for a change, but no longer than about d; false if ctx ended.
func pause(ctx context.Context, changed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d - rand.N(d/4))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
		return true
	case <-timer.C:
		return true
	}
}

// A pace lets something be done at most once a second for each name.
type pace struct {
	mu   sync.Mutex
	last map[string]time.Time // those of the last second
}

func (p *pace) may(name string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, at := range p.last {
		if now.Sub(at) >= lookEvery {
			delete(p.last, n)
		}
	}
	if _, ok := p.last[name]; ok {
		return false
	}
	if p.last == nil {
		p.last = map[string]time.Time{}
	}
	p.last[name] = now
	return true
}
