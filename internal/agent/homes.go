package agent

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/carlosframework/regionha/internal/ingress"
	"github.com/carlosframework/regionha/placement"
)

// refreshEvery is how often the edges files are read when nobody asks.
const refreshEvery = 30 * time.Second

// youngFor is how long a process does not know every name that is in transit:
// about as long as a request is held.
const youngFor = 10 * time.Second

// homes knows where every name of the region is served, and where its boxes
// are reached.
type homes struct {
	agent  *Agent
	reader placement.Reader
	ask    chan struct{}

	unknown *rate.Limiter // readings that unknown names cause
	began   time.Time

	files atomic.Pointer[placement.Snapshot]
	fold  atomic.Pointer[placement.HomeMap]

	mu      sync.Mutex
	changed chan struct{}
	round   chan struct{} // closed when the reading that runs is done
}

func newHomes(a *Agent) *homes {
	return &homes{agent: a, reader: placement.Reader{Store: a.control}, ask: make(chan struct{}, 1),
		unknown: rate.NewLimiter(1, 1), began: time.Now(),
		changed: make(chan struct{}), round: make(chan struct{})}
}

// run keeps the map fresh until ctx ends.
func (m *homes) run(ctx context.Context) error {
	for {
		m.refresh(ctx)
		t := time.NewTimer(refreshEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-m.ask:
			t.Stop()
		case <-t.C:
		}
	}
}

func (m *homes) refresh(ctx context.Context) {
	snap, err := m.reader.Read(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		m.agent.log.Warn("read the edges files", "err", err)
	default:
		for _, p := range snap.Problems {
			m.agent.log.Warn("an edges file is not understood", "err", p)
		}
		m.files.Store(&snap)
		m.fold.Store(placement.Fold(snap.Files, m.fold.Load(), time.Now()))
	}
	m.mu.Lock()
	close(m.round)
	m.round = make(chan struct{})
	m.mu.Unlock()
	m.wake()
}

// soon makes the edges files be read now.
func (m *homes) soon() {
	select {
	case m.ask <- struct{}{}:
	default:
	}
}

// look reads the edges files now and waits for it.
func (m *homes) look(ctx context.Context) {
	m.mu.Lock()
	done := m.round
	m.mu.Unlock()
	m.soon()
	select {
	case <-ctx.Done():
	case <-done:
	}
}

// wake tells held requests that an answer may have changed.
func (m *homes) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *homes) changes() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// home is where the map says a name is served. Until the edges files were read
// once, every name may have a home, and for a while longer one that the map does
// not know may be on its way: a new process does not know who lost its home just
// before. Later such a name makes the files be read again, at most once a second:
// it may be new.
func (m *homes) home(name string) (ingress.Home, bool) {
	known := m.fold.Load()
	if known == nil {
		return ingress.Home{Transit: true}, true
	}
	h, status := known.Lookup(name, time.Now())
	switch status {
	case placement.Known:
		return ingress.Home{Box: h.Box, Addr: h.Address, Stamp: h.Stamp}, true
	case placement.InTransit:
		return ingress.Home{Transit: true}, true
	}
	if m.unknown.Allow() {
		m.soon()
	}
	young := time.Since(m.began) < youngFor
	return ingress.Home{Transit: young}, young
}

// boxes lists the references of all other processes of the deployment that are
// known.
func (m *homes) boxes() []string {
	list := []string{}
	if snap := m.files.Load(); snap != nil {
		for _, f := range snap.Files {
			if f.Edges.Box != m.agent.self.Box {
				list = append(list, f.Edges.Box)
			}
		}
	}
	return list
}

// peers lists the internal addresses of the boxes named, and of the workers;
// with no names, of all others.
func (m *homes) peers(refs []string) []string {
	snap := m.files.Load()
	if snap == nil {
		return nil
	}
	var list []string
	for _, f := range snap.Files {
		e := f.Edges
		if e.Box == m.agent.self.Box || e.Region != m.agent.set.Region || e.Internal == "" {
			continue
		}
		if refs == nil || contains(refs, e.Box) || contains(e.Capabilities, placement.CapabilityWorker) {
			list = append(list, e.Internal)
		}
	}
	return list
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }
