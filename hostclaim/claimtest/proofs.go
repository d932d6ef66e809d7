package claimtest

import (
	"sync"
	"testing"
	"time"

	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/boxvolumes/volumestest"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/resolution"
	"github.com/carlosframework/regionha/resolution/resolutiontest"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
	"github.com/carlosframework/regionha/termfence"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

// Proofs makes the verified values that transitions take, each once: evidence
// that a box is gone, stop receipts and resolutions. They are real, so a guard
// that takes too many is found out. It is safe for concurrent use, as long as
// the test that it was made for runs.
type Proofs struct {
	tb testing.TB

	mu          sync.Mutex
	evidence    map[fact]termfence.Evidence
	destroyed   map[fact]termfence.Destroyed
	verdicts    map[fact]boxvolumes.Verdict
	receipts    map[stopped]stopevidence.Receipt
	resolutions map[decision]resolution.Resolution
}

// fact is what evidence is about.
type fact struct {
	hostclaim.Member
	region   string
	at       int64
	declared bool
}

// stopped is what a receipt is about.
type stopped struct {
	hostclaim.Member
	host, op, incarnation string
	stamp, session        uint64
}

// decision is what a resolution is about.
type decision struct {
	hostclaim.Member
	host, op    string
	n           int
	gen         uint64
	acceptEmpty bool
}

// keepProofs bounds each kind of value that is remembered.
const keepProofs = 50_000

// NewProofs returns proofs that live as long as the test.
func NewProofs(tb testing.TB) *Proofs {
	return &Proofs{
		tb:       tb,
		evidence: map[fact]termfence.Evidence{}, destroyed: map[fact]termfence.Destroyed{}, verdicts: map[fact]boxvolumes.Verdict{},
		receipts: map[stopped]stopevidence.Receipt{}, resolutions: map[decision]resolution.Resolution{},
	}
}

// Gone is the evidence that a box is gone. It is the zero value for a box that
// is not.
func (w *World) Gone(ref string) hostclaim.Gone {
	b := w.Box(ref)
	if b == nil || !b.Gone() {
		return hostclaim.Gone{}
	}
	p, f := w.Proofs, fact{Member: b.Member(), region: w.Region, at: b.GoneAt.UnixNano(), declared: b.Condition == Declared}
	read := fencetest.Evidence
	if f.declared {
		read = fencetest.Declared
	}
	g := hostclaim.Gone{Evidence: once(p, p.evidence, f, func() termfence.Evidence {
		return read(p.tb, b.Ref, b.Enrollment, w.Region, b.GoneAt)
	})}
	if b.DisksGone && !f.declared {
		f.at = 0
		g.Volumes = once(p, p.verdicts, f, func() boxvolumes.Verdict { return volumestest.Discharged(p.tb, b.Ref, b.Enrollment) })
	}
	return g
}

// Destroyed is the operator's statement that the disks of a box are gone.
func (w *World) Destroyed(b Box) termfence.Destroyed {
	p := w.Proofs
	return once(p, p.destroyed, fact{Member: b.Member(), region: w.Region}, func() termfence.Destroyed {
		return fencetest.Destroyed(p.tb, b.Ref, b.Enrollment, w.Region)
	})
}

// Receipt is the stop receipt of a box for the newest session and stamp of the
// claim. An honest box makes one only once it has closed that session.
func (w *World) Receipt(c *hostclaim.Claim, m hostclaim.Member) stopevidence.Receipt {
	p, h := w.Proofs, c.Holder
	s := stopped{Member: m, host: c.Host, op: c.Op.ID, incarnation: h.Incarnation, stamp: h.Stamp, session: h.Session}
	return once(p, p.receipts, s, func() stopevidence.Receipt {
		return stoptest.Receipt(p.tb, stopevidence.Record{Host: s.host, Op: s.op, Box: s.Box, Enrollment: s.Enrollment,
			Incarnation: s.incarnation, Stamp: s.stamp, Session: s.session})
	})
}

// Resolution is an operator's decision about the stuck operation of the claim.
func (w *World) Resolution(c *hostclaim.Claim, n int, m hostclaim.Member, acceptEmpty bool) resolution.Resolution {
	p, d := w.Proofs, decision{Member: m, host: c.Host, op: c.Op.ID, n: n, gen: c.Gen, acceptEmpty: acceptEmpty}
	return once(p, p.resolutions, d, func() resolution.Resolution {
		return resolutiontest.Resolution(p.tb, resolution.Record{Host: d.host, Op: d.op, N: n, Gen: d.gen, Box: m.Box,
			Enrollment: m.Enrollment, AcceptEmpty: acceptEmpty, DecidedAt: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)})
	})
}

// once remembers what is made for a key.
func once[K comparable, V any](p *Proofs, made map[K]V, key K, build func() V) V {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := made[key]
	if !ok {
		if len(made) >= keepProofs {
			clear(made)
		}
		v = build()
		made[key] = v
	}
	return v
}
