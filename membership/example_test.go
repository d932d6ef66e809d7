package membership_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/membership"
	"github.com/carlosframework/regionha/roster"
)

// A worker turns what the cloud said about a box into a confirmation, and a
// console enrolls the box by it.
func Example() {
	t := &testing.T{} // the signing cloud of this example is one for tests
	r, worker := deployment(), confirmer("worker-1")
	seen := membership.Sighting{
		Identity: boxidtest.Unbound(t, "new", cloud("eu-west-1", "i-new")),
		Group: membership.Observation{Found: true, InstanceID: "i-new", AWSRegion: "eu-west-1", Zone: "eu-west-1a",
			GroupName: "boxes-ie", GroupARN: groupIE, LifecycleState: membership.InService, RequestIDs: []string{"r-1"}},
	}
	rec, err := membership.Verify(r, worker, "ie", seen, now)
	fmt.Println(rec.Box, rec.InstanceID, rec.TargetPlacement, err)

	seen.Group.Found = false
	_, err = membership.Verify(r, worker, "ie", seen, now)
	fmt.Println(errors.Is(err, membership.ErrNotMember), err)

	err = r.Enroll(seen.Identity, membership.Evidence{}, "ie", "default", "e-new", now)
	fmt.Println(errors.Is(err, roster.ErrInvalid), err)

	// Output:
	// new i-new ie <nil>
	// true membership: box "new": membership not confirmed: no Auto Scaling group shows the instance; absence is not evidence
	// true invalid roster: enroll box "new": confirmation not verified: it is about box ""
}
