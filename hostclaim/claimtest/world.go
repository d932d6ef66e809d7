package claimtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// Condition is how a box is.
type Condition uint8

// The conditions of a box.
const (
	Live     Condition = iota // it sees the claim and acts
	Wedged                    // it is alive, what runs on it runs on, and it takes no step
	Dead                      // its instance was read terminated
	Declared                  // it was switched off, and an operator declared it lost
)

// World is what is true beside the claim: the boxes, what lies in the store and
// what was acknowledged to clients, and the time. It is plain data: the honest
// actors of [Steps] take from it what they may know, and the checker what is
// so. Copy one with [World.Clone].
type World struct {
	Host, Region string
	Now          time.Time
	IDs          int // the number of the newest fresh id
	Boxes        []Box
	Generations  []Generation // in the order in which they began
	Proofs       *Proofs      // shared by all copies
}

// Box is one box of the region.
type Box struct {
	Ref, Enrollment string
	Condition       Condition
	GoneAt          time.Time // when it was found dead or declared lost
	Failing         bool      // the app fails its probes there
	DisksGone       bool      // its disks are destroyed, and that is on record
	Draining        bool      // it is to be emptied

	// Session runs on the box and writes Generation; 0: none does. Closed is
	// the newest session that the box never runs again.
	Session    uint64
	Generation string
	Closed     uint64

	ReceiptLost bool // it lost the receipt of its local install
}

// Member is the box in its enrollment.
func (b Box) Member() hostclaim.Member {
	return hostclaim.Member{Box: b.Ref, Enrollment: b.Enrollment}
}

// Gone reports whether there is evidence about the box.
func (b Box) Gone() bool { return b.Condition == Dead || b.Condition == Declared }

// Generation is what is true of one generation of the host's data. Each half,
// database and files, counts for itself.
type Generation struct {
	ID   string
	From hostclaim.Position // what it was restored or built from

	TXID, FilesSeq   uint64 // the newest in the store
	Manifest         bool   // a files manifest is in the store
	Acked, AckedSeq  uint64 // the newest that a client was promised
	Broken           bool   // no complete database can be read from the store any more
	Prepared, Opened bool   // it was built before it had a writer; a writer began on it
}

// NewWorld returns a region of live boxes named box-1, box-2 and so on, in which
// nothing has happened.
func NewWorld(p *Proofs, boxes int) *World {
	w := &World{Host: "shop.example", Region: "ie", Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Proofs: p}
	for range boxes {
		w.Enroll()
	}
	return w
}

// ID returns a fresh id.
func (w *World) ID(prefix string) string {
	w.IDs++
	return fmt.Sprintf("%s-%d", prefix, w.IDs)
}

// Clone returns a copy that shares only the proofs.
func (w *World) Clone() *World {
	out := *w
	out.Boxes, out.Generations = slices.Clone(w.Boxes), slices.Clone(w.Generations)
	return &out
}

// Equal reports whether the same is true in both worlds.
func (w *World) Equal(x *World) bool {
	return w.Host == x.Host && w.Region == x.Region && w.Now.Equal(x.Now) && w.IDs == x.IDs &&
		slices.Equal(w.Boxes, x.Boxes) && slices.Equal(w.Generations, x.Generations)
}

// Box finds a box by its reference; nil: there is none.
func (w *World) Box(ref string) *Box {
	for i := range w.Boxes {
		if w.Boxes[i].Ref == ref {
			return &w.Boxes[i]
		}
	}
	return nil
}

// Generation finds a generation; nil: nothing of it was ever begun.
func (w *World) Generation(id string) *Generation {
	for i := len(w.Generations) - 1; i >= 0; i-- {
		if w.Generations[i].ID == id {
			return &w.Generations[i]
		}
	}
	return nil
}

// Enroll adds a live box.
func (w *World) Enroll() {
	n := len(w.Boxes) + 1
	w.Boxes = append(w.Boxes, Box{Ref: fmt.Sprintf("box-%d", n), Enrollment: fmt.Sprintf("e-%d", n)})
}

// Fence lets a box die, and a worker find it terminated at once.
func (w *World) Fence(ref string) { w.gone(ref, Dead) }

// Declare lets an operator switch a box off and declare it lost.
func (w *World) Declare(ref string) { w.gone(ref, Declared) }

func (w *World) gone(ref string, c Condition) {
	b := w.Box(ref)
	b.Condition, b.GoneAt, b.Session, b.Generation = c, w.Now, 0, ""
}

// Crash ends what runs on a box, which forgets all but what it has on disk: a
// session that ran is over.
func (w *World) Crash(ref string) { w.Box(ref).stop() }

func (b *Box) stop() {
	b.Closed = max(b.Closed, b.Session)
	b.Session, b.Generation = 0, ""
}

// Write lets the app on a box promise its client one write of the database and
// one file.
func (w *World) Write(ref string) {
	if b := w.Box(ref); b.Session > 0 && !b.Gone() {
		g := w.Generation(b.Generation)
		g.Acked++
		g.AckedSeq++
	}
}

