package hostclaim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Admission asks for a writer session. Op, Phase, Session and Generation are
// what the box observed: the write is bound to them.
type Admission struct {
	Op         string
	Phase      Phase
	Session    uint64
	Generation string

	Box           string
	NewGeneration string // fresh, or the prepared generation at its one opening
	KeepStamp     bool   // the first admission of a new installation
	Coverage      Coverage
	Baseline      Position // what the box will restore; zero: an empty bootstrap
}

// AdmitWriter admits one writer session on the executor. Every admission is
// cold: the box purges its local database, restores the baseline and writes a
// new generation. The session is numbered by the stamp, which is this write's
// gen unless KeepStamp.
//
// An uncovered admission declares the predecessor's session lost beyond what
// the baseline holds of it.
func AdmitWriter(a Admission) Transition {
	return func(c *Claim) error {
		if c.admitted(a) {
			return ErrAlreadyRecorded
		}
		if c.Op.ID != a.Op {
			return stale(c, a.Op)
		}
		if err := c.mayAdmit(a); err != nil {
			return err
		}
		if err := c.checkBaseline(a.Baseline); err != nil {
			return err
		}
		if err := c.checkCoverage(a); err != nil {
			return err
		}
		c.admit(a)
		return nil
	}
}

func (c *Claim) admitted(a Admission) bool {
	h := c.Holder
	return h != nil && h.Session > 0 && h.Generation == a.NewGeneration && h.WriterBox == a.Box && c.Op.ID == a.Op
}

func (c *Claim) mayAdmit(a Admission) error {
	h := c.Holder
	switch {
	case c.Op.Kind != Serving && (c.Op.Kind != Relocating || c.Op.Phase != Probing):
		return wrong("nobody is admitted in %s %s", c.Op.Kind, c.Op.Phase)
	case c.Op.Phase != a.Phase:
		return wrong("phase is %q, observed %q", c.Op.Phase, a.Phase)
	case c.Op.Exec != a.Box:
		return wrong("%s is not the executor, %q is", a.Box, c.Op.Exec)
	case h.Session != a.Session || h.Generation != a.Generation:
		return wrong("session is %d of %q, observed %d of %q", h.Session, h.Generation, a.Session, a.Generation)
	case a.KeepStamp && h.Stamp <= h.Session:
		return wrong("stamp %d was used by session %d: a new admission needs a new stamp", h.Stamp, h.Session)
	}
	if c.Op.Kind == Relocating {
		return c.mayProbe(a)
	}
	return c.checkFresh(a.NewGeneration)
}

// mayProbe holds an admission in probing to its attempt: the first of an
// installation opens the prepared generation and no other, and every later one
// is a fresh generation.
func (c *Claim) mayProbe(a Admission) error {
	j := c.Op.Journal
	if j.ProbeAdmission >= j.ProbeAttempts {
		return wrong("attempt %d has admitted: begin the next one first", j.ProbeAdmission)
	}
	if c.preparedOpened() {
		return c.checkFresh(a.NewGeneration)
	}
	switch {
	case a.NewGeneration != j.Prepared:
		return wrong("the first attempt opens %q, not %q", j.Prepared, a.NewGeneration)
	case !a.KeepStamp:
		return wrong("opening %q keeps the installation's stamp", j.Prepared)
	case a.Baseline != j.Pin.Position:
		return wrong("%q was built from %s, not %s", j.Prepared, j.Pin.Position, a.Baseline)
	}
	return nil
}

// preparedOpened reports whether a writer was ever admitted to the current
// prepared generation.
func (c *Claim) preparedOpened() bool {
	p := c.Op.Journal.Prepared
	if p == "" {
		return false
	}
	if c.Op.Journal.PreparedOpened == p {
		return true
	}
	_, retained := c.admission(p)
	return retained
}

// checkFresh refuses a generation that any retained admission or prepared build
// has named. Ids are random, so one that was trimmed does not come back.
func (c *Claim) checkFresh(generation string) error {
	if err := checkName("generation", generation); err != nil {
		return wrong("%v", err)
	}
	_, seen := c.admission(generation)
	if seen || generation == c.Op.Journal.Prepared || generation == c.Op.Journal.PreparedOpened {
		return wrong("generation %q is not fresh", generation)
	}
	for _, o := range c.Obligations {
		if o.Generation == generation {
			return wrong("generation %q waits to be parked", generation)
		}
	}
	return nil
}

func (c *Claim) checkCoverage(a Admission) error {
	switch a.Coverage {
	case Uncovered:
		return nil
	case CleanReturn:
		end := c.Holder.Ended
		if end == nil {
			return wrong("clean-return: session %d did not record its end", c.Holder.Session)
		}
		if !c.reaches(a.Baseline, end.Final) {
			return wrong("clean-return: baseline %s does not reach the final position %s", a.Baseline, end.Final)
		}
		return nil
	}
	return wrong("unknown coverage %q", a.Coverage)
}

