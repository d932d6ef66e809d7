package ingress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// clients is a listener whose connections are bounded in number, and each in how
// long its client may refuse to receive.
type clients struct {
	net.Listener
	max   int
	stall time.Duration

	mu   sync.Mutex
	open map[*client]struct{}
	shut time.Time // when idle ones were last shed for want of room
}

// Accept closes what is over the bound. Clients that have asked nothing for a
// second then lose their place.
func (l *clients) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if own := l.admit(c); own != nil {
			return own, nil
		}
		c.Close()
		l.makeRoom(time.Now())
	}
}

func (l *clients) admit(c net.Conn) *client {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.max {
		return nil
	}
	if l.open == nil {
		l.open = map[*client]struct{}{}
	}
	own := &client{Conn: c, of: l, since: time.Now()}
	l.open[own] = struct{}{}
	return own
}

func (l *clients) makeRoom(now time.Time) {
	l.mu.Lock()
	again := now.Sub(l.shut) < graceful
	if !again {
		l.shut = now
	}
	l.mu.Unlock()
	if !again {
		l.shed(now.Add(-graceful))
	}
}

// shed ends the connections that have had no request since the time.
func (l *clients) shed(since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		c.shed(since)
	}
}

// A client is one client's connection.
type client struct {
	net.Conn
	of *clients

	mu    sync.Mutex
	busy  bool      // with a request
	since time.Time // when that changed
}

// Write bounds how long the client may take to receive anything of p. It hides
// the connection's own ReadFrom, which knows no bound.
func (c *client) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.of.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *client) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite lets a client still read an answer that came before its body ended.
func (c *client) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *client) set(busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy, c.since = busy, time.Now()
}

// shed ends the wait for a request, but nothing that is still written.
func (c *client) shed(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.busy && !c.since.After(since) {
		_ = c.SetReadDeadline(time.Now())
	}
}

// clientKey is the context key of a client.
type clientKey struct{}

func withClient(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// busy marks the request's connection until the returned function is called.
func (g *Ingress) busy(r *http.Request) (done func()) {
	c, ok := r.Context().Value(clientKey{}).(*client)
	if !ok {
		return func() {}
	}
	c.set(true)
	return func() { c.set(false) }
}
