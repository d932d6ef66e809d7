package hostclaim

import "time"

// Claim says who may run one host. It is never deleted: a free host keeps its
// claim, its Gen and its history.
type Claim struct {
	V     int    `json:"v"`
	Host  string `json:"host"`
	Gen   uint64 `json:"gen"`   // grows by one in every write, from 1
	Write string `json:"write"` // nonce of the last write

	Holder *Holder `json:"holder"` // nil: the host is free
	Op     Op      `json:"op"`

	// Touched lists the boxes that may hold local state of this incarnation.
	Touched     []string     `json:"touched,omitempty"`
	Obligations []Obligation `json:"obligations,omitempty"`

	// Lost lists the boxes that were fenced or declared lost for this host. An
	// entry never goes.
	Lost []string `json:"lost,omitempty"`

	// LossRefs holds the ids of losses that are retained past their operation;
	// EvidenceRefs those that were not yet reported.
	LossRefs     []string        `json:"loss_refs,omitempty"`
	EvidenceRefs []AutomaticLoss `json:"evidence_refs,omitempty"`

	RetiredIncarnations []string          `json:"retired_incarnations,omitempty"`
	CancelledCreates    []CancelledCreate `json:"cancelled_creates,omitempty"`
}

// Holder is the incarnation that holds the claim, and its newest writer.
type Holder struct {
	Incarnation  string    `json:"incarnation"`
	Account      string    `json:"account"`
	App          string    `json:"app"`
	RecordKey    string    `json:"record_key"`
	RecordSHA256 string    `json:"record_sha256"` // of the record's first version
	Region       string    `json:"region"`
	Location     string    `json:"location"` // instances/<host>/<incarnation>
	CreatedAt    time.Time `json:"created_at"`

	// Stamp is the gen of the write that began the newest installation or
	// admission. Session is the stamp that the admitted writer runs under, 0
	// while none was ever admitted; WriterBox and Generation follow it.
	Stamp      uint64 `json:"stamp"`
	Session    uint64 `json:"session"`
	WriterBox  string `json:"writer_box"`
	Generation string `json:"generation"`

	// Ended says that the current session stopped cleanly, and where.
	Ended *SessionEnd `json:"ended"`

	// Admissions lists the writers, newest last.
	Admissions []AdmissionRecord `json:"admissions,omitempty"`
}

// SessionEnd is the clean end of a writer session: everything that it wrote is
// in the store, up to Final.
type SessionEnd struct {
	Box     string   `json:"box"`
	Session uint64   `json:"session"`
	Final   Position `json:"final"`
}

// Position is a point in a host's data. Each half orders only within its own
// generation: numbers start again in the next.
type Position struct {
	Generation      string `json:"generation"`
	TXID            uint64 `json:"txid"`
	FilesGeneration string `json:"files_generation"`
	FilesSeq        uint64 `json:"files_seq"`
}

// CancelledCreate remembers a create that did not complete.
type CancelledCreate struct {
	Op          string `json:"op"`
	Incarnation string `json:"incarnation"`
	Box         string `json:"box"`
	Reason      string `json:"reason"`
}

// Owes reports whether box has a chore of this kind open.
func (c *Claim) Owes(box, kind string) bool {
	for _, o := range c.Obligations {
		if o.Box == box && o.Kind == kind {
			return true
		}
	}
	return false
}

// IsLost reports whether box was fenced or declared lost for this host.
func (c *Claim) IsLost(box string) bool { return contains(c.Lost, box) }
