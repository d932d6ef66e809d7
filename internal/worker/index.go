package worker

import (
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/survey"
)

// entry is what a worker remembers of the newest claim that it saw of a host. It
// only says where to look: every step reads the claim again.
type entry struct {
	gen     uint64
	box     string    // which serves it, in this region; "": none
	moving  bool      // a relocation of this region runs
	stuck   bool      // and waits for an operator
	why     string    // it is stuck
	since   time.Time // when the move began
	boxes   []string  // that take part in it
	awake   bool      // its session has not ended
	changed time.Time // the store's time of this claim, or when this worker saw it
	owes    []string  // boxes that still have an old copy to retire
}

func entryOf(region string, c *hostclaim.Claim, changed time.Time) entry {
	e := entry{gen: c.Gen, changed: changed}
	if c.Holder == nil || c.Holder.Region != region {
		return e
	}
	e.awake, e.owes = c.Holder.Ended == nil, survey.Owing(c)
	switch c.Op.Kind {
	case hostclaim.Serving:
		e.box = c.Op.Exec
	case hostclaim.Relocating:
		e.moving, e.since, e.boxes = true, c.Op.StartedAt, c.Op.Participants
		if stuck := c.Op.Journal.Stuck; stuck != nil {
			e.stuck, e.why = true, string(stuck.Reason)
		}
	}
	return e
}

// index is the newest entry of each host, and who has which.
type index struct {
	mu     sync.Mutex
	by     map[string]entry
	on     map[string]map[string]bool // hosts by the box that serves them
	owed   map[string]map[string]bool // hosts by the box that has an old copy of them
	moving map[string]bool
}

// put takes in what is newer than what there is, and returns what there was.
func (x *index) put(host string, e entry) (was entry, newer bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by == nil {
		x.by, x.moving = map[string]entry{}, map[string]bool{}
		x.on, x.owed = map[string]map[string]bool{}, map[string]map[string]bool{}
	}
	was, known := x.by[host]
	if known && was.gen >= e.gen {
		return was, false
	}
	drop(x.on, was.box, host)
	keep(x.on, e.box, host)
	for _, box := range was.owes {
		drop(x.owed, box, host)
	}
	for _, box := range e.owes {
		keep(x.owed, box, host)
	}
	delete(x.moving, host)
	if e.moving {
		x.moving[host] = true
	}
	x.by[host] = e
	return was, true
}

func keep(hosts map[string]map[string]bool, box, host string) {
	switch {
	case box == "":
		return
	case hosts[box] == nil:
		hosts[box] = map[string]bool{}
	}
	hosts[box][host] = true
}

func drop(hosts map[string]map[string]bool, box, host string) {
	delete(hosts[box], host)
	if len(hosts[box]) == 0 {
		delete(hosts, box)
	}
}

func (x *index) get(host string) entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.by[host]
}

// countOn is how many hosts a box serves.
func (x *index) countOn(box string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.on[box])
}

// hostsOn lists the hosts that a box serves.
func (x *index) hostsOn(box string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return keys(x.on[box])
}

// owing lists the hosts that a box has an old copy of.
func (x *index) owing(box string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return keys(x.owed[box])
}

// active is how many moves run whose claims changed after a time, and that wait
// for no operator.
func (x *index) active(after time.Time) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for host := range x.moving {
		if e := x.by[host]; !e.stuck && e.changed.After(after) {
			n++
		}
	}
	return n
}

// running lists the hosts whose relocation runs.
func (x *index) running() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return keys(x.moving)
}

func keys(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for name := range set {
		list = append(list, name)
	}
	return list
}

// saw takes in a claim that was just read or written.
func (w *Worker) saw(c *hostclaim.Claim) { w.sawAt(c, time.Now()) }

// sawAt takes in a claim of the store's time changed.
func (w *Worker) sawAt(c *hostclaim.Claim, changed time.Time) {
	e := entryOf(w.set.Region, c, changed)
	was, newer := w.claims.put(c.Host, e)
	if !newer {
		return
	}
	if was.moving && e.box != "" {
		w.gauges.moved.Add(1)
	}
	if was.moving && !e.moving {
		w.queue.stir() // another may be begun
	}
	switch {
	case e.stuck:
		w.tellStuck(c.Host, e)
	case was.stuck:
		w.alerts.Clear(alert.Stuck, c.Host)
	}
}

// concerns reports whether a host has something to be driven, as far as this
// worker has seen: its relocation runs, or its box is gone or to be emptied.
func (w *Worker) concerns(e entry) bool {
	return e.moving || e.box != "" && (w.gone.has(e.box) || w.draining.has(e.box))
}

// enqueue queues a host in its place.
func (w *Worker) enqueue(host string, e entry) { w.queue.add(host, rankOf(e)) }

func rankOf(e entry) rank { return rank{moving: e.moving, awake: e.awake, changed: e.changed} }

// requeue queues every host that has something to be driven. It looks only at
// the boxes that are gone or drain, and at what moves.
func (w *Worker) requeue() {
	for _, host := range w.claims.running() {
		w.enqueue(host, w.claims.get(host))
	}
	for _, e := range w.gone.boxes() {
		w.requeueOn(e.Box())
	}
	for _, box := range w.draining.list() {
		w.requeueOn(box)
	}
}

func (w *Worker) requeueOn(box string) {
	for _, host := range w.claims.hostsOn(box) {
		w.enqueue(host, w.claims.get(host))
	}
}

// queueHostsOf queues what runs on a box that is to be left: the hosts that this
// worker saw there, and those of the box's edges file as of the last look that
// it last saw elsewhere or not at all, whose claims are read. It makes no request.
func (w *Worker) queueHostsOf(box string) {
	w.requeueOn(box)
	file, _ := w.survey.Edges().File(box)
	for host := range file.Edges.Hosts {
		if e := w.claims.get(host); e.box != box && !e.moving {
			w.news.add(host)
		}
	}
}
