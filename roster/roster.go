package roster

import (
	"time"

	"github.com/carlosframework/regionha/boxid"
)

// Key is where the roster is in the control bucket.
const Key = "control/host-actors.json"

// Protocol is the protocol that this build speaks; see
// [Roster.ProtocolFloor].
const Protocol = 1

// version is the only value of [Roster.V] and [Envelope.V].
const version = 1

// State says whether a box may be chosen and may act. It only moves forward.
type State string

const (
	Active      State = "active"      // it may act, and be chosen
	Quarantined State = "quarantined" // declared lost; it runs nothing
	Retired     State = "retired"     // gone; its entry stays for ever
)

// Roster is the list of everyone enrolled in one deployment. Decoded from a
// store it is always whole and valid.
type Roster struct {
	V        int    `json:"v"`
	Revision uint64 `json:"revision"` // grows by one with every change
	Gen      uint64 `json:"gen"`      // grows by one with every write
	Write    string `json:"write"`

	// DeploymentBucket is the name of the control store, so that a roster
	// copied from another deployment is refused.
	DeploymentBucket string `json:"deployment_bucket"`

	// ProtocolFloor is the oldest protocol that may act. A build whose
	// [Protocol] is older gets [ErrOutdated].
	ProtocolFloor int `json:"protocol_floor"`

	Regions  map[string]Region  `json:"regions,omitempty"`  // by placement code, such as ie
	Boxes    map[string]Box     `json:"boxes,omitempty"`    // by reference
	Consoles map[string]Console `json:"consoles,omitempty"` // by console id
}

// Region is one placement: a cloud region of one account, and its data store.
type Region struct {
	Account   string `json:"account"`
	AWSRegion string `json:"aws_region"`
	Data      string `json:"data"`       // store URL of the data bucket
	GroupName string `json:"group_name"` // its Auto Scaling group; empty: none
	GroupARN  string `json:"group_arn"`
}

// Box is the entry of one box.
type Box struct {
	Ref string `json:"-"` // the key of its entry

	Enrollment string    `json:"enrollment"`
	EnrolledAt time.Time `json:"enrolled_at"`
	Region     string    `json:"region"` // placement code
	Pool       string    `json:"pool"`
	State      State     `json:"state"`
	Draining   bool      `json:"draining"` // keeps it from being chosen

	// Cloud is the instance that the box proved to be; zero before that.
	// EvidenceSHA256 is the digest of the identity record that proved it.
	Cloud          boxid.Cloud `json:"cloud"`
	EvidenceSHA256 string      `json:"evidence_sha256"`

	// ReadmittedAs is the reference under which the same instance was enrolled
	// anew. Only a retired entry has it.
	ReadmittedAs string `json:"readmitted_as"`
}

// Console is the entry of one console, with the box that it runs on.
type Console struct {
	Enrollment string  `json:"enrollment"`
	Compute    Compute `json:"compute"`
}

// Compute is the box that something runs on.
type Compute struct {
	Box        string `json:"box"`
	Enrollment string `json:"enrollment"`
}

// Box returns the entry of a reference, of any state.
func (r Roster) Box(ref string) (Box, bool) {
	b, ok := r.Boxes[ref]
	if ok {
		b.Ref = ref
	}
	return b, ok
}

// ByEnrollment returns the entry with this enrollment, of any state. An
// enrollment belongs to one reference for ever.
func (r Roster) ByEnrollment(enrollment string) (Box, bool) {
	for ref, b := range r.Boxes {
		if b.Enrollment == enrollment {
			return r.Box(ref)
		}
	}
	return Box{}, false
}

// Region returns the entry of a placement code.
func (r Roster) Region(code string) (Region, bool) {
	region, ok := r.Regions[code]
	return region, ok
}

// Enrolled is what [boxid.Expect] needs of the roster: every entry, whatever
// its state. The order is not defined.
func (r Roster) Enrolled() []boxid.Enrolled {
	all := make([]boxid.Enrolled, 0, len(r.Boxes))
	for ref, b := range r.Boxes {
		all = append(all, boxid.Enrolled{Box: ref, Cloud: b.Cloud})
	}
	return all
}
