package hostclaim

import (
	"maps"
	"slices"
	"time"
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
	Deleting   Kind = "deleting" // the executor gives the host up for good
	Parking    Kind = "parking"  // nobody may run it; what is left of it is put away
)

// Phase is the step that a relocation has reached; other kinds have none.
type Phase string

// The phases of a relocation, in their order.
const (
	Starting    Phase = "starting"     // the participants get ready
	Releasing   Phase = "releasing"    // a live source stops and gives up the host
	Pinning     Phase = "pinning"      // nobody may run it; what is carried over is chosen
	Installing  Phase = "installing"   // the target builds a prepared generation of it
	Installed   Phase = "installed"    // the target puts files, env and timers in place
	Probing     Phase = "probing"      // the target starts it, at most three times
	ProbeFailed Phase = "probe-failed" // the target stops and gives up the host
)

// Reason says why a relocation was started.
type Reason string

// The reasons of a relocation.
const (
	Failover  Reason = "failover"  // the source is proven gone
	Drain     Reason = "drain"     // the source is to be emptied
	Rebalance Reason = "rebalance" // the source has more than its share
)

// Op is the operation that runs on a host now.
type Op struct {
	Kind         Kind      `json:"kind"`
	ID           string    `json:"id"`
	Phase        Phase     `json:"phase"`
	By           string    `json:"by"`
	StartedAt    time.Time `json:"started_at"`
	Participants []string  `json:"participants,omitempty"`

	// Exec is the executor: a box, None, or "" while nobody was named yet; with
	// its enrollment, where it is a box.
	Exec           string `json:"exec"`
	ExecEnrollment string `json:"exec_enrollment"`

	// Outcome says how the relocation ended that left the host serving.
	Outcome Outcome `json:"outcome"`

	Intent  Intent  `json:"intent"`  // fixed at the start
	Journal Journal `json:"journal"` // grows
}

// Outcome is how a relocation ended.
type Outcome string

// The outcomes of a relocation.
const (
	Completed Outcome = "completed" // the target serves
	Cancelled Outcome = "cancelled" // it could not begin: the source serves on
	Resolved  Outcome = "resolved"  // an operator let the source serve on
)

// Member is a box in one enrollment.
type Member struct {
	Box        string `json:"box"`
	Enrollment string `json:"enrollment"`
}

// Intent is what an operation set out to do.
type Intent struct {
	// Selected is the box chosen for a create, once.
	Selected Member `json:"selected"`

	// Source is the box that executes as a relocation or a delete starts; the
	// rest belongs to a relocation.
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
	PhaseSince time.Time `json:"phase_since"` // when the phase was entered

	// Reason is set once the operation became a failover. Target is set once
	// another box than the intent's was named, and TargetSince says when the
	// target was. Replaced lists the boxes that were the target before,
	// Replacements counts them, and Granted is how many operators allowed
	// beyond [MaxReplacements].
	Reason       Reason    `json:"reason"`
	Target       Member    `json:"target"`
	TargetSince  time.Time `json:"target_since"`
	Replaced     []string  `json:"replaced,omitempty"`
	Replacements int       `json:"replacements"`
	Granted      int       `json:"granted"`

	Stuck       *Stuck   `json:"stuck"`                 // the operation waits for an operator
	Resolutions []string `json:"resolutions,omitempty"` // keys of what operators decided
	AcceptEmpty bool     `json:"accept_empty"`          // an operator accepts that no data is left, until there is some

	// Acks maps a participant to the enrollment under which it acknowledged.
	Acks   map[string]string `json:"acks,omitempty"`
	Fences map[string]Fence  `json:"fences,omitempty"` // consumed evidence, by box

	Release *Release `json:"release"`
	Pin     *Pin     `json:"pin"`

	// InstallStamp began the current installation. Prepared is the generation
	// handed out with it, PreparedStamp the stamp it was handed out under, and
	// PreparedOpened the prepared generation that a writer was admitted to.
	InstallStamp      uint64             `json:"install_stamp"`
	Prepared          string             `json:"prepared"`
	PreparedStamp     uint64             `json:"prepared_stamp"`
	PreparedAuthority *PreparedAuthority `json:"prepared_authority"`
	PreparedOpened    string             `json:"prepared_opened"`
	Abandoned         []string           `json:"abandoned_prepared,omitempty"` // dropped before anyone opened them
	LocalInstall      *LocalInstall      `json:"local_install"`

	ProbeAttempts  int    `json:"probe_attempts"`  // begun in this installation
	ProbeAdmission int    `json:"probe_admission"` // the last attempt that admitted
	Probe          *Probe `json:"probe"`
}

// Fence is evidence that an operation relied on.
type Fence struct {
	Enrollment string    `json:"enrollment"`
	Key        string    `json:"key"`
	SHA256     string    `json:"sha256"`
	ObservedAt time.Time `json:"observed_at"`
	Declared   bool      `json:"declared"`
}

// Release is what a live box gave up: its session has stopped, everything that
// it wrote is in the store up to Final, and the stop receipt proves that
// nothing of it runs.
type Release struct {
	Box           string   `json:"box"`
	Enrollment    string   `json:"enrollment"`
	Session       uint64   `json:"session"` // 0: no writer was ever admitted
	Generation    string   `json:"generation"`
	Final         Position `json:"final"`
	Receipt       string   `json:"receipt"` // its key
	ReceiptSHA256 string   `json:"receipt_sha256"`
}

// Pin names the immutable object that fixes what an operation carries over.
type Pin struct {
	Key      string    `json:"key"` // ends in the claim gen that it was selected against
	SHA256   string    `json:"sha256"`
	ListedAt time.Time `json:"listed_at"` // when its listing began
	Position Position  `json:"position"`  // zero database half: an evidenced empty database
	Size     int64     `json:"size"`      // bytes of its database objects
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

// Target is the box that a relocation moves the host to now.
func (o Op) Target() Member {
	if o.Journal.Target.Box != "" {
		return o.Journal.Target
	}
	return o.Intent.Target
}

// Reason says why a relocation runs: a drain whose source was terminated has
// become a failover.
func (o Op) Reason() Reason {
	if o.Journal.Reason != "" {
		return o.Journal.Reason
	}
	return o.Intent.Reason
}

// Participates reports whether box takes part in the operation.
func (o Op) Participates(box string) bool { return contains(o.Participants, box) }

// Acknowledged reports whether every current participant acknowledged.
func (o Op) Acknowledged() bool {
	return !slices.ContainsFunc(o.Participants, func(box string) bool { return o.Journal.Acks[box] == "" })
}

// FencedBoxes lists the boxes whose evidence the operation consumed, sorted.
func (o Op) FencedBoxes() []string { return slices.Sorted(maps.Keys(o.Journal.Fences)) }

// member is a participant with the enrollment that the operation knows it by.
func (o Op) member(box string) Member {
	if t := o.Target(); t.Box == box {
		return t
	}
	return o.Intent.Source
}

// executor is the box that may run the host, in its enrollment.
func (o Op) executor() Member { return Member{o.Exec, o.ExecEnrollment} }

// sourceExecutes reports whether the box that the operation takes the host from
// still runs it.
func (o Op) sourceExecutes() bool {
	return o.Kind == Relocating && (o.Phase == Starting || o.Phase == Releasing) && o.Exec == o.Intent.Source.Box
}

// enter begins a phase.
func (o *Op) enter(p Phase, now time.Time) { o.Phase, o.Journal.PhaseSince = p, now.UTC() }
