package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

const (
	// few is how many notes of each other host are acknowledged before the box
	// dies, and how many after it serves again.
	few = 3

	// noticeEvery is how often progress is said while hosts come back.
	noticeEvery = time.Second
)

// neighbourhood is the other hosts of the region while a box dies, and what
// became of the whole region.
type neighbourhood struct {
	region *region
	hosts  []neighbour
	before spread

	after  spread
	came   []comeback // of every host that was on the box that died, the first one's too
	stayed []outcome  // of those that were not
	died   *box
	broken []string
}

// neighbour is one host that is written to while the box dies.
type neighbour struct {
	host string
	from home
	*writer
}

// comeback is how one host came back.
type comeback struct {
	outcome
	serves time.Duration // from the box's death to the first note acknowledged after the longest gap
}

// neighbours are all hosts but the first, to be written to through via, each the
// slower the more there are.
func (r *region) neighbours(ctx context.Context, via *box) (neighbourhood, error) {
	n := neighbourhood{region: r}
	var err error
	if n.before, err = r.spread(ctx); err != nil {
		return n, err
	}
	for _, host := range r.hosts[1:] {
		from, err := r.home(ctx, host)
		if err != nil {
			return n, err
		}
		w := newWriter(newClient(via.address("ingress"), host), "note", answerWithin)
		w.slower = min(max(len(r.hosts)/4, 1), 20)
		if err := w.fill(ctx, int64(r.opts.dbSize)); err != nil {
			return n, err
		}
		n.hosts = append(n.hosts, neighbour{host, from, w})
	}
	if len(n.hosts) > 0 {
		r.say("writing to %d other hosts too: %s", len(n.hosts), n.before)
	}
	return n, nil
}

func (n neighbourhood) writing() (run []func(context.Context)) {
	for _, host := range n.hosts {
		run = append(run, host.run)
	}
	return run
}

// warm waits until each host has something to lose.
func (n neighbourhood) warm(ctx context.Context) error {
	return n.more(ctx, "each host has acknowledged some notes")
}

// more waits until each host acknowledged few more notes.
func (n neighbourhood) more(ctx context.Context, what string) error {
	want := map[string]int{}
	for _, host := range n.hosts {
		notes, _ := host.acked()
		want[host.host] = len(notes) + few
	}
	return until(ctx, startWithin, what, func(context.Context) (bool, error) {
		for _, host := range n.hosts {
			if notes, _ := host.acked(); len(notes) < want[host.host] {
				return false, nil
			}
		}
		return true, nil
	})
}

// recover waits until each host of the dead box serves on another, and says how
// many do.
func (n neighbourhood) recover(ctx context.Context, dead *box, look *watch) error {
	said, limit := time.Now(), recoverWithin+n.region.opts.pinDelay
	err := until(ctx, limit, "all hosts of "+dead.ref+" serve again", func(context.Context) (bool, error) {
		left, all := 0, n.before[dead]
		for _, host := range n.hosts {
			v, ok := look.latest(host.host)
			if host.from.box == dead && (!ok || !servesBeside(v.Claim, dead)) {
				left++
			}
		}
		if all > 1 && (left == 0 || time.Since(said) > noticeEvery) {
			said = time.Now()
			n.region.say("%d of the %d hosts of %s serve again", all-left, all, dead.ref)
		}
		return left == 0, nil
	})
	if err != nil {
		return err
	}
	return n.more(ctx, "each host acknowledges notes")
}

// servesBeside reports whether a host serves on another box than dead.
func servesBeside(c *hostclaim.Claim, dead *box) bool {
	return c.Op.Kind == hostclaim.Serving && c.Op.Exec != dead.ref
}

// judge holds what was seen of each host against what is promised. of is what is
// known of the box's death.
func (n *neighbourhood) judge(ctx context.Context, of evidence, look *watch) (err error) {
	for _, host := range n.hosts {
		ev := of
		ev.zombie = nil // it was written to for the first host only
		if err := n.region.collect(ctx, &ev, host.from, host.writer, look); err != nil {
			return fmt.Errorf("%s: %w", host.host, err)
		}
		var o outcome
		if host.from.box.ended() != nil || n.region.opts.zombie && host.from.box == look.apart {
			o = judge(ev)
			n.add(o)
		} else {
			o = judgeStayed(ev)
			n.stayed = append(n.stayed, o)
		}
		for _, promise := range o.broken {
			n.broken = append(n.broken, host.host+": "+promise)
		}
	}
	n.after, err = n.region.spread(ctx)
	return err
}

