package membership

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// ErrNotMember: what a worker saw does not confirm the box. It stays
// unenrolled, and the worker looks again later.
var ErrNotMember = errors.New("membership not confirmed")

// passLimit is how long a pass may take from its first reply to its last.
const passLimit = 5 * time.Minute

// Sighting is what one pass of a worker saw of one box.
type Sighting struct {
	Identity boxid.Evidence // who the box is, whether or not it is bound
	Group    Observation

	// Only for a box of another placement than the worker's: its instance, and
	// every enrollment of that placement, by enrollment.
	Instance termfence.Observation
	Others   map[string]Other
}

// Other is what a pass saw of another box's instance, and when.
type Other struct {
	Seen termfence.Observation
	At   time.Time
}

// Verify decides whether s proves that the box belongs to the placement target,
// and returns the confirmation to publish. by is the worker that looked, and now
// the time at which its pass ended. Every refusal is [ErrNotMember].
func Verify(r roster.Roster, by Confirmer, target string, s Sighting, now time.Time) (Record, error) {
	rec, err := verify(r, by, target, s, now)
	if err != nil {
		return Record{}, fmt.Errorf("membership: box %q: %w: %w", s.Identity.Box(), ErrNotMember, err)
	}
	return rec, nil
}

func verify(r roster.Roster, by Confirmer, target string, s Sighting, now time.Time) (Record, error) {
	place := r.Regions[target] // of one that is not there, nothing agrees below
	if _, enrolled := r.Box(s.Identity.Box()); enrolled {
		return Record{}, errors.New("its reference is in the roster already")
	}
	if err := checkIdentity(place, s.Identity.Cloud()); err != nil {
		return Record{}, err
	}
	if err := checkGroup(place, s.Identity.Cloud(), s.Group); err != nil {
		return Record{}, err
	}
	rec := Record{
		V: version, Box: s.Identity.Box(), TargetPlacement: target, AWSRegion: s.Group.AWSRegion, GroupARN: s.Group.GroupARN,
		InstanceID: s.Group.InstanceID, LifecycleState: s.Group.LifecycleState, ObservedAt: now.UTC(),
		RequestIDs: slices.Clone(s.Group.RequestIDs), Confirmer: by,
	}
	if by.Region != target {
		if err := checkRunning(s.Identity.Cloud(), s.Instance); err != nil {
			return Record{}, err
		}
		terminated, err := emptied(r, target, s.Others, now)
		if err != nil {
			return Record{}, err
		}
		rec.RequestIDs = append(rec.RequestIDs, s.Instance.RequestID)
		rec.TerminatedEnrollments = terminated
	}
	return rec, check(r, rec)
}

// checkIdentity comes before every comparison of the instance.
func checkIdentity(place roster.Region, c boxid.Cloud) error {
	switch {
	case !c.Complete():
		return errors.New("no verified identity")
	case c.Account != place.Account:
		return fmt.Errorf("account %q, the placement's is %q", c.Account, place.Account)
	case c.Region != place.AWSRegion:
		return fmt.Errorf("cloud region %q, the placement's is %q", c.Region, place.AWSRegion)
	}
	return nil
}

// checkGroup is about what only the reply shows. What a record keeps of it is
// for check.
func checkGroup(place roster.Region, c boxid.Cloud, o Observation) error {
	switch {
	case !o.Found:
		return errors.New("no Auto Scaling group shows the instance; absence is not evidence")
	case len(o.RequestIDs) == 0:
		return errors.New("the reply about its group has no request id")
	case o.InstanceID != c.InstanceID:
		return fmt.Errorf("the reply is about instance %q, the box is %q", o.InstanceID, c.InstanceID)
	case place.GroupName == "" || o.GroupName != place.GroupName:
		return fmt.Errorf("its group is %q, the placement's is %q", o.GroupName, place.GroupName)
	case !zoneIn(o.Zone, place.AWSRegion):
		return fmt.Errorf("its availability zone %q is not in %q", o.Zone, place.AWSRegion)
	}
	return nil
}

