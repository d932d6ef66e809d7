package worker

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// maxQueued bounds the queue; what does not fit is found by the next sweep.
const maxQueued = 100_000

// rank is the place of a host among those that wait: one whose move runs before
// one that is to be begun, of these one that is awake before one that sleeps, and
// then the one that changed last. The claim says so much without a request.
type rank struct {
	moving, awake bool
	changed       time.Time
}

// queue is the hosts that have something to be driven, each once: they wait for a
// driver, are driven, or are put off. While it is shut none is handed out.
type queue struct {
	mayBegin func() bool // another move may be begun now

	mu     sync.Mutex
	cond   *sync.Cond
	open   bool
	hosts  map[string]*slot
	moving []*slot // whose moves run, in the order in which they came
	begin  waiting // whose moves are to be begun
}

// slot is one host in the queue, and what is remembered of it while it is there.
// Its driver alone touches what is below again.
type slot struct {
	host   string
	rank   rank
	driven bool
	off    *time.Timer // it is put off until this fires
	again  bool        // it is to be looked at once more when its driver is done

	said     string    // what it last waited for
	failures int       // steps in a row that failed
	told     time.Time // when the boxes of its move were last told of it
}

func newQueue(mayBegin func() bool) *queue {
	q := &queue{mayBegin: mayBegin, hosts: map[string]*slot{}}
	q.cond = sync.NewCond(&q.mu)
	return q
}

// set opens or shuts the queue.
func (q *queue) set(open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = open
	q.cond.Broadcast()
}

func (q *queue) isOpen() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open
}

// size is how many hosts have something to be driven.
func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.hosts)
}

// awaitAny waits until a host is in the queue, though it is shut; false when ctx
// ended.
func (q *queue) awaitAny(ctx context.Context) bool {
	stop := context.AfterFunc(ctx, q.stir)
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for ctx.Err() == nil && len(q.hosts) == 0 {
		q.cond.Wait()
	}
	return ctx.Err() == nil
}

// stir lets everybody who waits look again.
func (q *queue) stir() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cond.Broadcast()
}

// add has a host driven: now, or once more where it is driven.
func (q *queue) add(host string, r rank) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.hosts[host]
	switch {
	case s == nil && len(q.hosts) < maxQueued:
		s = &slot{host: host, rank: r, told: time.Now()}
		q.hosts[host] = s
		q.push(s)
	case s == nil:
	case s.driven:
		s.again = true
	case s.off != nil:
		q.now(s)
	case r.moving && !s.rank.moving: // its place among those to be begun is void
		q.hosts[host] = &slot{host: host, rank: r, told: s.told}
		q.push(q.hosts[host])
	}
}

// has is for a host whose claim may have changed: its driver looks once more when
// it is done, and one that is put off soon looks anyway. False where the host is
// not in the queue.
func (q *queue) has(host string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.hosts[host]
	if s != nil {
		s.again = s.driven
	}
	return s != nil
}

// wake is has, and one that is put off is driven now.
func (q *queue) wake(host string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.hosts[host]
	if s != nil {
		s.again = s.driven
		q.now(s)
	}
	return s != nil
}

// wakeAll has everything driven now that is put off.
func (q *queue) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.hosts {
		s.again = s.driven
		q.now(s)
	}
}

// now puts a slot that is put off in its place, as push does with any. The caller
// holds mu, as for push.
func (q *queue) now(s *slot) {
	if s.off != nil {
		s.off.Stop()
		s.off = nil
		q.push(s)
	}
}

func (q *queue) push(s *slot) {
	if s.rank.moving {
		q.moving = append(q.moving, s)
	} else {
		heap.Push(&q.begin, s)
	}
	q.cond.Broadcast()
}

// take waits for the first host; false when ctx ended.
func (q *queue) take(ctx context.Context) (*slot, bool) {
	stop := context.AfterFunc(ctx, q.stir)
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for ctx.Err() == nil {
		if s := q.next(); s != nil {
			s.driven, s.again = true, false
			return s, true
		}
		q.cond.Wait()
	}
	return nil, false
}

func (q *queue) next() *slot {
	if !q.open {
		return nil
	}
	if len(q.moving) > 0 {
		s := q.moving[0]
		q.moving[0] = nil
		q.moving = q.moving[1:]
		return s
	}
	for q.begin.Len() > 0 && q.mayBegin() {
		if s := heap.Pop(&q.begin).(*slot); q.hosts[s.host] == s {
			return s
		}
	}
	return nil
}

// look is called by the driver of a host before it looks at it: what was added
// until then needs no other look. It reports whether the queue is open still.
func (q *queue) look(s *slot) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.again = false
	return q.open
}

// done gives back a host that has nothing to be driven.
func (q *queue) done(s *slot) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.driven = false
	if s.again {
		q.push(s)
		return
	}
	delete(q.hosts, s.host)
}

// putOff gives back a host that is to be driven again in a while, in the place
// that its rank then has. Nobody holds a place while it waits.
func (q *queue) putOff(s *slot, r rank, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.driven, s.rank = false, r
	if s.again || wait <= 0 {
		q.push(s)
		return
	}
	s.off = time.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.now(s)
	})
}

// waiting is a heap of hosts whose moves are to be begun, the first one first.
type waiting []*slot

func (h waiting) Len() int { return len(h) }

// Less orders by rank, and by name where that is the same.
func (h waiting) Less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case a.rank.awake != b.rank.awake:
		return a.rank.awake
	case !a.rank.changed.Equal(b.rank.changed):
		return a.rank.changed.After(b.rank.changed)
	}
	return a.host < b.host
}

func (h waiting) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is for package heap.
func (h *waiting) Push(x any) { *h = append(*h, x.(*slot)) }

// Pop is for package heap.
func (h *waiting) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return s
}
