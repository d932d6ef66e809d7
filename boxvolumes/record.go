package boxvolumes

import (
	"time"

	"github.com/carlosframework/regionha/boxid"
)

// Record is what a worker saw of one box's block devices, at [Key]. It is
// immutable, and never deleted.
type Record struct {
	V          int         `json:"v"`
	Box        string      `json:"box"`
	Enrollment string      `json:"enrollment"`
	Cloud      boxid.Cloud `json:"cloud"`
	State      string      `json:"state"`       // of the instance, as the cloud spells it
	ObservedAt time.Time   `json:"observed_at"` // when the worker read it; the time in the key

	// Volumes lists what was attached, by volume id. RemovedVolumes holds the
	// ids that the record before this one had and this one has not.
	Volumes        []Volume `json:"volumes,omitempty"`
	RemovedVolumes []string `json:"removed_volumes,omitempty"`
}

// Volume is one volume of an instance.
type Volume struct {
	ID                  string `json:"id"`
	Device              string `json:"device"` // such as /dev/xvda
	Status              string `json:"status"` // of the attachment, as the cloud spells it
	DeleteOnTermination bool   `json:"delete_on_termination"`
}

// version is the only value of [Record.V].
const version = 1

// keyTime has a fixed width, so that the keys of one enrollment sort by time.
const keyTime = "2006-01-02T15-04-05.000000000Z"

// prefix is where all records of an enrollment are. It ends with a slash, so
// that it is no other enrollment's.
func prefix(enrollment string) string { return "control/box-volumes/" + enrollment + "/" }

// Key is where the record of an enrollment that was observed at a time is.
func Key(enrollment string, observedAt time.Time) string {
	return prefix(enrollment) + observedAt.UTC().Format(keyTime) + ".json"
}
