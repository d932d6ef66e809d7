package hostclaim

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// AutomaticLoss is consumed evidence that was not yet reported to a person.
type AutomaticLoss struct {
	ID        string           `json:"id"` // over operation, box and evidence
	Op        string           `json:"op"`
	Box       string           `json:"box"`
	Role      string           `json:"role"` // source, target or selected
	Fence     Fence            `json:"fence"`
	Session   uint64           `json:"session"`   // the box's own last writer session; 0: none retained
	Admission *AdmissionRecord `json:"admission"` // of that session
	Discharge string           `json:"discharge"` // why its local chores are discharged; "": they are kept
	Timers    string           `json:"timers"`    // what is known of its timers
}

// disksGone is why nothing of a box is left to be cleared.
const disksGone = "its disks went with it"

// What is known of the timers of a box that is gone: those of a fenced box are
// as it published them last, those of a declared one may have fired since.
const (
	timersPublished = "as published"
	timersUnknown   = "unknown"
)

// ReportLoss records that a person was told of a loss, by a durable record: the
// consumed evidence of that id, or the declared loss of an admission.
func ReportLoss(id string) Transition {
	return func(c *Claim) error {
		reported := func(l AutomaticLoss) bool { return l.ID == id }
		switch {
		case slices.ContainsFunc(c.EvidenceRefs, reported):
			c.EvidenceRefs = without(c.EvidenceRefs, reported)
			return nil
		case contains(c.LossRefs, id):
			return ErrAlreadyRecorded
		case !slices.ContainsFunc(c.PendingLosses(), func(w WritesLost) bool { return w.ID == id }):
			return wrong("no loss %q waits to be reported", id)
		}
		c.LossRefs = append(c.LossRefs, id)
		return nil
	}
}

// PendingLosses lists the losses that admissions declared and nobody reported
// yet, oldest first. EvidenceRefs are the others.
func (c *Claim) PendingLosses() []WritesLost {
	var pending []WritesLost
	if c.Holder == nil {
		return nil
	}
	for _, r := range c.Holder.Admissions {
		if r.WritesLost != nil && !contains(c.LossRefs, r.WritesLost.ID) {
			pending = append(pending, *r.WritesLost)
		}
	}
	return pending
}

// retainLoss keeps what the evidence means until a person was told.
func (c *Claim) retainLoss(g Gone, f Fence, box, role string) {
	l := AutomaticLoss{ID: derivedID(c.Op.ID, box, f.SHA256), Op: c.Op.ID, Box: box, Role: role, Fence: f, Timers: timersPublished}
	if f.Declared {
		l.Timers = timersUnknown
	}
	if g.discharges() {
		l.Discharge = disksGone
	}
	for _, r := range c.Holder.Admissions {
		if r.Box == box {
			l.Session, l.Admission = r.Session, &r
		}
	}
	c.EvidenceRefs = append(c.EvidenceRefs, l)
	c.LossRefs = append(c.LossRefs, l.ID)
}

// derivedID derives the id of a loss or chore from what it is about.
func derivedID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}
