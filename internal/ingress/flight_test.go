package ingress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/ingress"
)

// quiet waits for the host's app in the background.
func (b *box) quiet(t *testing.T) <-chan error {
	done := make(chan error, 1)
	go func() { done <- b.Quiet(t.Context(), host) }()
	return done
}

// within is a bound that is well below every wait of the ingress.
const within = 50 * time.Millisecond

func waits(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		require.Fail(t, "quiet too early", "%v", err)
	case <-time.After(within):
	}
}

func ends(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(patience):
		require.Fail(t, "never quiet")
	}
}

// gated is an app that answers when it is let, and says when it has a request.
func gated(t *testing.T, answer http.HandlerFunc) (a *app, has, let chan struct{}) {
	has, let = make(chan struct{}, 8), make(chan struct{})
	failed := make(chan struct{})
	a = newApp(t, "a", func(w http.ResponseWriter, r *http.Request) {
		has <- struct{}{}
		if answer != nil {
			answer(w, r)
		}
		select {
		case <-let:
		case <-failed:
		}
	})
	t.Cleanup(func() { close(failed) }) // before the app's own end, which waits for its answers
	return a, has, let
}

func TestQuietWaitsForWhatTheAppHasNotAnswered(t *testing.T) {
	b := newBox(t, "b1", nil)
	a, has, let := gated(t, nil)
	b.local(a.ready(5))
	got := b.later(t.Context(), http.MethodPost, "a note")
	<-has
	b.local(ingress.Local{Stamp: 5})
	late := b.later(t.Context(), http.MethodPost, "a later note")
	b.awaitHeld(t, 1)
	quiet := b.quiet(t)
	waits(t, quiet)

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	err := b.Quiet(ctx, host)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "1 requests")

	close(let)
	ends(t, quiet)
	result(t, got).from(t, "a")
	require.Equal(t, 1, a.count(), "what came later does not reach it")
	b.local(a.ready(6))
	result(t, late).from(t, "a")
}

// TestQuietSeesARequestWhoseRouteIsBeingDecided: it is not counted yet, and the
// row is held already.
func TestQuietSeesARequestWhoseRouteIsBeingDecided(t *testing.T) {
	a, has, let := gated(t, nil)
	deciding, decide, calls := make(chan struct{}), make(chan struct{}), atomic.Int32{}
	b := newBox(t, "b1", func(c *ingress.Config) {
		c.Local = func(string) (ingress.Local, bool) {
			if calls.Add(1) == 2 { // the first asks what the host's own name is
				close(deciding)
				<-decide
			}
			return a.ready(5), true
		}
	})
	got := b.later(t.Context(), http.MethodPost, "a note")
	<-deciding
	quiet := b.quiet(t)
	waits(t, quiet)
	close(decide)
	<-has
	waits(t, quiet)
	close(let)
	ends(t, quiet)
	result(t, got).from(t, "a")
}

func TestQuietDoesNotWaitForAnswersThatMayNeverEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		answer   http.HandlerFunc
		waitsFor time.Duration
		ends     bool
	}{
		"events": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			io.WriteString(w, "data: one\n\n")
		}},
		"no announced length": {waitsFor: 900 * time.Millisecond, answer: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "the first half")
		}},
		"an announced length": {ends: true, answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1")
			w.WriteHeader(http.StatusOK)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "b1", nil)
			a, has, let := gated(t, func(w http.ResponseWriter, r *http.Request) {
				tc.answer(w, r)
				http.NewResponseController(w).Flush()
			})
			b.local(a.ready(5))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.srv.URL, nil)
			require.NoError(t, err)
			req.Host = host
			resp, err := b.srv.Client().Do(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			<-has
			began := time.Now()
			b.local(ingress.Local{Stamp: 5})
			quiet := b.quiet(t)
			if tc.ends {
				waits(t, quiet)
				close(let)
				ends(t, quiet)
				return
			}
			ends(t, quiet)
			require.GreaterOrEqual(t, time.Since(began), tc.waitsFor)
			require.WithinDuration(t, time.Now(), b.LastUsed(host), time.Second, "it is in use nevertheless")
			close(let)
		})
	}
}

func TestQuietDoesNotWaitForUpgradedConnectionsThoughTheyAreUse(t *testing.T) {
	b := newBox(t, "b1", nil)
	a := newApp(t, "a", func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(conn, rw)
	})
	b.local(a.ready(5))
	require.Zero(t, b.LastUsed(host))
	conn := dial(t, b.srv)
	_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: notes.example\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nping")
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	require.NoError(t, err)
	ends(t, b.quiet(t))
	first := b.LastUsed(host)
	require.Greater(t, b.LastUsed(host), first, "while it is open, now")
	conn.Close()
	require.Eventually(t, func() bool {
		one, other := b.LastUsed(host), b.LastUsed(host)
		return one.Equal(other)
	}, patience, time.Millisecond, "and no more once it is closed")
}

