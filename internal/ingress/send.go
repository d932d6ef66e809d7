package ingress

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// hopHeader marks a request that another ingress passed on.
	hopHeader = "X-Regionha-Hop"
	// unservedHeader says, in an answer to a marked request, that no app saw it.
	unservedHeader = "X-Regionha-Unserved"
)

var (
	errUnreached  = errors.New("no connection was made")
	errUnserved   = errors.New("the home box does not serve the host now")
	errSuperseded = errors.New("the host has a newer home")
)

// send sends the request once and streams the answer to the client. Its error
// means that nothing of an answer went to the client; errUnreached and
// errUnserved, that no app saw the request.
func (q *request) send(to route) error {
	ctx, cancel := context.WithCancelCause(q.r.Context())
	defer cancel(nil)
	answered := q.watch(ctx, to, cancel)
	defer answered()
	var failed error
	var reached atomic.Bool
	var endless *time.Timer
	defer func() {
		if endless != nil {
			endless.Stop()
		}
	}()
	proxy := httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { q.rewrite(p, to) },
		Transport:     q.transport(to),
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(q.cfg.Log.Handler(), slog.LevelDebug),
		ModifyResponse: func(resp *http.Response) error {
			answered()
			if to.flight != nil {
				endless = to.flight.answers(resp)
			}
			return q.checkAnswer(resp, to)
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			failed = err
			if cause := context.Cause(ctx); cause != nil {
				failed = cause
			}
			if !reached.Load() {
				failed = fmt.Errorf("%w: %w", errUnreached, failed)
			}
		},
	}
	out := q.r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { reached.Store(true) },
	}))
	if out.Body != http.NoBody {
		body := &attempt{replay: q.body}
		defer body.Close()
		out.Body = body
	}
	proxy.ServeHTTP(noContinue{q.w}, out)
	return failed
}

// noContinue passes no "100 Continue" on: this box's own server says that to the
// client, when the client's body is read.
type noContinue struct{ http.ResponseWriter }

func (w noContinue) WriteHeader(code int) {
	if code != http.StatusContinue {
		w.ResponseWriter.WriteHeader(code)
	}
}

func (w noContinue) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (q *request) transport(to route) *http.Transport {
	if to.box == q.cfg.Self {
		return q.apps
	}
	return q.peers
}

// rewrite makes the request that is sent. An app sees the client's own Host and
// forwarding headers that were made by ingresses only.
func (q *request) rewrite(p *httputil.ProxyRequest, to route) {
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", to.target, p.In.Host
	if q.fromPeer() {
		p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	}
	p.SetXForwarded()
	p.Out.Header.Del(hopHeader)
	p.Out.Header.Del("Expect")
	if to.box != q.cfg.Self {
		p.Out.Header.Set(hopHeader, q.mark())
		if q.r.ContentLength < 0 || q.r.ContentLength > askFirst {
			p.Out.Header.Set("Expect", "100-continue")
		}
	}
}

// mark is the hop header's value: the peers' token, or a word that proves
// nothing.
func (q *request) mark() string {
	if q.cfg.PeerToken == "" {
		return "1"
	}
	return q.cfg.PeerToken
}

func (q *request) fromPeer() bool {
	got := q.r.Header.Get(hopHeader)
	return q.cfg.PeerToken != "" && subtle.ConstantTimeCompare([]byte(got), []byte(q.cfg.PeerToken)) == 1
}

// checkAnswer turns a peer's "not served here" into an error. An app cannot say
// it: the header is the ingresses' own.
func (q *request) checkAnswer(resp *http.Response, to route) error {
	unserved := resp.Header.Get(unservedHeader) != ""
	resp.Header.Del(unservedHeader)
	if unserved && to.box != q.cfg.Self {
		return errUnserved
	}
	return nil
}

const (
	dialTimeout = 2 * time.Second
	watchAfter  = time.Second

	// askFirst is how long a body may be that is sent to a peer before that
	// says that its app takes it: one that is refused unread is whole still.
	askFirst    = 64 << 10
	answerFirst = 5 * time.Second // the body is sent if the peer says nothing

	// appIdle is how long a connection to an app is kept without a request:
	// less than any app keeps it, because a write that meets the app's close
	// cannot be sent again.
	appIdle  = time.Second
	peerIdle = 30 * time.Second // an ingress keeps it for longer
)

// watch cancels the attempt with errSuperseded when, before an answer begins,
// the host gets a newer home than to: a box that is frozen accepts connections
// and never answers. answered ends it.
func (q *request) watch(ctx context.Context, to route, cancel context.CancelCauseFunc) (answered func()) {
	if to.box == q.cfg.Self {
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	timer := time.AfterFunc(watchAfter, func() {
		defer close(done)
		for !q.superseded(to) {
			if !pause(ctx, q.cfg.Changed(), askAgain) {
				return
			}
		}
		cancel(errSuperseded)
	})
	return sync.OnceFunc(func() {
		stop()
		if !timer.Stop() {
			<-done
		}
	})
}

func newTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error), idle time.Duration) *http.Transport {
	return &http.Transport{
		DialContext:           dial,
		DisableCompression:    true, // bodies pass as they are
		MaxIdleConnsPerHost:   64,
		MaxIdleConns:          1024,
		IdleConnTimeout:       idle,
		ExpectContinueTimeout: answerFirst,
	}
}

func dialPeer(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, network, addr)
}

// dialApp dials what authority wrote. The transport adds a port to what has
// none.
func dialApp(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if path, ok := strings.CutSuffix(host, socketSuffix); ok {
		name, err := hex.DecodeString(path)
		if err != nil {
			return nil, err
		}
		return d.DialContext(ctx, "unix", string(name))
	}
	return d.DialContext(ctx, network, addr)
}
