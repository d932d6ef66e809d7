package explore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostclaim/claimtest"
)

// key identifies a canonical form.
type key [16]byte

// canon is the canonical form of a state: what its futures depend on, with
// every name and number replaced by the place that it has in the state.
func canon(s *State) key {
	f := &form{s: s, c: s.Claim, out: make([]byte, 0, 512)}
	f.rank()
	f.claim()
	records := make([][]byte, len(s.World.Boxes))
	for i := range records {
		records[i] = f.box(i)
	}
	slices.SortFunc(records, bytes.Compare)
	for _, r := range records {
		f.out = append(f.out, r...)
	}
	sum := sha256.Sum256(f.out)
	return key(sum[:16])
}

type form struct {
	s     *State
	c     *hostclaim.Claim
	out   []byte
	ranks []uint64 // every stamp and session that a rule compares, in order
	names []string // generations, in the order in which they appear
}

// rank collects the numbers. Rules only compare them, and each new one is over
// all of them.
func (f *form) rank() {
	f.ranks = append(f.ranks, 0)
	if f.c != nil && f.c.Holder != nil {
		h, j := f.c.Holder, f.c.Op.Journal
		f.ranks = append(f.ranks, h.Stamp, h.Session, j.InstallStamp, j.PreparedStamp)
		if j.Release != nil {
			f.ranks = append(f.ranks, j.Release.Session)
		}
	}
	slices.Sort(f.ranks)
	f.ranks = slices.Compact(f.ranks)
}

func (f *form) number(n uint64) {
	i, _ := slices.BinarySearch(f.ranks, n)
	f.out = append(f.out, byte(i))
}

func (f *form) flags(bits ...bool) {
	var n uint32
	for i, b := range bits {
		if b {
			n |= 1 << i
		}
	}
	f.out = binary.LittleEndian.AppendUint32(f.out, n)
}

func (f *form) text(s string) { f.out = append(append(f.out, s...), 0) }

func (f *form) name(generation string) {
	if generation == "" {
		f.out = append(f.out, 0)
		return
	}
	i := slices.Index(f.names, generation)
	if i < 0 {
		i, f.names = len(f.names), append(f.names, generation)
	}
	f.out = append(f.out, byte(i+1))
}

func (f *form) position(p hostclaim.Position) {
	f.name(p.Generation)
	f.name(p.FilesGeneration)
	f.out = binary.AppendUvarint(f.out, p.TXID)
	f.out = binary.AppendUvarint(f.out, p.FilesSeq)
}

func (f *form) claim() {
	f.out = append(f.out, byte(f.s.Faults))
	if f.c == nil {
		return
	}
	o, j := f.c.Op, f.c.Op.Journal
	f.text(string(o.Kind))
	f.text(string(o.Phase))
	f.text(string(o.Reason()))
	if j.Stuck != nil {
		f.text(string(j.Stuck.Reason))
	}
	f.out = append(f.out, 0, f.left())
	f.flags(j.AcceptEmpty, o.Exec == hostclaim.None, f.c.Holder == nil, j.PreparedAuthority != nil, j.LocalInstall != nil,
		j.Probe != nil, len(j.Abandoned) > 0, len(f.c.PendingLosses()) > 0, f.owes(hostclaim.ParkGeneration), f.owes(hostclaim.ParkReplica),
		len(f.c.RetiredIncarnations) > 0, j.Target.Box != "")
	if f.c.Holder != nil && o.Kind != hostclaim.Parking {
		f.holder()
		f.data()
	}
}

// left is how often another target may be named. An operation names no box
// twice by itself, and an operator grants what it takes, so more than there are
// boxes to name is as good as that.
func (f *form) left() byte {
	o := f.c.Op
	if o.Kind != hostclaim.Relocating {
		return 0
	}
	return byte(min(hostclaim.MaxReplacements+o.Journal.Granted-o.Journal.Replacements, len(f.s.World.Boxes)-1))
}

func (f *form) owes(kind string) bool {
	return slices.ContainsFunc(f.c.Obligations, func(o hostclaim.Obligation) bool { return o.Kind == kind })
}

func (f *form) holder() {
	h, j := f.c.Holder, f.c.Op.Journal
	for _, n := range []uint64{h.Stamp, h.Session, j.InstallStamp, j.PreparedStamp} {
		f.number(n)
	}
	f.name(h.Generation)
	f.name(j.Prepared)
	f.name(j.PreparedOpened)
	f.flags(h.Ended != nil, j.Release != nil, j.Pin != nil, j.Probe != nil && j.Probe.Session == h.Session)
	if h.Ended != nil {
		f.position(h.Ended.Final)
	}
	if r := j.Release; r != nil {
		f.number(r.Session)
		f.name(r.Generation)
		f.position(r.Final)
	}
	if j.Pin != nil {
		f.position(j.Pin.Position)
	}
	f.out = append(f.out, byte(j.ProbeAttempts), byte(j.ProbeAdmission))
	f.admissions()
}

// admissions are told back to the newest published one: no chain of baselines
// goes beyond it. Of those before it only what is still to be reported counts.
func (f *form) admissions() {
	list := f.c.Holder.Admissions
	for i := len(list) - 1; i >= 0; i-- {
		r := list[i]
		f.name(r.Generation)
		f.flags(r.Published)
		if r.Published {
			break
		}
		f.position(r.Baseline)
	}
	f.out = append(f.out, 255)
}

// data is what is true of the generations that a baseline can come from.
func (f *form) data() {
	for i := 0; i < len(f.names); i++ {
		g := f.s.World.Generation(f.names[i])
		if g == nil {
			f.out = append(f.out, 255)
			continue
		}
		for _, n := range []uint64{g.TXID, g.FilesSeq, g.Acked, g.AckedSeq} {
			f.out = binary.AppendUvarint(f.out, n)
		}
		f.flags(g.Manifest, g.Broken)
	}
}

// box is everything that the claim and the world say about one box. Since no
// rule compares boxes, the set of these records is all that counts of them.
func (f *form) box(i int) []byte {
	b := f.s.World.Boxes[i]
	from := len(f.out)
	f.out = append(f.out, byte(b.Condition))
	closed := f.c != nil && f.c.Holder != nil && b.Closed >= f.c.Holder.Session
	f.flags(append([]bool{b.Session > 0, closed, b.DisksGone, b.ReceiptLost, f.s.local(i)}, f.roles(b)...)...)
	record := slices.Clone(f.out[from:])
	f.out = f.out[:from]
	return record
}

func (f *form) roles(b claimtest.Box) []bool {
	if f.c == nil {
		return nil
	}
	o, j := f.c.Op, f.c.Op.Journal
	_, fenced := j.Fences[b.Ref]
	return []bool{
		o.Exec == b.Ref, o.Intent.Source.Box == b.Ref, o.Target().Box == b.Ref, o.Intent.Selected.Box == b.Ref,
		o.Participates(b.Ref), j.Acks[b.Ref] != "", slices.Contains(j.Replaced, b.Ref), fenced,
		slices.Contains(f.c.Touched, b.Ref), f.c.IsLost(b.Ref), f.c.Owes(b.Ref, hostclaim.ParkLocal),
		j.Release != nil && j.Release.Box == b.Ref, f.c.Holder != nil && f.c.Holder.WriterBox == b.Ref,
	}
}
