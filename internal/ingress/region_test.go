package ingress_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carlosframework/regionha/internal/ingress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	host     = "notes.example"
	patience = 60 * time.Second
)

// A box is an ingress with what its agent would tell it.
type box struct {
	*ingress.Ingress
	srv *httptest.Server

	mu      sync.Mutex
	locals  map[string]ingress.Local
	homes   map[string]ingress.Home
	changed chan struct{}
	looks   []time.Time
	hints   []string
}

// newBox starts a box. change may set bounds.
func newBox(t testing.TB, name string, change func(*ingress.Config)) *box {
	b := &box{locals: map[string]ingress.Local{}, homes: map[string]ingress.Home{}, changed: make(chan struct{})}
	cfg := ingress.Config{Self: name, Log: slog.New(slog.DiscardHandler), Changed: b.whenChanged,
		Local: func(host string) (ingress.Local, bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			l, ok := b.locals[host]
			return l, ok
		},
		Home: func(host string) (ingress.Home, bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			h, ok := b.homes[host]
			return h, ok
		},
		Look: func(string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.looks = append(b.looks, time.Now())
		},
		Unreachable: func(box string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.hints = append(b.hints, box)
		},
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	b.Ingress, err = ingress.New(cfg)
	require.NoError(t, err)
	b.srv = httptest.NewServer(b)
	t.Cleanup(func() {
		b.srv.Close()
		b.Close()
	})
	return b
}

func (b *box) whenChanged() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// set changes what the agent knows of the host, and says so.
func (b *box) set(change func(locals map[string]ingress.Local, homes map[string]ingress.Home)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b.locals, b.homes)
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *box) local(l ingress.Local) {
	b.set(func(locals map[string]ingress.Local, _ map[string]ingress.Home) { locals[host] = l })
}

func (b *box) home(h ingress.Home) {
	b.set(func(_ map[string]ingress.Local, homes map[string]ingress.Home) { homes[host] = h })
}

func (b *box) addr() string { return b.srv.Listener.Addr().String() }

func (b *box) hinted() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.hints...)
}

func (b *box) looked() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]time.Time(nil), b.looks...)
}

// awaitHeld waits until n requests are held.
func (b *box) awaitHeld(t *testing.T, n int) {
	require.Eventually(t, func() bool { return b.Held() == n }, patience, time.Millisecond)
}

// An app is a backend that counts what reaches it.
type app struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
}

func newApp(t testing.TB, name string, handler http.HandlerFunc) *app {
	a := &app{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.requests = append(a.requests, r)
		a.mu.Unlock()
		w.Header().Set("X-App", name)
		if handler != nil {
			handler(w, r)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *app) addr() net.Addr { return a.Listener.Addr() }

func (a *app) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.requests)
}

func (a *app) ready(stamp uint64) ingress.Local {
	return ingress.Local{Ready: true, Addr: a.addr(), Stamp: stamp}
}

// An answer is a response, read whole.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func (a answer) from(t *testing.T, app string) {
	require.NoError(t, a.err)
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Equal(t, app, a.header.Get("X-App"))
}

func (a answer) unavailable(t *testing.T) {
	require.NoError(t, a.err)
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.NotEmpty(t, a.header.Get("Retry-After"))
}

// ask sends a request to the box and reads the answer.
func (b *box) ask(ctx context.Context, method, body string, header ...string) answer {
	req, err := http.NewRequestWithContext(ctx, method, b.srv.URL+"/notes?x=1", strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Host = host
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := b.srv.Client().Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(got), err: err}
}

func (b *box) get(t *testing.T) answer { return b.ask(t.Context(), http.MethodGet, "") }

// later asks in the background.
func (b *box) later(ctx context.Context, method, body string, header ...string) <-chan answer {
	got := make(chan answer, 1)
	go func() { got <- b.ask(ctx, method, body, header...) }()
	return got
}

func result(t *testing.T, got <-chan answer) answer {
	select {
	case a := <-got:
		return a
	case <-time.After(patience):
		require.Fail(t, "no answer")
		return answer{}
	}
}

// nobody is an address that refuses connections.
func nobody(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// breaker accepts one request's connection after another, waits for its header,
// and closes it without an answer.
func breaker(t *testing.T) (addr net.Addr, accepted func() int) {
	return listen(t, func(c net.Conn) { c.Close() })
}

// frozen accepts requests and never answers.
func frozen(t *testing.T) (addr net.Addr, accepted func() int) {
	return listen(t, func(c net.Conn) {})
}

func listen(t *testing.T, then func(net.Conn)) (net.Addr, func() int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var mu sync.Mutex
	var conns []net.Conn
	var done sync.WaitGroup
	requests := 0
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			done.Go(func() {
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				mu.Lock()
				requests++
				mu.Unlock()
				then(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		done.Wait()
	})
	return l.Addr(), func() int {
		mu.Lock()
		defer mu.Unlock()
		return requests
	}
}
