package region_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// What a public cloud asks for a thousand requests, in dollars.
const (
	getPrice   = 0.0004
	writePrice = 0.005 // and listings
)

// counts is requests by cell, and over how long.
type counts struct {
	by     map[cell]int
	during time.Duration
}

// sum counts the requests for which pass holds.
func (c counts) sum(pass func(cell) bool) (n float64) {
	for at, k := range c.by {
		if pass(at) {
			n += float64(k)
		}
	}
	return n
}

// price is what the requests of one process cost a day, in dollars.
func (c counts) price(pass func(cell) bool) (dollars float64) {
	for at, k := range c.by {
		each := writePrice
		if at.op == "GET" {
			each = getPrice
		}
		if pass(at) {
			dollars += float64(k) * each / 1000
		}
	}
	return dollars * float64(24*time.Hour) / float64(c.during)
}

// result is what one scenario came to.
type result struct {
	name                 string
	moved                int
	took                 time.Duration
	fromDeath, fromFence []time.Duration // of each host, until it served again
	each                 []time.Duration // of each host's newest move
	busy, rest           counts          // in the scenario, and in the region at rest before it
	requests, moves      int             // at once, at most
	heap                 uint64          // bytes, at most
	before, after        []int           // hosts of each live box
	dead                 []string        // boxes that ask for nothing any more
	processor            time.Duration
}

// start is what a scenario begins with.
type start struct {
	rest      counts
	before    []int
	processor time.Time
}

// begin watches the region at rest, and counts anew from then on.
func (r *region) begin() start {
	s := start{rest: r.watch(*rest), before: r.spread()}
	runtime.GC()
	r.ledger.restart()
	r.heap.Store(heap())
	s.processor = processor()
	return s
}

// watch counts what happens in the next while.
func (r *region) watch(d time.Duration) counts {
	r.seen.take()
	time.Sleep(d)
	c, _ := r.seen.take()
	return c
}

// finish lets everybody take in what happened, and makes the result.
func (r *region) finish(name string, s start, moved int) result {
	time.Sleep(settle)
	out := result{name: name, moved: moved, rest: s.rest, before: s.before, after: r.spread(), heap: r.heap.Load(), processor: processor().Sub(s.processor)}
	out.busy, out.requests = r.seen.take()
	out.moves = r.ledger.most()
	return out
}

// extra is the requests for which pass holds that the living of the region at
// rest would not have made, for each host that moved.
func (o result) extra(pass func(cell) bool) float64 {
	lives := func(at cell) bool { return pass(at) && !slices.Contains(o.dead, at.who) }
	atRest := o.rest.sum(lives) * float64(o.busy.during) / float64(o.rest.during)
	return (o.busy.sum(pass) - atRest) / float64(o.moved)
}

func (o result) perHost() float64 { return o.extra(func(cell) bool { return true }) }

func (o result) print() {
	fmt.Printf("\n%s\n", o.name)
	fmt.Printf("  all served after      %s\n", round(o.took))
	times("a host served again", o.fromDeath)
	times("after the fence", o.fromFence)
	times("one move took", o.each)
	fmt.Printf("  at once               %d moves, %d requests; %d MB of memory\n", o.moves, o.requests, o.heap>>20)
	fmt.Printf("  hosts of a box        %s before, %s after (least, median, most)\n", three(o.before), three(o.after))
	fmt.Printf("  requests of a host    %.1f: GET %.1f, PUT %.1f, LIST %.1f\n", o.perHost(), o.extra(of("GET")), o.extra(of("PUT")), o.extra(of("LIST")))
	fmt.Printf("  processor time        %s\n", o.processor.Round(100*time.Millisecond))
	fmt.Printf("    %-26s %22s %28s\n", "by prefix", "worker GET PUT LIST", "boxes GET PUT LIST")
	for _, prefix := range o.busy.prefixes() {
		fmt.Printf("    %-26s", prefix)
		for _, isDriver := range []bool{true, false} {
			fmt.Print("  ")
			for _, op := range []string{"GET", "PUT", "LIST"} {
				fmt.Printf(" %8.2f", o.extra(func(c cell) bool { return c.prefix == prefix && c.op == op && (c.who == driver) == isDriver }))
			}
		}
		fmt.Println()
	}
}

func of(op string) func(cell) bool { return func(c cell) bool { return c.op == op } }

func (c counts) prefixes() []string {
	seen := map[string]bool{}
	for at := range c.by {
		seen[at.prefix] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

func times(what string, all []time.Duration) {
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	fmt.Printf("  %-22sp50 %s, p99 %s, last %s\n", what, round(all[len(all)/2]), round(all[len(all)*99/100]), round(all[len(all)-1]))
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

func three(all []int) string {
	slices.Sort(all)
	return fmt.Sprint(all[0], " ", all[len(all)/2], " ", all[len(all)-1])
}

// spread is how many hosts each live box has, as the claims say.
func (r *region) spread() (all []int) {
	on := map[string]int{}
	for _, h := range r.ledger.copyOf() {
		on[h.exec]++
	}
	for _, b := range r.all() {
		if !b.control.isDead() {
			all = append(all, on[b.ref])
		}
	}
	return all
}

// idle is what a region asks at rest.
type idle struct {
	counts
	boxes, hosts, crowd int
}

func (r *region) atRest(d time.Duration) idle {
	crowd := len(r.on(boxName(0)))
	return idle{r.watch(d), len(r.boxes), len(r.ledger.hosts), crowd}
}

func (i idle) print() {
	fmt.Printf("\nat rest for %s: %d boxes, %d hosts\n", i.during, i.boxes, i.hosts)
	line := func(who string, share float64, pass func(cell) bool) {
		fmt.Printf("  %-28s", who)
		for _, op := range []string{"GET", "PUT", "LIST"} {
			n := i.sum(func(c cell) bool { return pass(c) && c.op == op })
			fmt.Printf(" %s %7.0f,", op, n/share/i.during.Hours())
		}
		fmt.Printf(" an hour; $%.4f a day\n", i.price(pass)/share)
	}
	first := boxName(0)
	line(fmt.Sprintf("the box with %d hosts", i.crowd), 1, func(c cell) bool { return c.who == first })
	line("each of the others", float64(i.boxes-1), func(c cell) bool { return strings.HasPrefix(c.who, "box-") && c.who != first })
	line("the worker", 1, func(c cell) bool { return c.who == driver })
	for _, prefix := range i.prefixes() {
		line("  "+prefix, 1, func(c cell) bool { return c.who == first && c.prefix == prefix })
	}
}
