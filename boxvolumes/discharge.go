package boxvolumes

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carlosframework/regionha/roster"
)

// How far the records may be from the life that they must cover, inclusive.
const (
	maxFirstGap = time.Hour     // from the enrollment to the first record
	maxLastGap  = 2 * time.Hour // from the newest record to the termination
)

// Verdict says whether a box's disks are gone. It comes only from [Discharge]
// and [Read]; the zero value discharges nothing.
type Verdict struct {
	enrollment string
	discharged bool
	reason     string
}

// Enrollment is the enrollment of the box that was judged.
func (v Verdict) Enrollment() string { return v.enrollment }

// Discharged reports whether the box's local chores have nothing left to clean.
func (v Verdict) Discharged() bool { return v.discharged }

// Reason is why the verdict does not discharge, for people; empty where it does.
func (v Verdict) Reason() string { return v.reason }

// Discharge judges the records of a box whose termination was read at a time.
// Their order does not matter; records of another enrollment or of another
// instance are ignored. It discharges only if nothing speaks against it.
func Discharge(records []Record, entry roster.Box, enrolledAt, terminatedAt time.Time) Verdict {
	v := Verdict{enrollment: entry.Enrollment}
	if err := discharge(records, entry, enrolledAt, terminatedAt); err != nil {
		v.reason = err.Error()
		return v
	}
	v.discharged = true
	return v
}

func discharge(records []Record, entry roster.Box, enrolledAt, terminatedAt time.Time) error {
	if err := roster.CheckEnrollment(entry.Enrollment); err != nil {
		return err
	}
	// Before every comparison: an incomplete entry would match an empty record.
	if !entry.Cloud.Complete() {
		return fmt.Errorf("the entry has no complete cloud: %s", entry.Cloud)
	}
	own, err := ofInstance(records, entry)
	if err != nil {
		return err
	}
	for _, r := range own {
		if err := checkRecord(r, entry); err != nil {
			return fmt.Errorf("record of %s: %w", when(r.ObservedAt), err)
		}
	}
	if err := checkSpan(own, enrolledAt, terminatedAt); err != nil {
		return err
	}
	return checkRemoved(own)
}

// ofInstance returns the records of the entry's instance, oldest first. One of
// the enrollment whose version is not known refuses before its instance is
// looked at, since that may mean something else there.
func ofInstance(records []Record, entry roster.Box) ([]Record, error) {
	var own []Record
	for _, r := range records {
		switch {
		case r.Enrollment != entry.Enrollment:
		case r.V != version:
			return nil, fmt.Errorf("record of %s: version %d, expected %d", when(r.ObservedAt), r.V, version)
		case r.Cloud == entry.Cloud:
			own = append(own, r)
		}
	}
	slices.SortStableFunc(own, func(a, b Record) int { return a.ObservedAt.Compare(b.ObservedAt) })
	return own, nil
}

// checkRecord holds one record to what a verdict may rest on.
func checkRecord(r Record, entry roster.Box) error {
	switch {
	case r.Box != entry.Ref:
		return fmt.Errorf("it names box %q, the entry is %q", r.Box, entry.Ref)
	case !carriesMappings(r.State):
		return fmt.Errorf("state %q shows no volumes", r.State)
	case len(r.Volumes) == 0:
		return errors.New("it lists no volume")
	}
	for _, v := range r.Volumes {
		switch {
		case v.ID == "":
			return fmt.Errorf("the volume at %q has no id", v.Device)
		case v.Device == "":
			return fmt.Errorf("volume %q has no device", v.ID)
		case !attached(v, r.State):
			return fmt.Errorf("volume %q is %q in state %q", v.ID, v.Status, r.State)
		case !v.DeleteOnTermination:
			return fmt.Errorf("volume %q outlives its instance", v.ID)
		}
	}
	return nil
}

// shuttingDown is the one state in which volumes leave on their own.
const shuttingDown = "shutting-down"

// carriesMappings reports whether an instance in this state shows all that is
// attached to it. What a terminated one shows says nothing.
func carriesMappings(state string) bool {
	return slices.Contains([]string{"pending", "running", shuttingDown, "stopping", "stopped"}, state)
}

func attached(v Volume, state string) bool {
	switch v.Status {
	case "attached", "attaching":
		return true
	case "detaching":
		return state == shuttingDown && v.DeleteOnTermination
	}
	return false
}

// checkSpan wants the records, oldest first, to reach from the enrollment to the
// termination.
func checkSpan(records []Record, enrolledAt, terminatedAt time.Time) error {
	switch {
	case enrolledAt.IsZero():
		return errors.New("there is no time of enrollment")
	case terminatedAt.IsZero():
		return errors.New("there is no time of termination")
	case len(records) == 0:
		return errors.New("there is no record of the instance")
	}
	first, newest := records[0].ObservedAt, records[len(records)-1].ObservedAt
	if gap := first.Sub(enrolledAt).Abs(); gap > maxFirstGap {
		return fmt.Errorf("the first record, of %s, is %s from the enrollment, at most %s", when(first), gap, maxFirstGap)
	}
	if gap := terminatedAt.Sub(newest).Abs(); gap > maxLastGap {
		return fmt.Errorf("the newest record, of %s, is %s from the termination, at most %s", when(newest), gap, maxLastGap)
	}
	return nil
}

// checkRemoved finds a volume that was taken off the box, and so may live on: by
// what a record says of the one before it, and by comparing neighbours, since
// two workers that record at once each miss what the other saw.
func checkRemoved(records []Record) error {
	var before []Volume
	for _, r := range records {
		if len(r.RemovedVolumes) > 0 {
			return fmt.Errorf("record of %s: volume %q was removed", when(r.ObservedAt), r.RemovedVolumes[0])
		}
		for _, v := range before {
			if !holds(r.Volumes, v.ID) {
				return fmt.Errorf("record of %s: volume %q is no longer there", when(r.ObservedAt), v.ID)
			}
		}
		before = r.Volumes
	}
	return nil
}

func holds(volumes []Volume, id string) bool {
	return slices.ContainsFunc(volumes, func(v Volume) bool { return v.ID == id })
}

func when(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
