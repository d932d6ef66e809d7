package stopevidence

import (
	"fmt"
	"time"
)

// Obligation says what a stop is for.
type Obligation string

// The obligations that a receipt answers. One is never taken for the other.
const (
	Release    Obligation = "relocation-release" // the host goes on elsewhere
	Retirement Obligation = "retirement"         // the box's local copy is retired
)

// The checks that every stop needs, by [Check.Name].
const (
	CgroupEmpty     = "cgroup-empty"     // the host's cgroup has no process, recursively
	NoHolders       = "no-holders"       // nothing on the machine has the database open or mapped
	AdmissionClosed = "admission-closed" // the local admission fence is shut
	ProducersJoined = "producers-joined" // replicator and publisher are closed
)

// Record is a stop receipt, at [Key]. It is immutable, and never deleted. It is
// one per host, operation, obligation, box, enrollment, incarnation, stamp and
// session: whoever asks again gets the stored one, whose boot, controller, checks and time are its first maker's.
type Record struct {
	V           int        `json:"v"`
	Host        string     `json:"host"`
	Op          string     `json:"op"` // the operation that asked for the stop
	Obligation  Obligation `json:"obligation"`
	Box         string     `json:"box"`
	Enrollment  string     `json:"enrollment"`
	BootID      string     `json:"boot_id"`    // the kernel's, of the boot that stopped
	Controller  string     `json:"controller"` // the execution controller that collected
	Incarnation string     `json:"incarnation"`

	// Stamp is the installation that stopped. Session is the writer that it
	// had; 0: none was ever admitted, and nothing ran.
	Stamp   uint64 `json:"stamp"`
	Session uint64 `json:"session"`

	DirectoryRevision uint64    `json:"directory_revision"` // of the roster that the box acted under
	Fence             string    `json:"fence"`              // the digest of the admission fence that was shut
	Checks            []Check   `json:"checks,omitempty"`
	EvidenceAt        time.Time `json:"evidence_at"` // when the last check passed
}

// Check is one thing that was looked at, and what was seen.
type Check struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Saw    string `json:"saw"` // for people; may be empty
}

// version is the only value of [Record.V].
const version = 1

// prefix is where all receipts are.
const prefix = "control/stop/"

// Key is where the receipt of one stop is.
func Key(host, op, box string, session uint64, obligation Obligation) string {
	return fmt.Sprintf("%s%s/%s/%s-%d-%s.json", prefix, host, op, box, session, obligation)
}
