package membership

import "time"

// The states of the Auto Scaling life cycle that count.
const (
	Pending   = "Pending"
	InService = "InService"
)

// Observation is what a cloud said about the Auto Scaling membership of one
// instance, in plain words.
type Observation struct {
	Found          bool // the replies show this instance, and its group
	InstanceID     string
	AWSRegion      string // cloud region that answered
	Zone           string // availability zone, such as eu-west-1a
	GroupName      string
	GroupARN       string
	LifecycleState string   // as the cloud spells it
	RequestIDs     []string // of every reply that this was read from
}

// Record is a confirmation, at [Key]. It is immutable. There may be several
// about one box, since one that another region's worker wrote may cease to list
// every enrollment.
type Record struct {
	V               int       `json:"v"`
	Box             string    `json:"box"`
	TargetPlacement string    `json:"target_placement"` // placement code of the box
	AWSRegion       string    `json:"aws_region"`
	GroupARN        string    `json:"group_arn"`
	InstanceID      string    `json:"instance_id"`
	LifecycleState  string    `json:"lifecycle_state"`
	ObservedAt      time.Time `json:"observed_at"` // by the worker's clock
	RequestIDs      []string  `json:"request_ids,omitempty"`
	Confirmer       Confirmer `json:"confirmer"`

	// TerminatedEnrollments is what the worker of another region read as
	// terminated in the same pass. A worker of the box's own region lists none.
	TerminatedEnrollments []Terminated `json:"terminated_enrollments,omitempty"`
}

// Confirmer is the worker that looked.
type Confirmer struct {
	Box        string `json:"box"`
	Enrollment string `json:"enrollment"`
	Region     string `json:"region"` // placement code
}

// Terminated is one enrollment that was read as terminated.
type Terminated struct {
	Box        string    `json:"box"`
	Enrollment string    `json:"enrollment"`
	InstanceID string    `json:"instance_id"`
	ObservedAt time.Time `json:"observed_at"`
	RequestID  string    `json:"request_id"`
}

// version is the only value of [Record.V].
const version = 1

// keyTime has a fixed width, so that the keys of one box sort by time.
const keyTime = "2006-01-02T15-04-05.000000000Z"

const prefix = "control/box-memberships/"

// Key is where a confirmation about a box is.
func Key(box string, observedAt time.Time) string {
	return prefix + box + "/" + observedAt.UTC().Format(keyTime) + ".json"
}
