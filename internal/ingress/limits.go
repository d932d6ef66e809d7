package ingress

import "sync"

// limits bound what requests may use of a box together, and those of one host of
// it, so that a host whose app is slow, or away, leaves room for the others.
type limits struct {
	requests, requestsHost int
	held, heldHost         int
	kept, keptHost         int64 // bytes of bodies
}

// use is what requests use now.
type use struct {
	requests, held int
	kept           int64
}

// shares are what the hosts use. Only those with requests are in it, whatever
// names strangers send.
type shares struct {
	limits
	mu    sync.Mutex
	all   use
	hosts map[string]*share
}

// A share is what one host's requests use. All of its methods are safe for
// concurrent use.
type share struct {
	of   *shares
	host string
	use  // guarded by of.mu
}

// enter counts one more request of the host, which leaves its share at its end.
// nil: there are too many.
func (s *shares) enter(host string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[host]
	if h == nil {
		h = &share{of: s, host: host}
	}
	if s.all.requests >= s.requests || h.requests >= s.requestsHost {
		return nil
	}
	if s.hosts == nil {
		s.hosts = map[string]*share{}
	}
	s.hosts[host] = h
	h.add(use{requests: 1})
	return h
}

// add changes what is used. The caller holds the lock.
func (h *share) add(u use) {
	for _, sum := range []*use{&h.use, &h.of.all} {
		sum.requests += u.requests
		sum.held += u.held
		sum.kept += u.kept
	}
}

func (h *share) leave() {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.add(use{requests: -1})
	if h.requests == 0 {
		delete(h.of.hosts, h.host)
	}
}

// hold counts a request as held, until letGo. false: there are too many.
func (h *share) hold() bool {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.of.all.held >= h.of.limits.held || h.held >= h.of.heldHost {
		return false
	}
	h.add(use{held: 1})
	return true
}

func (h *share) letGo() {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.add(use{held: -1})
}

// take makes room for n bytes of a body, until give. false: there is none.
func (h *share) take(n int64) bool {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.of.all.kept+n > h.of.limits.kept || h.kept+n > h.of.keptHost {
		return false
	}
	h.add(use{kept: n})
	return true
}

func (h *share) give(n int64) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.add(use{kept: -n})
}

// now is what all hosts use.
func (s *shares) now() use {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}