// zoneIn reports whether an availability zone lies in a cloud region: its name
// is the region's with one letter, or with the name of a local zone.
func zoneIn(zone, region string) bool {
	rest, ok := strings.CutPrefix(zone, region)
	if !ok || region == "" || rest == "" {
		return false
	}
	return rest[0] == '-' || len(rest) == 1 && rest[0] >= 'a' && rest[0] <= 'z'
}

// checkRunning holds the new box's instance to what its own region said.
func checkRunning(c boxid.Cloud, o termfence.Observation) error {
	if err := checkReply(c, o); err != nil {
		return err
	}
	if o.State != "pending" && o.State != "running" {
		return fmt.Errorf("its instance is %q, expected pending or running", o.State)
	}
	return nil
}

// checkReply is about a DescribeInstances reply for one instance.
func checkReply(c boxid.Cloud, o termfence.Observation) error {
	switch {
	case o.Via != termfence.ViaDescribe:
		return fmt.Errorf("source %q does not count", o.Via)
	case !o.Found:
		return fmt.Errorf("instance %s was not shown; absence is not evidence", c.InstanceID)
	case o.InstanceID != c.InstanceID || o.Account != c.Account || o.Region != c.Region:
		return fmt.Errorf("the reply is about %s/%s/%s, expected %s", o.Account, o.Region, o.InstanceID, c)
	}
	return nil
}

// emptied lists every enrollment of a placement that could still act, as
// terminated, or says which one is not.
func emptied(r roster.Roster, target string, seen map[string]Other, now time.Time) ([]Terminated, error) {
	var list []Terminated
	for _, b := range Occupants(r, target) {
		o, ok := seen[b.Enrollment]
		if !ok {
			return nil, fmt.Errorf("box %q of %q was not looked at", b.Ref, target)
		}
		if err := CheckTerminated(b, o, now); err != nil {
			return nil, err
		}
		list = append(list, Terminated{Box: b.Ref, Enrollment: b.Enrollment, InstanceID: o.Seen.InstanceID,
			ObservedAt: o.At.UTC(), RequestID: o.Seen.RequestID})
	}
	return list, nil
}

// CheckTerminated refuses an observation that does not show that box is
// terminated, or that is not of the pass that ends now. A worker asks as it
// goes, since the first box that is there ends the question.
func CheckTerminated(b roster.Box, o Other, now time.Time) error {
	if err := checkTerminated(b.Cloud, o, now); err != nil {
		return fmt.Errorf("box %q of %q may be there: %w", b.Ref, b.Region, err)
	}
	return nil
}

func checkTerminated(c boxid.Cloud, o Other, now time.Time) error {
	if !c.Complete() {
		return fmt.Errorf("its entry has no complete cloud: %s", c)
	}
	if err := checkReply(c, o.Seen); err != nil {
		return err
	}
	switch {
	case o.Seen.State != termfence.Terminated:
		return fmt.Errorf("its instance is %q, only %q counts", o.Seen.State, termfence.Terminated)
	case o.At.After(now) || now.Sub(o.At) > passLimit:
		return fmt.Errorf("it was looked at %s, not in the pass that ends %s", o.At, now)
	}
	return nil
}

// Occupants lists the boxes of a placement that are active or quarantined, the
// one enrolled last first: it is the likeliest to be there.
func Occupants(r roster.Roster, placement string) []roster.Box {
	var list []roster.Box
	for _, ref := range slices.Sorted(maps.Keys(r.Boxes)) {
		if b, _ := r.Box(ref); b.Region == placement && b.State != roster.Retired {
			list = append(list, b)
		}
	}
	slices.SortStableFunc(list, func(a, b roster.Box) int { return b.EnrolledAt.Compare(a.EnrolledAt) })
	return list
}
