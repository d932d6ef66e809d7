package ingress

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"sync"
	"time"
)

// endlessAfter is how long an answer of no announced length may go on before it
// counts as one that does not end by itself.
const endlessAfter = time.Second

// A flight is one request on its way to this box's own app, from when its route
// was decided until its answer ended.
type flight struct {
	over func()          // it is not waited for any more; may be called again
	done <-chan struct{} // closed by over
}

func newFlight() *flight {
	done := make(chan struct{})
	return &flight{over: sync.OnceFunc(func() { close(done) }), done: done}
}

// A length is how long an answer may go on.
type length int32

const (
	ends    length = iota // it says how long it is, or has not begun
	mayEnd                // it does not say how long it is
	endless               // it ends when somebody wants it to
)

// lengthOf tells by the answer's beginning. An upgraded connection and an event
// stream end when somebody wants them to, and so may what does not say how long
// it is.
func lengthOf(resp *http.Response) length {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols, kind == "text/event-stream":
		return endless
	case resp.ContentLength < 0:
		return mayEnd
	}
	return ends
}

// answers takes note of the answer's beginning. The timer that it returns, which
// may be nil, is to be stopped at the end of the answer.
func (f *flight) answers(l length) *time.Timer {
	switch l {
	case endless:
		f.over()
	case mayEnd:
		return time.AfterFunc(endlessAfter, f.over)
	}
	return nil
}

// flights are those of every host of this box.
type flights struct {
	// deciding is held for reading while a route is decided and its flight
	// counted, so that whoever holds it for writing sees every flight that a
	// route from before began.
	deciding sync.RWMutex

	mu   sync.Mutex
	open map[string]map[*flight]struct{} // by the host's own name
	last map[string]time.Time            // when a host's latest flight ended
	most int                             // names in last at which it is tidied again
}

func (s *flights) begin(host string) *flight {
	f := newFlight()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open, s.last, s.most = map[string]map[*flight]struct{}{}, map[string]time.Time{}, fewNames
	}
	if s.open[host] == nil {
		s.open[host] = map[*flight]struct{}{}
	}
	s.open[host][f] = struct{}{}
	return f
}

// end takes note of a flight's end, and forgets when hosts were last used that
// have no row here any more.
func (s *flights) end(host string, f *flight, here func(host string) (uint64, bool)) {
	f.over()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open[host], f)
	if len(s.open[host]) == 0 {
		delete(s.open, host)
	}
	s.last[host] = time.Now()
	if len(s.last) <= s.most {
		return
	}
	for name := range s.last {
		if _, ok := here(name); !ok {
			delete(s.last, name)
		}
	}
	s.most = max(fewNames, 2*len(s.last))
}

// decided are the host's flights whose routes were decided before the call.
func (s *flights) decided(host string) []*flight {
	s.deciding.Lock()
	defer s.deciding.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*flight
	for f := range s.open[host] {
		list = append(list, f)
	}
	return list
}

// Quiet waits until every request that was sent to this box's own app of the
// host is answered in full. The caller has made Local say that the host is not
// ready, or has no address, before: requests that come later do not reach the
// app, and none lies between. Afterwards no connection to the app is kept open,
// so that nothing is sent into one that the app closes as it ends.
//
// It does not wait for the end of upgraded connections and of event streams, nor
// of answers of no announced length that have gone on for a second, once they
// have begun: a drain does not hang on them. Its error, where ctx ended first,
// says how many requests are not answered.
func (g *Ingress) Quiet(ctx context.Context, host string) error {
	defer g.apps.CloseIdleConnections()
	list := g.flights.decided(host)
	for i, f := range list {
		select {
		case <-f.done:
		case <-ctx.Done():
			return fmt.Errorf("ingress: up to %d requests of %s are not answered: %w", len(list)-i, host, context.Cause(ctx))
		}
	}
	return nil
}

// LastUsed is when a request last was on its way to this box's own app of the
// host: now while one is, an upgraded connection among them; the zero time where
// there never was one.
func (g *Ingress) LastUsed(host string) time.Time {
	s := &g.flights
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open[host]) > 0 {
		return time.Now()
	}
	return s.last[host]
}
