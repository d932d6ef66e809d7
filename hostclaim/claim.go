package hostclaim

import (
	"time"

	"github.com/carlosframework/regionha/internal/record"
)

// None is the executor of an operation in which nobody may run the host.
const None = "none"

// Kind says what is being done to a host.
type Kind string

// The kinds of operation.
const (
	Free       Kind = "free"
	Creating   Kind = "creating"
	Serving    Kind = "serving"
	Relocating Kind = "relocating"
)

// Phase is the step that a relocation has reached; other kinds have none.
type Phase string

// The phases of a relocation, in their order.
const (
	Starting   Phase = "starting"
	Pinning    Phase = "pinning"
	Installing Phase = "installing"
	Installed  Phase = "installed"
	Probing    Phase = "probing"
)

// Reason says why a relocation was started.
type Reason string

// Failover is a relocation away from a box that is proven gone.
const Failover Reason = "failover"

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

// Coverage says what vouches for the last writes of an admission's predecessor.
type Coverage string

const (
	// Uncovered: nothing does. The admission declares the predecessor's session
	// lost from what reached the store.
	Uncovered Coverage = ""

	// CleanReturn: the predecessor recorded its end, and the baseline reaches
	// it.
	CleanReturn Coverage = "clean-return"
)

// Cold is the mode of an admission that purged the local database and restored
// its baseline from the store. There is no other.
const Cold = "cold"

// AdmissionRecord is one admitted writer session.
type AdmissionRecord struct {
	Session    uint64      `json:"session"`
	Box        string      `json:"box"`
	Generation string      `json:"generation"`
	Region     string      `json:"region"`
	Mode       string      `json:"mode"`
	Coverage   Coverage    `json:"coverage"`
	Baseline   Position    `json:"baseline"` // what it was restored from; zero: an empty bootstrap
	WritesLost *WritesLost `json:"writes_lost"`
	Published  bool        `json:"published"` // its generation has a durable root and the app was ready
}

// WritesLost declares that a session may have acknowledged writes beyond
// RemoteMaxTXID of its generation, and that they are gone.
type WritesLost struct {
	ID            string `json:"id"` // over incarnation and session
	Box           string `json:"box"`
	Session       uint64 `json:"session"`
	Generation    string `json:"generation"`
	RemoteMaxTXID uint64 `json:"remote_max_txid"` // 0: none of its generation reached the store
}

// Position is a point in a host's data. Each half orders only within its own
// generation: numbers start again in the next.
type Position struct {
	Generation      string `json:"generation"`
	TXID            uint64 `json:"txid"`
	FilesGeneration string `json:"files_generation"`
	FilesSeq        uint64 `json:"files_seq"`
}

// Op is the operation that runs on a host now.
type Op struct {
	Kind         Kind      `json:"kind"`
	ID           string    `json:"id"`
	Phase        Phase     `json:"phase"`
	By           string    `json:"by"`
	StartedAt    time.Time `json:"started_at"`
	Exec         string    `json:"exec"` // a box, None, or "" while nobody was named yet
	Participants []string  `json:"participants,omitempty"`
	Intent       Intent    `json:"intent"`  // fixed at the start
	Journal      Journal   `json:"journal"` // grows
}

// Member is a box in one enrollment.
type Member struct {
	Box        string `json:"box"`
	Enrollment string `json:"enrollment"`
}

// Intent is what an operation set out to do.
type Intent struct {
	// Selected is the box chosen for a create, once.
	Selected Member `json:"selected"`

	// The rest belongs to a relocation.
	Region            string        `json:"region"`
	Reason            Reason        `json:"reason"`
	Source            Member        `json:"source"`
	Target            Member        `json:"target"`
	StampFrom         uint64        `json:"stamp_from"`
	GenerationFrom    string        `json:"generation_from"`
	DirectoryRevision uint64        `json:"directory_revision"` // of the roster that the start was checked against
	PinDelay          time.Duration `json:"pin_delay"`
}

