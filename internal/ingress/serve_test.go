package ingress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/ingress"
)

// serving is a box that serves as an agent's does, until stop.
func serving(t *testing.T, change func(*ingress.Config)) (b *box, addr string, stop context.CancelFunc, ended <-chan error) {
	b = newBox(t, "b1", change)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	joined := make(chan struct{})
	go func() {
		done <- b.Serve(ctx, l)
		close(joined)
	}()
	t.Cleanup(func() { stop(); <-joined })
	return b, l.Addr().String(), stop, done
}

// connect opens a connection and sends what is given.
func connect(t *testing.T, addr, send string) (net.Conn, *bufio.Reader) {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, send)
	require.NoError(t, err)
	return conn, bufio.NewReader(conn)
}

const plain = "GET / HTTP/1.1\r\nHost: notes.example\r\n\r\n"

func status(t *testing.T, r *bufio.Reader) *http.Response {
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	return resp
}

func TestTheEndAnswersWhatWasTakenAndSaysSo(t *testing.T) {
	b, addr, stop, ended := serving(t, nil)
	a, has, let := gated(t, nil)
	b.local(a.ready(5))
	_, r := connect(t, addr, plain)
	<-has
	stop()
	select { // for longer than a connection that asks nothing has left
	case err := <-ended:
		require.Fail(t, "ended too early", "%v", err)
	case <-time.After(1200 * time.Millisecond):
	}
	close(let)
	resp := status(t, r)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.True(t, resp.Close)
	ends200(t, ended)
}

// ends200 waits for the end, which is to take much less than the bound on drains.
func ends200(t *testing.T, ended <-chan error) {
	t.Helper()
	began := time.Now()
	ends(t, ended)
	require.Less(t, time.Since(began), 5*time.Second)
}

// TestStreamsWithoutEndDoNotDelayTheEnd: the bound is ten seconds.
func TestStreamsWithoutEndDoNotDelayTheEnd(t *testing.T) {
	upgrade := "GET / HTTP/1.1\r\nHost: notes.example\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
	for name, tc := range map[string]struct {
		request string
		answer  func(w http.ResponseWriter, r *http.Request)
	}{
		"events": {plain, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
		"silent, of no length": {plain, func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
		"events that nobody reads": {plain, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, err := io.WriteString(w, "\n"); err == nil; _, err = w.Write(make([]byte, 1<<20)) {
			}
		}},
		"an upgraded connection": {upgrade, func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			io.Copy(conn, rw)
		}},
		"one whose app has closed half of it": {upgrade, func(w http.ResponseWriter, r *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			conn.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, rw)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, addr, stop, ended := serving(t, func(c *ingress.Config) { c.Drain = patience })
			a := newApp(t, "a", tc.answer)
			b.local(a.ready(5))
			_, r := connect(t, addr, tc.request)
			status(t, r)
			stop()
			ends200(t, ended)
		})
	}
}

// TestClientsThatAskNothingDoNotDelayTheEnd: neither one that is silent nor one
// that never ends its header.
func TestClientsThatAskNothingDoNotDelayTheEnd(t *testing.T) {
	b, addr, stop, ended := serving(t, func(c *ingress.Config) { c.Drain = patience })
	connect(t, addr, "")
	connect(t, addr, "GET / HTTP/1.1\r\nHost: no")
	_, r := connect(t, addr, plain) // once this is answered they are accepted
	status(t, r)
	stop()
	ends200(t, ended)
	require.Zero(t, b.Held())
}

func TestHeldRequestsAreAnsweredAtTheEnd(t *testing.T) {
	b, addr, stop, ended := serving(t, func(c *ingress.Config) { c.HoldFor = time.Minute })
	b.local(ingress.Local{Stamp: 5})
	_, r := connect(t, addr, plain)
	b.awaitHeld(t, 1)
	stop()
	resp := status(t, r)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.NotEmpty(t, resp.Header.Get("Retry-After"))
	ends200(t, ended)
}

