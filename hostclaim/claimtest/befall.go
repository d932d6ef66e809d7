package claimtest

import (
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// box picks a box; one time in two it is one that the claim is about.
func (r *run) box() *Box {
	if c := r.newest().Claim; c != nil && r.below(2) == 0 {
		if b := r.w.Box(c.Op.Target().Box); r.harsh && b != nil {
			return b
		}
		for _, ref := range []string{c.Op.Exec, c.Op.Target().Box, c.Op.Intent.Selected.Box} {
			if b := r.w.Box(ref); b != nil && r.below(2) == 0 {
				return b
			}
		}
	}
	return &r.w.Boxes[r.below(len(r.w.Boxes))]
}

// writes lets the app of a box write, or what was written reach the store.
func (r *run) writes() {
	if r.below(3) > 0 {
		for i := range r.w.Boxes {
			r.w.Write(r.w.Boxes[i].Ref)
		}
		r.tell("the apps write", Step{})
		return
	}
	if n := len(r.w.Generations); n > 0 {
		g := &r.w.Generations[n-1-r.below(min(n, 3))]
		r.tell("what was written arrives: "+g.ID, Step{})
		g.upload()
	}
}

// befall lets something happen to the world.
func (r *run) befall() {
	b := r.box()
	switch n := r.below(22); {
	case n < 4:
		if !b.Gone() && r.living() > 1 {
			r.tell("dies: "+b.Ref, Step{})
			r.w.Fence(b.Ref)
			b.DisksGone = r.below(2) == 0
		}
	case n < 5:
		if !b.Gone() && r.living() > 1 {
			r.tell("is declared lost: "+b.Ref, Step{})
			r.w.Declare(b.Ref)
		}
	case n < 8:
		r.change(b)
	case n < 10:
		r.tell("crashes: "+b.Ref, Step{})
		r.w.Crash(b.Ref)
		b.ReceiptLost = r.below(4) == 0
	case n < 11:
		b.Draining = !b.Draining
	case n < 12:
		r.tell("its app fails, or does not any more: "+b.Ref, Step{})
		b.Failing = !b.Failing
	case n < 13:
		if len(r.w.Boxes) < r.options.Boxes+3 {
			r.tell("another box is enrolled", Step{})
			r.w.Enroll()
		}
	case n < 15:
		r.spoil()
	case n < 17:
		r.see(b.Ref)
	default:
		r.pass()
	}
}

// change lets a box wedge, or come round; the disks of one that is gone may be
// destroyed.
func (r *run) change(b *Box) {
	switch {
	case b.Condition == Live:
		r.tell("wedges: "+b.Ref, Step{})
		b.Condition = Wedged
	case b.Condition == Wedged:
		r.tell("comes round: "+b.Ref, Step{})
		b.Condition = Live
	default:
		r.tell("its disks are destroyed: "+b.Ref, Step{})
		b.DisksGone = true
	}
}

// living counts the boxes that are not gone.
func (r *run) living() int {
	n := 0
	for _, b := range r.w.Boxes {
		if !b.Gone() {
			n++
		}
	}
	return n
}

// spoil lets the store lose what it held of a generation: its newest writes, or,
// rarely, so much that nothing complete is left.
func (r *run) spoil() {
	n := len(r.w.Generations)
	if n == 0 {
		return
	}
	g := &r.w.Generations[n-1]
	if r.below(4) == 0 {
		r.tell("the store loses objects of "+g.ID, Step{})
		g.Broken = true
	} else if g.TXID > max(1, g.From.TXID) && g.FilesSeq > 1 {
		r.tell("the store loses the newest of "+g.ID, Step{})
		g.TXID, g.FilesSeq = g.TXID-1, g.FilesSeq-1
	}
}

// see lets a box look at the claim, or at what it saw late.
func (r *run) see(ref string) {
	o := r.newest()
	if r.below(3) == 0 {
		o = r.older()
	}
	r.tell("looks: "+ref, Step{})
	r.w.Learn(ref, o.Claim)
}

// pass lets time pass.
func (r *run) pass() {
	d := []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, hostclaim.AckDeadline, hostclaim.DrainDeadline, 2 * hostclaim.SpareDeadline}[r.below(6)]
	r.tell("time passes: "+d.String(), Step{})
	r.w.Now = r.w.Now.Add(d)
}