// Journal is what an operation has done so far.
type Journal struct {
	// Acks maps a participant to the enrollment under which it acknowledged.
	Acks   map[string]string `json:"acks,omitempty"`
	Fences map[string]Fence  `json:"fences,omitempty"` // consumed evidence, by box

	Pin *Pin `json:"pin"`

	// InstallStamp began the current installation. Prepared is the generation
	// handed out with it, PreparedStamp the stamp it was handed out under, and
	// PreparedOpened the prepared generation that a writer was admitted to.
	InstallStamp      uint64             `json:"install_stamp"`
	Prepared          string             `json:"prepared"`
	PreparedStamp     uint64             `json:"prepared_stamp"`
	PreparedAuthority *PreparedAuthority `json:"prepared_authority"`
	PreparedOpened    string             `json:"prepared_opened"`
	Handed            []string           `json:"handed,omitempty"` // boxes that were handed Exec
	LocalInstall      *LocalInstall      `json:"local_install"`

	ProbingSince   time.Time `json:"probing_since"`
	ProbeAttempts  int       `json:"probe_attempts"`  // begun in this installation
	ProbeAdmission int       `json:"probe_admission"` // the last attempt that admitted
	Probe          *Probe    `json:"probe"`
}

// Fence is evidence that an operation relied on.
type Fence struct {
	Enrollment string    `json:"enrollment"`
	Key        string    `json:"key"`
	SHA256     string    `json:"sha256"`
	ObservedAt time.Time `json:"observed_at"`
	Declared   bool      `json:"declared"`
}

// Pin names the immutable object that fixes what an operation carries over.
type Pin struct {
	Key      string    `json:"key"` // ends in the claim gen that it was selected against
	SHA256   string    `json:"sha256"`
	ListedAt time.Time `json:"listed_at"` // when its listing began
	Position Position  `json:"position"`  // zero database half: an evidenced empty database
	// FilesSHA256 is the digest of the retained files manifest, "" where no
	// writer was ever admitted.
	FilesSHA256 string `json:"files_sha256"`
}

// PreparedAuthority is an accepted build of a prepared generation. Nobody
// builds it again.
type PreparedAuthority struct {
	Generation          string `json:"generation"`
	InstallManifest     string `json:"install_manifest"` // its key
	SHA256              string `json:"sha256"`           // of the install manifest
	SnapshotTXID        uint64 `json:"snapshot_txid"`
	FilesSeq            uint64 `json:"files_seq"` // always 0
	SourceFilesSeq      uint64 `json:"source_files_seq"`
	FilesManifestSHA256 string `json:"files_manifest_sha256"`
}

// LocalInstall is the receipt of a target for the files, env and timers that it
// put in place from a prepared generation.
type LocalInstall struct {
	Box           string `json:"box"`
	Enrollment    string `json:"enrollment"`
	InstallStamp  uint64 `json:"install_stamp"`
	FilesManifest string `json:"files_manifest"` // its key
	SHA256        string `json:"sha256"`         // of the files manifest
}

// Probe is a passing probe of one session.
type Probe struct {
	Box     string `json:"box"`
	Session uint64 `json:"session"`
}

// The kinds of chore.
const (
	ParkLocal      = "park-local"
	ParkGeneration = "park-generation"
)

// Obligation is clean-up that a box or a region owes.
type Obligation struct {
	ID         string `json:"id"`
	Op         string `json:"op"`
	Kind       string `json:"kind"`
	Box        string `json:"box"`        // whose local state, for park-local
	Region     string `json:"region"`     // whose data store
	Generation string `json:"generation"` // for park-generation
	Owner      string `json:"owner"`      // box:<ref> or region:<code>
}

// AutomaticLoss is consumed evidence that was not yet reported to a person.
type AutomaticLoss struct {
	ID        string           `json:"id"` // over operation, box and evidence
	Op        string           `json:"op"`
	Box       string           `json:"box"`
	Role      string           `json:"role"` // source or target
	Fence     Fence            `json:"fence"`
	Session   uint64           `json:"session"`   // the box's own last writer session; 0: none retained
	Admission *AdmissionRecord `json:"admission"` // of that session
	Discharge string           `json:"discharge"` // verdict on its local chores; "": kept
	Timers    string           `json:"timers"`    // what is known of its timers
}

// CancelledCreate remembers a create that did not complete.
type CancelledCreate struct {
	Op          string `json:"op"`
	Incarnation string `json:"incarnation"`
	Box         string `json:"box"`
	Reason      string `json:"reason"`
}

// Target is the box that a relocation moves the host to.
func (o Op) Target() Member { return o.Intent.Target }

// Participates reports whether box takes part in the operation.
func (o Op) Participates(box string) bool { return contains(o.Participants, box) }

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

// Clone copies a claim that came from [Read] or a transition.
func (c *Claim) Clone() (*Claim, error) {
	b, err := record.Encode(c)
	if err != nil {
		return nil, err
	}
	return Decode(b)
}
