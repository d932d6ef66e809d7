package termfence

import (
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/roster"
)

// ErrNoProof: an observation does not prove that a box is gone. The box stays
// unfenced, and the caller looks again later.
var ErrNoProof = errors.New("no proof of termination")

// Terminated is the one state that fences.
const Terminated = "terminated"

// The sources that count.
const (
	ViaDescribe = "describe-instances" // a DescribeInstances reply; has a request id
	ViaEvent    = "state-change-event" // an EC2 state-change notification; has an event id
)

// Observation is what a cloud said about one instance, in plain words.
type Observation struct {
	Via        string // [ViaDescribe] or [ViaEvent]
	Found      bool   // the reply shows this instance
	InstanceID string
	Account    string
	Region     string // cloud region that answered
	State      string // as the cloud spells it
	EventID    string
	RequestID  string
}

// Record is a fence, at [Key]. It is immutable, and never deleted.
type Record struct {
	V          int         `json:"v"`
	Box        string      `json:"box"`
	Enrollment string      `json:"enrollment"`
	Cloud      boxid.Cloud `json:"cloud"`
	State      string      `json:"state"`
	ObservedAt time.Time   `json:"observed_at"` // when the worker read it, for events too
	Via        string      `json:"via"`
	RequestID  string      `json:"request_id"`
	EventID    string      `json:"event_id"`
	WrittenBy  Writer      `json:"written_by"`
}

// Writer is the worker that observed a termination.
type Writer struct {
	Box        string `json:"box"`
	Enrollment string `json:"enrollment"`
}

// version is the only value of [Record.V].
const version = 1

// Key is where the fence of an enrollment is.
func Key(enrollment string) string { return "control/box-fences/" + enrollment + ".json" }

// Verify decides whether o proves that box is gone, and returns the fence to
// publish. box and worker are roster entries; worker is the box that this
// process runs on, and now the time at which it read o. Every refusal is
// [ErrNoProof].
func Verify(box, worker roster.Box, o Observation, now time.Time) (Record, error) {
	if err := verify(box, worker, o, now); err != nil {
		return Record{}, fmt.Errorf("termfence: box %q: %w: %w", box.Ref, ErrNoProof, err)
	}
	return Record{
		V: version, Box: box.Ref, Enrollment: box.Enrollment, Cloud: box.Cloud,
		State: o.State, ObservedAt: now.UTC(), Via: o.Via, RequestID: o.RequestID, EventID: o.EventID,
		WrittenBy: Writer{Box: worker.Ref, Enrollment: worker.Enrollment},
	}, nil
}

func verify(box, worker roster.Box, o Observation, now time.Time) error {
	if err := checkParties(box, worker); err != nil {
		return err
	}
	switch {
	case box.ReadmittedAs != "":
		return fmt.Errorf("its instance was readmitted as %q; only that enrollment is fenced", box.ReadmittedAs)
	case worker.State != roster.Active:
		return fmt.Errorf("worker %q is %q", worker.Ref, worker.State)
	case now.IsZero():
		return errors.New("no time of observation")
	}
	return checkObservation(box.Cloud, o)
}

// checkParties is about who is fenced and who looked, before what was seen.
func checkParties(box, worker roster.Box) error {
	if err := checkEntry(box); err != nil {
		return err
	}
	if err := checkEntry(worker); err != nil {
		return fmt.Errorf("worker %q: %w", worker.Ref, err)
	}
	if worker.Region != box.Region {
		return fmt.Errorf("worker %q is of region %q, the box of %q", worker.Ref, worker.Region, box.Region)
	}
	return nil
}

// checkEntry comes before every comparison: an incomplete entry would match
// an empty observation.
func checkEntry(b roster.Box) error {
	if err := boxid.CheckRef(b.Ref); err != nil {
		return err
	}
	if err := roster.CheckEnrollment(b.Enrollment); err != nil {
		return err
	}
	switch {
	case b.Region == "":
		return errors.New("its entry has no region")
	case !b.Cloud.Complete():
		return fmt.Errorf("its entry has no complete cloud: %s", b.Cloud)
	}
	return nil
}

func checkObservation(c boxid.Cloud, o Observation) error {
	switch {
	case !o.Found:
		return errors.New("the instance was not shown; absence is not evidence")
	case o.InstanceID != c.InstanceID:
		return fmt.Errorf("instance %q, enrolled is %q", o.InstanceID, c.InstanceID)
	case o.Account != c.Account:
		return fmt.Errorf("account %q, enrolled is %q", o.Account, c.Account)
	case o.Region != c.Region:
		return fmt.Errorf("region %q, enrolled is %q", o.Region, c.Region)
	}
	return checkSource(o.Via, o.RequestID, o.EventID, o.State)
}

func checkSource(via, requestID, eventID, state string) error {
	switch {
	case via != ViaDescribe && via != ViaEvent:
		return fmt.Errorf("source %q does not count", via)
	case via == ViaDescribe && requestID == "":
		return errors.New("the reply has no request id")
	case via == ViaEvent && eventID == "":
		return errors.New("the event has no id")
	case state != Terminated:
		return fmt.Errorf("state %q, only %q counts", state, Terminated)
	}
	return nil
}