// add counts in a host that came back.
func (n *neighbourhood) add(o outcome) {
	n.died = n.region.box(o.source)
	n.came = append(n.came, comeback{o, firstAfter(o.notes, o.died).Sub(o.died)})
	slices.SortFunc(n.came, func(a, b comeback) int { return cmp.Compare(a.serves, b.serves) })
}

// firstAfter is when the first note was acknowledged that ended the longest gap
// which reaches beyond died.
func firstAfter(notes []ack, died time.Time) (first time.Time) {
	var longest time.Duration
	for i := 1; i < len(notes); i++ {
		if gap := notes[i].at.Sub(notes[i-1].at); notes[i].at.After(died) && gap > longest {
			longest, first = gap, notes[i].at
		}
	}
	return first
}

// judgeStayed holds a host against what is promised where another's box dies:
// nothing happens to it.
func judgeStayed(ev evidence) outcome {
	o := outcome{evidence: ev, unavailable: gap(ev.notes)}
	if ev.writers > 1 {
		o.breaks("the app ran on %d boxes at one time", ev.writers)
	}
	for _, v := range ev.versions {
		if v.Op.Exec != ev.source {
			o.breaks("claim %d: it left its box, which lives", v.Gen)
		}
	}
	o.judgeClaims()
	o.judgeRows()
	o.judgeNotes()
	return o
}

// print closes the run with a table of the region, where it has other hosts.
func (n neighbourhood) print(t *teller) {
	if len(n.hosts) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "box\thosts before\tafter")
	for _, box := range n.region.boxes {
		after := fmt.Sprint(n.after[box])
		if box == n.died {
			after = "gone"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", box.ref, n.before[box], after)
	}
	w.Flush()
	b.WriteString("\n")
	r := n.result()
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("hosts that came back", "%d, after the box's death the first in %s, half in %s, the last in %s", r.CameBack,
		millis(r.FirstMS), millis(r.MedianMS), millis(r.LastMS))
	row("hosts that stayed", "%d, at most %s between two writes", r.Stayed, millis(r.StayedGapMS))
	row("lost in all", "%d and declared, %d and undeclared", r.LostDeclared, r.LostUndeclared)
	row("writers of a host", "%d at one time at most", r.MaxWriters)
	w.Flush()
	printBroken(&b, n.broken)
	t.print(b.String())
}

func millis(ms int64) string { return seconds(time.Duration(ms) * time.Millisecond) }

// regionResult is the part of -json about a region of several hosts. Times are
// from the box's death.
type regionResult struct {
	Boxes          int   `json:"boxes"`
	Hosts          int   `json:"hosts"`
	CameBack       int   `json:"came_back"`
	FirstMS        int64 `json:"first_ms"`
	MedianMS       int64 `json:"median_ms"`
	LastMS         int64 `json:"last_ms"`
	DetectedMS     int64 `json:"detected_ms"` // a worker read the box terminated
	Stayed         int   `json:"stayed"`
	StayedGapMS    int64 `json:"stayed_gap_ms"`
	LostDeclared   int   `json:"lost_declared"`
	LostUndeclared int   `json:"lost_undeclared"`
	MaxWriters     int   `json:"max_writers"`
}

func (n neighbourhood) result() *regionResult {
	r := &regionResult{Boxes: len(n.region.boxes), Hosts: len(n.region.hosts), CameBack: len(n.came), Stayed: len(n.stayed)}
	for _, c := range n.came {
		r.LostDeclared += c.lostDeclared
		r.LostUndeclared += c.lostUndeclared
		r.MaxWriters = max(r.MaxWriters, c.writers)
		r.DetectedMS = max(r.DetectedMS, c.detected.Sub(c.died).Milliseconds())
	}
	if len(n.came) > 0 {
		r.FirstMS = n.came[0].serves.Milliseconds()
		r.MedianMS = n.came[len(n.came)/2].serves.Milliseconds()
		r.LastMS = n.came[len(n.came)-1].serves.Milliseconds()
	}
	for _, o := range n.stayed {
		r.LostUndeclared += o.lostUndeclared
		r.MaxWriters = max(r.MaxWriters, o.writers)
		r.StayedGapMS = max(r.StayedGapMS, o.unavailable.Milliseconds())
	}
	return r
}
