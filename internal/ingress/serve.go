package ingress

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/carlosframework/regionha/internal/serve"
)

const (
	// headerWithin is how long a client may take to send a request's header,
	// and idleWithin how long a connection may stay without a request.
	headerWithin = 10 * time.Second
	idleWithin   = 2 * time.Minute
	maxHeader    = 64 << 10

	drainEvery = 50 * time.Millisecond // how often the end of Serve is looked after
	graceful   = time.Second           // what a connection without a request has left then
)

// Serve takes requests from l until ctx ends, and answers those that it took:
// they have Drain for it. Answers that do not end by themselves (upgraded
// connections, event streams, and those of no announced length in which nothing
// was sent for a second) are cut off as soon as they are all that is left. Held
// requests are answered at once that their host is on its way. Serve is called
// once.
func (g *Ingress) Serve(ctx context.Context, l net.Listener) error {
	defer g.Close()
	clients := &clients{Listener: l, max: g.cfg.MaxConns, stall: g.cfg.Stall}
	served := make(chan struct{})
	var ending sync.WaitGroup
	ending.Go(func() {
		select {
		case <-served:
			return
		case <-ctx.Done():
			close(g.ending)
		}
		g.drain(clients, served)
	})
	err := serve.HTTP(ctx, clients, &http.Server{
		Handler:           g,
		ReadHeaderTimeout: headerWithin,
		IdleTimeout:       idleWithin,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       withClient,
		ErrorLog:          slog.NewLogLogger(g.cfg.Log.Handler(), slog.LevelDebug),
	}, g.cfg.Drain)
	g.open.cut(func(*request) bool { return true }) // the server forgets upgraded ones
	close(served)
	ending.Wait()
	g.open.wait()
	return err
}

// drain helps the server to its end: it waits neither for what does not end nor
// for clients that do not ask anything.
func (g *Ingress) drain(c *clients, served <-chan struct{}) {
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for began := time.Now(); ; {
		now := time.Now()
		if !g.open.any(func(q *request) bool { return !q.endless(now) }) {
			g.open.cut(func(q *request) bool { return q.endless(now) })
		}
		if now.Sub(began) >= graceful {
			c.shed(now.Add(-graceful))
		}
		select {
		case <-served:
			return
		case <-tick.C:
		}
	}
}

// endless reports whether the request's answer does not end by itself, as far as
// is known.
func (q *request) endless(now time.Time) bool {
	switch length(q.length.Load()) {
	case endless:
		return true
	case mayEnd:
		return now.Sub(time.Unix(0, q.wrote.Load())) >= endlessAfter
	}
	return false
}

// requests are those under way.
type requests struct {
	mu   sync.Mutex
	list map[*request]struct{}
	done sync.WaitGroup
}

func (s *requests) add(q *request) {
	s.done.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		s.list = map[*request]struct{}{}
	}
	s.list[q] = struct{}{}
}

func (s *requests) remove(q *request) {
	s.mu.Lock()
	delete(s.list, q)
	s.mu.Unlock()
	s.done.Done()
}

// wait waits until none is under way.
func (s *requests) wait() { s.done.Wait() }

func (s *requests) any(is func(*request) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for q := range s.list {
		if is(q) {
			return true
		}
	}
	return false
}

// cut ends those that are, even where their client neither sends nor receives.
func (s *requests) cut(is func(*request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for q := range s.list {
		if is(q) {
			q.cut(errEnding)
			client := http.NewResponseController(q.w)
			_ = client.SetReadDeadline(time.Now())
			_ = client.SetWriteDeadline(time.Now())
		}
	}
}