// TestNoConnectionToAnAppIsKeptWhenItIsQuiet: a write that is sent into one that
// the app closes as it ends could not be sent again.
func TestNoConnectionToAnAppIsKeptWhenItIsQuiet(t *testing.T) {
	b, open := newBox(t, "b1", nil), atomic.Int32{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	b.local(ingress.Local{Ready: true, Addr: srv.Listener.Addr(), Stamp: 5})
	require.Equal(t, http.StatusOK, b.get(t).status)
	require.EqualValues(t, 1, open.Load())
	b.local(ingress.Local{Stamp: 5})
	ends(t, b.quiet(t))
	began := time.Now()
	require.Eventually(t, func() bool { return open.Load() == 0 }, patience, time.Millisecond)
	require.Less(t, time.Since(began), 900*time.Millisecond, "not only when it was idle for long")
}

func TestAnAliasIsCountedUnderTheHostsOwnName(t *testing.T) {
	b := newBox(t, "b1", nil)
	a, has, let := gated(t, nil)
	l := a.ready(5)
	l.Host = "own.example"
	b.local(l)
	got := b.later(t.Context(), http.MethodGet, "")
	<-has
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.Error(t, b.Quiet(ctx, "own.example"))
	require.NotZero(t, b.LastUsed("own.example"))
	close(let)
	result(t, got).from(t, "a")
}

// TestAHomeHoldsWhatItsOwnAppIsStartedFor: the peer that passed the request on is
// not told when the app is up.
func TestAHomeHoldsWhatItsOwnAppIsStartedFor(t *testing.T) {
	b1, b2, a := newBox(t, "b1", nil), newBox(t, "b2", func(c *ingress.Config) { c.HoldFor = time.Minute }), newApp(t, "a", nil)
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6})
	b2.local(ingress.Local{Ready: true, Stamp: 6})
	got := b1.later(t.Context(), http.MethodPost, "a note")
	b2.awaitHeld(t, 1)
	require.Len(t, b2.looked(), 1, "which wakes an app that sleeps")
	require.Zero(t, b1.Held())
	b2.local(a.ready(7))
	result(t, got).from(t, "a")
}

// TestAHomeThatHeldARequestForItsAppInVainSaysThatNoAppSawIt, so that the client's
// ingress goes on.
func TestAHomeThatHeldARequestForItsAppInVainSaysThatNoAppSawIt(t *testing.T) {
	b1, b2, a := newBox(t, "b1", nil), newBox(t, "b2", func(c *ingress.Config) { c.HoldFor = time.Millisecond }), newApp(t, "a", nil)
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6})
	b2.local(ingress.Local{Ready: true, Stamp: 6})
	got := b1.later(t.Context(), http.MethodPost, "a note")
	b1.awaitHeld(t, 1)
	b1.local(a.ready(7))
	result(t, got).from(t, "a")
}

// TestALongUploadToAHomeThatIsHeldGoesToTheNextOne: it does not fit what is kept
// for sending again, so it must not be sent in vain.
func TestALongUploadToAHomeThatIsHeldGoesToTheNextOne(t *testing.T) {
	for name, body := range map[string]func(string) io.Reader{
		"announced": func(s string) io.Reader { return strings.NewReader(s) },
		"chunked":   func(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) },
	} {
		t.Run(name, func(t *testing.T) {
			b1, b2, b3 := newBox(t, "b1", nil), newBox(t, "b2", nil), newBox(t, "b3", nil)
			sizes := make(chan int64, 1)
			a := newApp(t, "a", func(_ http.ResponseWriter, r *http.Request) {
				n, _ := io.Copy(io.Discard, r.Body)
				sizes <- n
			})
			b1.local(ingress.Local{Stamp: 5})
			b3.home(ingress.Home{Box: "b1", Addr: b1.addr(), Stamp: 5})
			const size = 8 << 20
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b3.srv.URL, body(strings.Repeat("x", size)))
			require.NoError(t, err)
			req.Host = host
			status := make(chan int, 1)
			go func() {
				resp, err := b3.srv.Client().Do(req)
				if err != nil {
					status <- 0
					return
				}
				resp.Body.Close()
				status <- resp.StatusCode
			}()
			b3.awaitHeld(t, 1)
			b2.local(a.ready(6))
			b3.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6})
			require.Equal(t, http.StatusOK, <-status)
			require.EqualValues(t, size, <-sizes)
		})
	}
}

// TestAClientThatDidNotAskIsToldNothingBeforeItsAnswer: the two ingresses agree on
// a long body between themselves.
func TestAClientThatDidNotAskIsToldNothingBeforeItsAnswer(t *testing.T) {
	b := twoHops(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "" {
			panic("the app is asked nothing")
		}
		io.Copy(io.Discard, r.Body)
	})
	conn := dial(t, b.srv)
	const size = 100_000
	_, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: notes.example\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size))
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 200 OK\r\n", line)
}