func TestAHostWhoseRequestsHangLeavesRoomForOthers(t *testing.T) {
	b, addr, _, _ := serving(t, func(c *ingress.Config) { c.MaxRequestsHost, c.MaxRequests = 2, 3 })
	a, has, let := gated(t, nil)
	other := newApp(t, "other", nil)
	b.set(func(locals map[string]ingress.Local, _ map[string]ingress.Home) {
		slow := a.ready(5)
		slow.Host = host
		locals[host], locals["alias.example"], locals["other.example"] = slow, slow, other.ready(5)
	})
	_, first := connect(t, addr, plain)
	_, second := connect(t, addr, plain)
	<-has
	<-has
	for _, name := range []string{host, "alias.example"} {
		_, r := connect(t, addr, strings.ReplaceAll(plain, host, name))
		resp := status(t, r)
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		require.NotEmpty(t, resp.Header.Get("Retry-After"))
	}
	_, r := connect(t, addr, strings.ReplaceAll(plain, host, "other.example"))
	require.Equal(t, http.StatusOK, status(t, r).StatusCode)
	close(let)
	require.Equal(t, http.StatusOK, status(t, first).StatusCode)
	require.Equal(t, http.StatusOK, status(t, second).StatusCode)
}

// TestAClientThatStallsIsDropped: in its body, in what it receives, and after an
// upgrade; and the app is free again.
func TestAClientThatStallsIsDropped(t *testing.T) {
	gone := make(chan struct{}, 1)
	flood := func(w io.Writer) {
		for _, err := w.Write([]byte("\n")); err == nil; _, err = w.Write(make([]byte, 1<<20)) {
		}
	}
	for name, tc := range map[string]struct {
		request string
		answer  func(w http.ResponseWriter, r *http.Request)
		status  int
	}{
		"in its body": {"POST / HTTP/1.1\r\nHost: notes.example\r\nContent-Length: 9\r\n\r\nfour", func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
		}, http.StatusRequestTimeout},
		"in what it receives": {plain, func(w http.ResponseWriter, _ *http.Request) { flood(w) }, http.StatusOK},
		"upgraded": {"GET / HTTP/1.1\r\nHost: notes.example\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			flood(conn)
		}, http.StatusSwitchingProtocols},
	} {
		t.Run(name, func(t *testing.T) {
			b, addr, _, _ := serving(t, func(c *ingress.Config) { c.Stall = 100 * time.Millisecond })
			a := newApp(t, "a", func(w http.ResponseWriter, r *http.Request) {
				tc.answer(w, r)
				gone <- struct{}{}
			})
			b.local(a.ready(5))
			_, r := connect(t, addr, tc.request)
			require.Equal(t, tc.status, status(t, r).StatusCode)
			select {
			case <-gone:
			case <-time.After(patience):
				require.Fail(t, "the app still waits for the client")
			}
		})
	}
}

// TestAStreamIsSilentAsLongAsItsAppIs: only clients stall, and a body that its app
// does not read yet is no stall.
func TestAStreamIsSilentAsLongAsItsAppIs(t *testing.T) {
	const stall = 50 * time.Millisecond
	b, addr, _, _ := serving(t, func(c *ingress.Config) { c.Stall = stall })
	silence := func() { time.Sleep(4 * stall) }
	a := newApp(t, "a", func(w http.ResponseWriter, r *http.Request) {
		silence()
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s\n", body)
		http.NewResponseController(w).Flush()
		silence()
		fmt.Fprintln(w, "end")
	})
	b.local(a.ready(5))
	conn, r := connect(t, addr, "POST / HTTP/1.1\r\nHost: notes.example\r\nContent-Length: 4\r\n\r\nbody")
	for range 2 { // the connection is good for one more
		body, err := io.ReadAll(status(t, r).Body)
		require.NoError(t, err)
		require.Equal(t, "body\nend\n", string(body))
		_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: notes.example\r\nContent-Length: 4\r\n\r\nbody")
		require.NoError(t, err)
	}
}

// TestConnectionsAreBounded: those that ask nothing make room after a second.
func TestConnectionsAreBounded(t *testing.T) {
	b, addr, _, _ := serving(t, func(c *ingress.Config) { c.MaxConns = 2 })
	a := newApp(t, "a", nil)
	b.local(a.ready(5))
	connect(t, addr, "GET / HT")
	connect(t, addr, "")
	_, r := connect(t, addr, plain)
	_, err := r.ReadByte()
	require.Error(t, err, "over the bound")
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		defer conn.Close()
		fmt.Fprint(conn, plain)
		_, err = http.ReadResponse(bufio.NewReader(conn), nil)
		return err == nil
	}, 8*time.Second, 20*time.Millisecond, "sooner than a header may take")
}
