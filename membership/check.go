package membership

import (
	"errors"
	"fmt"
	"slices"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/roster"
)

// check holds a record, about to be written, stored, or about to be used, to a
// roster. It is all that can be said of a record without asking a cloud.
func check(r roster.Roster, rec Record) error {
	if rec.V != version {
		return fmt.Errorf("version %d, expected %d", rec.V, version)
	}
	if err := boxid.CheckRef(rec.Box); err != nil {
		return err
	}
	if err := checkPlacement(r, rec); err != nil {
		return err
	}
	switch {
	case rec.InstanceID == "":
		return errors.New("it names no instance")
	case rec.LifecycleState != Pending && rec.LifecycleState != InService:
		return fmt.Errorf("life cycle state %q, expected %s or %s", rec.LifecycleState, Pending, InService)
	case rec.ObservedAt.IsZero():
		return errors.New("it has no time of observation")
	case len(rec.RequestIDs) == 0 || slices.Contains(rec.RequestIDs, ""):
		return errors.New("a reply has no request id")
	}
	if err := checkConfirmer(r, rec.Confirmer); err != nil {
		return err
	}
	return checkCover(r, rec)
}

// checkPlacement takes the group from the roster only.
func checkPlacement(r roster.Roster, rec Record) error {
	place, ok := r.Region(rec.TargetPlacement)
	switch {
	case !ok:
		return fmt.Errorf("placement %q is not in the roster", rec.TargetPlacement)
	case place.AWSRegion == "" || rec.AWSRegion != place.AWSRegion:
		return fmt.Errorf("cloud region %q, the placement's is %q", rec.AWSRegion, place.AWSRegion)
	case place.GroupName == "" || place.GroupARN == "":
		return fmt.Errorf("the roster names no Auto Scaling group for placement %q", rec.TargetPlacement)
	case rec.GroupARN != place.GroupARN:
		return fmt.Errorf("group %q, the placement's is %q", rec.GroupARN, place.GroupARN)
	}
	return nil
}

func checkConfirmer(r roster.Roster, by Confirmer) error {
	worker, ok := r.Box(by.Box)
	switch {
	case !ok || worker.Enrollment != by.Enrollment:
		return fmt.Errorf("its confirmer %q as %q is not in the roster", by.Box, by.Enrollment)
	case worker.Region != by.Region:
		return fmt.Errorf("its confirmer %q is of %q, it says %q", by.Box, worker.Region, by.Region)
	case worker.State != roster.Active:
		return fmt.Errorf("its confirmer %q is %s", by.Box, worker.State)
	case !worker.Cloud.Complete():
		return fmt.Errorf("its confirmer %q has no complete cloud: %s", by.Box, worker.Cloud)
	}
	return nil
}

// checkCover refuses the word of another region's worker as soon as it leaves
// out one enrollment that may still act.
func checkCover(r roster.Roster, rec Record) error {
	if rec.Confirmer.Region == rec.TargetPlacement {
		if len(rec.TerminatedEnrollments) > 0 {
			return errors.New("a confirmer of the box's own region lists terminated enrollments")
		}
		return nil
	}
	listed := make(map[string]Terminated, len(rec.TerminatedEnrollments))
	for _, t := range rec.TerminatedEnrollments {
		listed[t.Enrollment] = t
	}
	for _, b := range Occupants(r, rec.TargetPlacement) {
		t, ok := listed[b.Enrollment]
		switch {
		case !ok:
			return fmt.Errorf("it does not list box %q of %q, which is %s", b.Ref, b.Region, b.State)
		case t.Box != b.Ref || !b.Cloud.Complete() || t.InstanceID != b.Cloud.InstanceID:
			return fmt.Errorf("it lists %q as %q and %q, the roster has %q as %s", t.Enrollment, t.Box, t.InstanceID, b.Ref, b.Cloud)
		case t.ObservedAt.IsZero() || t.RequestID == "":
			return fmt.Errorf("it lists box %q with no time or no request id", b.Ref)
		}
	}
	return nil
}
