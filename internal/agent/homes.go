package agent

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/ingress"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/placement"
)

const (
	// refreshEvery is how often the edges files are read when nobody asks; after
	// a reading that had to get many, a pause of refreshPer for each, so that a
	// region in which everything moves reads no more than one at rest.
	refreshEvery = 30 * time.Second
	refreshPer   = 1500 * time.Millisecond
	refreshMax   = 5 * time.Minute

	// Where somebody holds a request they are read at once, a few times, and then
	// once a second, with a pause of askedPer for each file that was got.
	askedEvery  = time.Second
	askedAtOnce = 5
	askedPer    = 25 * time.Millisecond

	// judgesFor is how long a reading tells a name that is new from one that
	// nobody serves.
	judgesFor = time.Second
)

// youngFor is how long a process does not know every name that is in transit:
// about as long as a request is held.
const youngFor = 10 * time.Second

// homes knows where every name of the region is served, and where its boxes
// are reached.
type homes struct {
	agent  *Agent
	reader placement.Reader
	ask    chan struct{}

	asked *rate.Limiter // readings that somebody asked for
	began time.Time
	read  atomic.Int64 // when the last reading that was done began

	conflicts map[string]bool // that are alerted; the reading's own

	files atomic.Pointer[placement.Snapshot]
	fold  atomic.Pointer[placement.HomeMap]

	mu      sync.Mutex
	changed chan struct{}
}

func newHomes(a *Agent) *homes {
	return &homes{agent: a, reader: placement.Reader{Store: a.control}, ask: make(chan struct{}, 1),
		asked: rate.NewLimiter(rate.Every(askedEvery), askedAtOnce), began: time.Now(),
		changed: make(chan struct{})}
}

// run keeps the map fresh until ctx ends. The more files a reading had to get,
// the later is the next.
func (m *homes) run(ctx context.Context) error {
	for ctx.Err() == nil {
		cost := time.Duration(m.refresh(ctx))
		pause.For(ctx, cost*askedPer)
		t := time.NewTimer(min(max(refreshEvery, cost*refreshPer), refreshMax) - cost*askedPer)
		select {
		case <-ctx.Done():
		case <-m.ask:
			_ = m.asked.Wait(ctx) // it fails only with ctx
		case <-t.C:
		}
		t.Stop()
	}
	return nil
}

// refresh reads the files that changed and folds all of them; it returns how
// many there were.
func (m *homes) refresh(ctx context.Context) (cost int) {
	began := time.Now() // what is published after its listing is not in it
	snap, err := m.reader.Read(ctx)
	switch {
	case ctx.Err() != nil:
		return 0
	case err != nil:
		m.agent.log.Warn("read the edges files", "err", err)
	default:
		if m.files.Load() != nil { // the first gets all, though nothing moves
			cost = snap.Changed
		}
		for _, p := range snap.Problems {
			m.agent.log.Warn("an edges file is not understood", "err", p)
		}
		m.files.Store(&snap)
		fold := placement.Fold(snap.Files, m.fold.Load(), time.Now())
		m.fold.Store(fold)
		m.read.Store(began.UnixNano())
		m.report(fold.Conflicts())
	}
	m.wake()
	return cost
}

// report alerts names that two boxes claim under one stamp, as long as they do.
func (m *homes) report(conflicts []placement.Conflict) {
	now := map[string]bool{}
	for _, c := range conflicts {
		now[c.Name] = true
		m.agent.alerts.Raise(alert.Conflict, c.Name, "several boxes say that they are home for one name under one stamp", "boxes", c.Boxes, "stamp", c.Stamp)
	}
	for name := range m.conflicts {
		if !now[name] {
			m.agent.alerts.Clear(alert.Conflict, name)
		}
	}
	m.conflicts = now
}

// soon makes the edges files be read now.
func (m *homes) soon() {
	select {
	case m.ask <- struct{}{}:
	default:
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

// home is where the map says a name is served. A name that it does not know may
// be new, or its home may have been lost just before this process began: until the
// files were read once, for a while after that, and later until they are read
// again, it is on its way.
func (m *homes) home(name string) (ingress.Home, bool) {
	now := time.Now()
	known := m.fold.Load()
	if known == nil {
		return ingress.Home{Transit: true}, true
	}
	h, status := known.Lookup(name, now)
	switch status {
	case placement.Known:
		return ingress.Home{Box: h.Box, Addr: h.Address, Stamp: h.Stamp}, true
	case placement.InTransit:
		return ingress.Home{Transit: true}, true
	}
	old := now.Sub(time.Unix(0, m.read.Load())) > judgesFor
	if old {
		m.soon()
	}
	waits := old || now.Sub(m.began) < youngFor
	return ingress.Home{Transit: waits}, waits
}

// elsewhere reports whether another box publishes the host, and did so lately.
func (m *homes) elsewhere(host string, now time.Time) bool {
	h, status := m.fold.Load().Lookup(host, now)
	if status != placement.Known || h.Host != host || h.Box == m.agent.self.Box {
		return false
	}
	file, ok := m.files.Load().File(h.Box)
	return ok && file.Fresh(now) == nil
}

// peers lists the internal addresses of the boxes named, and of the workers;
// with no names, of all others. Where it does not know one of them, or no worker,
// the files are read again: those that are told of the next step are known then.
func (m *homes) peers(refs []string) []string {
	snap := m.files.Load()
	if snap == nil {
		return nil
	}
	var list []string
	workers := 0
	for _, f := range snap.Files {
		e := f.Edges
		if e.Box == m.agent.self.Box || e.Region != m.agent.set.Region || e.Internal == "" {
			continue
		}
		works := contains(e.Capabilities, placement.CapabilityWorker)
		if works {
			workers++
		}
		if refs == nil || contains(refs, e.Box) || works {
			list = append(list, e.Internal)
		}
	}
	if workers == 0 || !m.known(*snap, refs) {
		m.soon()
	}
	return list
}

// known reports whether snap has a file of each of these boxes.
func (m *homes) known(snap placement.Snapshot, refs []string) bool {
	return !slices.ContainsFunc(refs, func(ref string) bool {
		_, ok := snap.File(ref)
		return !ok && ref != m.agent.self.Box && ref != "" && ref != hostclaim.None
	})
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }
