package ingress

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
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
	// unservedHeader says, in an answer to a marked request, that no app
	// answered it, and whether one may have seen it.
	unservedHeader = "X-Regionha-Unserved"
	unseen, seen   = "1", "seen"
)

var (
	errUnreached  = errors.New("no connection was made")
	errUnserved   = errors.New("the home box does not serve the host now")
	errSuperseded = errors.New("the host has a newer home")
	errBroken     = errors.New("the app at the home box did not answer")
	errSilent     = errors.New("the connection ended without a byte of an answer")
	errAnswered   = errors.New("an answer had begun")
	errClient     = errors.New("the client did not send the body that it announced")
	errRequest    = errors.New("the request cannot be passed on")
)

// A try is one sending of a request.
type try struct {
	*request
	to       route
	ctx      context.Context
	body     *attempt    // nil: the request has none
	answered func()      // an answer begins: its home is not watched any more
	endless  *time.Timer // nil, or of an answer that may not end

	reached  atomic.Bool // a connection was made
	silent   atomic.Bool // no byte came back
	accepted bool        // the answer is passed to the client
	err      error
}

// tryKey is the context key of a try.
type tryKey struct{}

func tryOf(r *http.Request) *try { return r.Context().Value(tryKey{}).(*try) }

// send sends the request once and streams the answer to the client. Its error
// means that nothing of an answer went to the client, unless it is errAnswered;
// errUnreached and errUnserved, that no app saw the request.
func (q *request) send(to route) error {
	ctx, cancel := context.WithCancelCause(q.ctx)
	defer cancel(nil)
	t := &try{request: q, to: to}
	t.silent.Store(true)
	t.answered = q.watch(ctx, to, cancel)
	defer t.end()
	t.ctx = httptrace.WithClientTrace(context.WithValue(ctx, tryKey{}, t), &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { t.reached.Store(true) },
		GotFirstResponseByte: func() { t.silent.Store(false) },
	})
	out := q.r.WithContext(t.ctx)
	if out.Body != http.NoBody {
		t.body = &attempt{replay: q.body, atEnd: func() {}}
		out.Body = t.body
	}
	proxy := q.toPeers
	if to.box == q.cfg.Self {
		proxy = q.toApps
	}
	proxy.ServeHTTP(noContinue{q.w, q}, out)
	if t.reached.Load() && !errors.Is(t.err, errUnserved) {
		q.sent++
	}
	return t.err
}

func (t *try) end() {
	t.answered()
	if t.endless != nil {
		t.endless.Stop()
	}
	if t.body != nil {
		t.body.Close()
	}
}

// newProxy makes what passes every try on by transport.
func newProxy(transport http.RoundTripper, log *slog.Logger) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        func(p *httputil.ProxyRequest) { tryOf(p.In).rewrite(p) },
		Transport:      transport,
		FlushInterval:  -1,
		BufferPool:     &buffers{},
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ModifyResponse: func(resp *http.Response) error { return tryOf(resp.Request).accept(resp) },
		ErrorHandler:   func(_ http.ResponseWriter, r *http.Request, err error) { t := tryOf(r); t.err = t.failure(err) },
	}
}

// buffers are for copying bodies.
type buffers struct{ free sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.free.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.free.Put(&p) }

// failure says what became of a try that failed with err.
func (t *try) failure(err error) error {
	broken, cause := t.request.body.broken(), context.Cause(t.ctx)
	switch {
	case broken != nil: // the server ends the context too
		return fmt.Errorf("%w: %w", errClient, broken)
	case cause != nil && !t.reached.Load():
		return fmt.Errorf("%w: %w", errUnreached, cause)
	case cause != nil:
		return cause
	case errors.Is(err, errUnreached), errors.Is(err, errUnserved), errors.Is(err, errBroken):
		return err
	case !t.reached.Load():
		return fmt.Errorf("%w: %w", errRequest, err)
	case t.accepted:
		return fmt.Errorf("%w: %w", errAnswered, err)
	case t.silent.Load():
		return fmt.Errorf("%w: %w", errSilent, err)
	}
	return err
}

// accept takes note of the beginning of an answer. It turns a peer's "not served
// here" into an error. An app cannot say it: the header is the ingresses' own.
func (t *try) accept(resp *http.Response) error {
	t.answered()
	unserved := resp.Header.Get(unservedHeader)
	resp.Header.Del(unservedHeader)
	switch {
	case t.to.box == t.cfg.Self:
	case unserved == seen:
		return errBroken
	case unserved != "":
		return errUnserved
	}
	t.accepted = true
	l := lengthOf(resp)
	t.wrote.Store(time.Now().UnixNano())
	t.length.Store(int32(l))
	if t.to.flight != nil {
		t.endless = t.to.flight.answers(l)
	}
	return nil
}

// noContinue passes no "100 Continue" on: this box's own server says that to the
// client, when the client's body is read. Nor does it pass on other interim
// answers where the server may be about to, which knows no order between the
// two, or where the client is too old for them. It takes note of when something
// was last sent.
type noContinue struct {
	http.ResponseWriter
	q *request
}

func (w noContinue) WriteHeader(code int) {
	switch {
	case code >= http.StatusOK:
		w.q.early()
	case code == http.StatusContinue, w.q.r.Header.Get("Expect") != "", !w.q.r.ProtoAtLeast(1, 1):
		return
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w noContinue) Write(p []byte) (int, error) {
	w.q.wrote.Store(time.Now().UnixNano())
	return w.ResponseWriter.Write(p)
}

func (w noContinue) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// rewrite makes the request that is sent. An app sees the client's own Host and
// query, and forwarding headers that were made by ingresses only.
func (t *try) rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", t.to.target, p.In.Host
	p.Out.URL.RawQuery = p.In.URL.RawQuery // ReverseProxy drops what it cannot parse
	for name := range p.Out.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Regionha-") || name == "X-Real-Ip" {
			delete(p.Out.Header, name)
		}
	}
	if t.fromPeer() {
		p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	}
	p.SetXForwarded()
	p.Out.Header.Del("Expect")
	if t.body != nil && len(p.Out.Trailer) > 0 {
		t.body.atEnd = func() { takeTrailer(p.Out.Trailer, t.r.Trailer) }
	}
	if t.to.box != t.cfg.Self {
		p.Out.Header.Set(hopHeader, t.mark())
		if t.r.ContentLength < 0 || t.r.ContentLength > askFirst {
			p.Out.Header.Set("Expect", "100-continue")
		}
	}
}

// takeTrailer takes what was announced of the trailer, which is known at the
// body's end.
func takeTrailer(announced, got http.Header) {
	for name := range announced {
		announced[name] = got[name]
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
			if !pause(ctx, q.cfg.Changed(), nil, askAgain) {
				return
			}
		}
		if !q.harmless() && !pause(ctx, nil, nil, lastWord) {
			return
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
