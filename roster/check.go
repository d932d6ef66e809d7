package roster

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/record"
)

// ErrInvalid: a roster, or a change of it, breaks a rule of this package.
var ErrInvalid = errors.New("invalid roster")

// CheckEnrollment refuses, with [ErrInvalid], an enrollment that is not 1 to
// 128 of [A-Za-z0-9._-], or that is "." or "..". It is part of keys.
func CheckEnrollment(id string) error {
	if !record.IsName(id, 128) {
		return fmt.Errorf("%w: enrollment %.220q: 1 to 128 of [A-Za-z0-9._-] are expected", ErrInvalid, id)
	}
	return nil
}

// check holds a roster to the rules that one version of it can show.
func check(r Roster) error {
	switch {
	case r.V != version:
		return fmt.Errorf("%w: version %d, expected %d", ErrInvalid, r.V, version)
	case r.Revision == 0 || r.Gen < r.Revision || r.Write == "":
		return fmt.Errorf("%w: revision %d, gen %d, write %q", ErrInvalid, r.Revision, r.Gen, r.Write)
	case r.DeploymentBucket == "":
		return fmt.Errorf("%w: no deployment_bucket", ErrInvalid)
	}
	refs := slices.Sorted(maps.Keys(r.Boxes)) // so that one roster has one message
	enrolled := make(map[string]string, len(refs))
	for _, ref := range refs {
		b := r.Boxes[ref]
		if err := checkBox(r, ref, b); err != nil {
			return fmt.Errorf("%w: box %q: %w", ErrInvalid, ref, err)
		}
		if other, taken := enrolled[b.Enrollment]; taken {
			return fmt.Errorf("%w: boxes %q and %q have one enrollment, %s", ErrInvalid, other, ref, b.Enrollment)
		}
		enrolled[b.Enrollment] = ref
	}
	return checkInstances(r, refs)
}

func checkBox(r Roster, ref string, b Box) error {
	if err := boxid.CheckRef(ref); err != nil {
		return err
	}
	if err := CheckEnrollment(b.Enrollment); err != nil {
		return err
	}
	if _, ok := r.Regions[b.Region]; !ok {
		return fmt.Errorf("region %q is not in the roster", b.Region)
	}
	switch {
	case rank(b.State) == 0:
		return fmt.Errorf("state %q", b.State)
	case b.Cloud != (boxid.Cloud{}) && !b.Cloud.Complete():
		return fmt.Errorf("cloud %s is incomplete", b.Cloud)
	case b.ReadmittedAs != "" && b.State != Retired:
		return fmt.Errorf("readmitted_as %q, but %s", b.ReadmittedAs, b.State)
	}
	return nil
}

// checkInstances lets several entries name one instance only where all but one
// are retired and say as which other of them they were readmitted.
func checkInstances(r Roster, refs []string) error {
	holder := make(map[string]string, len(refs))
	for _, ref := range refs {
		b := r.Boxes[ref]
		if b.ReadmittedAs != "" {
			next := r.Boxes[b.ReadmittedAs]
			if b.ReadmittedAs == ref || !b.Cloud.Complete() || next.Cloud != b.Cloud {
				return fmt.Errorf("%w: box %q: readmitted_as %q is not an entry of the same instance",
					ErrInvalid, ref, b.ReadmittedAs)
			}
			continue
		}
		id := b.Cloud.InstanceID
		if id == "" {
			continue
		}
		if other, taken := holder[id]; taken {
			return fmt.Errorf("%w: boxes %q and %q are one instance, %s", ErrInvalid, other, ref, id)
		}
		holder[id] = ref
	}
	return nil
}

// checkStep holds a change to the rules that need both versions: what was
// enrolled stays what it was.
func checkStep(old, next Roster) error {
	if next.ProtocolFloor < old.ProtocolFloor {
		return fmt.Errorf("%w: protocol_floor falls from %d to %d", ErrInvalid, old.ProtocolFloor, next.ProtocolFloor)
	}
	for _, ref := range slices.Sorted(maps.Keys(old.Boxes)) {
		was, is := old.Boxes[ref], next.Boxes[ref]
		if err := checkEntryStep(was, is); err != nil {
			return fmt.Errorf("%w: box %q: %w", ErrInvalid, ref, err)
		}
	}
	return nil
}

func checkEntryStep(was, is Box) error {
	switch {
	case is.Enrollment != was.Enrollment || !is.EnrolledAt.Equal(was.EnrolledAt):
		return fmt.Errorf("enrollment %q becomes %q; a reference has one, for ever", was.Enrollment, is.Enrollment)
	case is.Region != was.Region:
		return fmt.Errorf("region %q becomes %q", was.Region, is.Region)
	case was.Cloud.Complete() && is.Cloud != was.Cloud:
		return fmt.Errorf("cloud %s becomes %s", was.Cloud, is.Cloud)
	case rank(is.State) < rank(was.State):
		return fmt.Errorf("state %s becomes %s again", was.State, is.State)
	case was.ReadmittedAs != "" && is.ReadmittedAs != was.ReadmittedAs:
		return fmt.Errorf("readmitted_as %q becomes %q", was.ReadmittedAs, is.ReadmittedAs)
	}
	return nil
}

// rank orders the states; 0 is no state.
func rank(s State) int {
	return 1 + slices.Index([]State{Active, Quarantined, Retired}, s)
}