// Upload lets everything that was promised in a generation reach the store. It
// may happen late: what a dead box had sent already still arrives.
func (w *World) Upload(id string) {
	if g := w.Generation(id); g != nil {
		g.upload()
	}
}

func (g *Generation) upload() {
	g.TXID = max(g.TXID, g.Acked)
	if g.AckedSeq > g.FilesSeq {
		g.FilesSeq, g.Manifest = g.AckedSeq, true
	}
}

// Learn lets a live box see a claim: it stops what the claim does not name, and
// begins the session that the claim admits on it. It is what a box does after
// every read, and after every write of its own that it got the answer of.
func (w *World) Learn(ref string, c *hostclaim.Claim) {
	b := w.Box(ref)
	if b == nil || b.Condition != Live {
		return
	}
	h := (*hostclaim.Holder)(nil)
	if c != nil && c.Holder != nil && c.Holder.WriterBox == ref && c.Op.Exec == ref && c.Holder.Ended == nil {
		h = c.Holder
	}
	if b.Session > 0 && (h == nil || h.Session != b.Session) {
		if c != nil && c.Holder != nil && c.Holder.Session < b.Session {
			return // what it sees is older than what it runs
		}
		b.stop()
	}
	if h == nil || h.Session <= b.Closed || b.Session > 0 {
		return
	}
	b.Session, b.Generation = h.Session, h.Generation
	if g := w.Generation(h.Generation); g != nil {
		g.Opened = true
		return
	}
	from := h.Admissions[len(h.Admissions)-1].Baseline
	w.Generations = append(w.Generations, Generation{ID: h.Generation, From: from, Opened: true})
}

// Build makes a prepared generation complete in the store, at what was pinned.
func (w *World) Build(id string, from hostclaim.Position) {
	if w.Generation(id) == nil {
		w.Generations = append(w.Generations, Generation{ID: id, From: from, Prepared: true, Manifest: true, TXID: from.TXID, Acked: from.TXID})
	}
}

// Close ends a session on its box for good, with everything that was promised in
// its generation in the store. A box does so before it sends the end of a
// session or a release.
func (w *World) Close(ref string, session uint64, generation string) {
	b := w.Box(ref)
	b.Session, b.Generation, b.Closed = 0, "", max(b.Closed, session)
	if g := w.Generation(generation); g != nil {
		g.upload()
	}
}

// Root gives the generation of a running session its first durable state. A box
// does so before it publishes the generation.
func (w *World) Root(id string) {
	if g := w.Generation(id); g != nil {
		g.Acked, g.AckedSeq = max(g.Acked, 1), max(g.AckedSeq, 1)
		g.upload()
	}
}

// Baseline is what an honest box restores and an honest worker pins: the newest
// generation of the chain that holds anything, and the newest files manifest.
// False: the store does not hold a complete one, or nothing at all and nothing
// vouches for that; what is there of it is for an operator to accept.
func (w *World) Baseline(c *hostclaim.Claim) (hostclaim.Position, bool) {
	var p hostclaim.Position
	complete := true
	for _, l := range c.Chain() {
		g := w.Generation(l.Generation)
		if g == nil || g.TXID == 0 {
			continue
		}
		if complete = !g.Broken && g.TXID >= l.StopAt; complete {
			p.Generation, p.TXID = g.ID, g.TXID
			if l.StopAt > 0 {
				p.TXID = l.StopAt
			}
		}
		break
	}
	for _, id := range c.FilesChain() {
		if g := w.Generation(id); g != nil && g.Manifest {
			p.FilesGeneration, p.FilesSeq = g.ID, g.FilesSeq
			break
		}
	}
	return p, complete && vouched(c, p)
}

// vouched reports whether a half that is empty may be: no writer was ever
// admitted, or the newest began with nothing and ended with nothing.
func vouched(c *hostclaim.Claim, p hostclaim.Position) bool {
	h := c.Holder
	if h == nil || h.Session == 0 || c.Op.Journal.AcceptEmpty || p.Generation != "" && p.FilesGeneration != "" {
		return true
	}
	if h.Ended == nil {
		return false
	}
	from, end := h.Admissions[len(h.Admissions)-1].Baseline, h.Ended.Final
	return (p.Generation != "" || from.Generation == "" && end.TXID == 0) &&
		(p.FilesGeneration != "" || from.FilesGeneration == "" && end.FilesSeq == 0)
}

// Final is where the newest session of the claim ends once it has nothing left
// to store: in its own generation, or where it began if it wrote nothing.
func (w *World) Final(c *hostclaim.Claim) hostclaim.Position {
	h := c.Holder
	if h.Session == 0 {
		return hostclaim.Position{}
	}
	p := h.Admissions[len(h.Admissions)-1].Baseline
	g := w.Generation(h.Generation)
	if g == nil {
		return p
	}
	if n := max(g.TXID, g.Acked); n > 0 {
		p.Generation, p.TXID = g.ID, n
	}
	if n := max(g.FilesSeq, g.AckedSeq); g.Manifest || n > 0 {
		p.FilesGeneration, p.FilesSeq = g.ID, n
	}
	return p
}