func (c *Claim) admit(a Admission) {
	h := c.Holder
	r := AdmissionRecord{
		Box: a.Box, Generation: a.NewGeneration, Region: h.Region,
		Mode: Cold, Coverage: a.Coverage, Baseline: a.Baseline,
	}
	if a.Coverage == Uncovered && h.Session > 0 {
		r.WritesLost = c.writesLost(a.Baseline)
	}
	if !a.KeepStamp {
		c.execute(a.Box)
	}
	if c.Op.Kind == Relocating {
		j := &c.Op.Journal
		j.ProbeAdmission, j.Probe = j.ProbeAttempts, nil
		if a.NewGeneration == j.Prepared {
			j.PreparedOpened = j.Prepared
		}
	}
	r.Session = h.Stamp
	h.Session, h.WriterBox, h.Generation, h.Ended = h.Stamp, a.Box, a.NewGeneration, nil
	h.Admissions = append(h.Admissions, r)
}

func (c *Claim) writesLost(baseline Position) *WritesLost {
	h := c.Holder
	w := &WritesLost{ID: lossID(h.Incarnation, fmt.Sprint(h.Session)), Box: h.WriterBox, Session: h.Session, Generation: h.Generation}
	if baseline.Generation == h.Generation {
		w.RemoteMaxTXID = baseline.TXID
	}
	return w
}

// lossID derives the id of a loss from what it is about, so that a replay names
// the same one.
func lossID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// EndSession records that the current session stopped cleanly, with everything
// that it wrote in the store up to final. The box closes the session durably
// before it sends this, and runs nothing under it afterwards whatever the
// answer.
func EndSession(box string, session uint64, final Position) Transition {
	return func(c *Claim) error {
		h := c.Holder
		if h == nil || session == 0 || h.Session != session || h.WriterBox != box {
			return wrong("session %d of %s is not the current one", session, box)
		}
		if end := h.Ended; end != nil {
			if end.Final == final {
				return ErrAlreadyRecorded
			}
			return wrong("session %d ended at %s, not %s", session, end.Final, final)
		}
		if c.Op.Exec != box || (c.Op.Kind == Relocating && c.Op.Phase != Probing) {
			return wrong("%s does not execute in %s %s", box, c.Op.Kind, c.Op.Phase)
		}
		if err := c.checkFinal(final); err != nil {
			return err
		}
		h.Ended = &SessionEnd{Box: box, Session: session, Final: final}
		return nil
	}
}

// checkFinal holds each half of a final position to the session's own
// generation, or to its baseline where the session wrote nothing.
func (c *Claim) checkFinal(final Position) error {
	h := c.Holder
	own, _ := c.admission(h.Generation)
	base := own.Baseline
	if final.Generation != h.Generation && (final.Generation != base.Generation || final.TXID != base.TXID) {
		return wrong("final position %s is neither in %q nor its baseline %s", final, h.Generation, base)
	}
	if final.FilesGeneration != h.Generation &&
		(final.FilesGeneration != base.FilesGeneration || final.FilesSeq != base.FilesSeq) {
		return wrong("final files position %s is neither in %q nor its baseline %s", final, h.Generation, base)
	}
	return nil
}

// PublishGeneration records that the current session's generation has its first
// durable root and that the app is ready. Earlier generations are dead from
// then on: each owes a park-generation.
func PublishGeneration(box string, session uint64) Transition {
	return func(c *Claim) error {
		h := c.Holder
		if h == nil || session == 0 || h.Session != session || h.WriterBox != box || c.Op.Exec != box {
			return wrong("session %d of %s is not the current one", session, box)
		}
		last := len(h.Admissions) - 1
		if h.Admissions[last].Published {
			return ErrAlreadyRecorded
		}
		for i := last - 1; i >= 0; i-- {
			dead := h.Admissions[i]
			if dead.Region == h.Region {
				c.owe(Obligation{Kind: ParkGeneration, Region: h.Region, Generation: dead.Generation, Owner: "region:" + h.Region})
			}
			if dead.Published {
				break
			}
		}
		h.Admissions[last].Published = true
		return nil
	}
}

// owe queues a chore once; its id says what it is about.
func (c *Claim) owe(o Obligation) {
	o.Op = c.Op.ID
	o.ID = o.Kind + "." + lossID(c.Holder.Incarnation, o.Op, o.Box, o.Generation)
	for _, x := range c.Obligations {
		if x.ID == o.ID {
			return
		}
	}
	c.Obligations = append(c.Obligations, o)
}
