package roster

import (
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/record"
)

// ErrEnrolled: the reference has its one enrollment already.
var ErrEnrolled = errors.New("reference is enrolled")

// ErrNotSelf: the machine is not the box that it claims to be, or that box may
// not act. It must do nothing in the box's name.
var ErrNotSelf = errors.New("this machine is not that box")

// NewEnrollment returns a fresh enrollment id, for [Roster.Enroll].
func NewEnrollment() string { return record.Nonce() }

// Binding is what other than the box itself says which instance a reference is
// meant to be. [OperatorsWord] is one; a verified membership confirmation is
// another.
type Binding interface {
	// Binds refuses identity, for a region of r, unless the binding holds by
	// r, the roster that the enrollment is about to be written into, at now.
	Binds(r Roster, identity boxid.Evidence, region string, now time.Time) error
}

// OperatorsWord is the instance id that an operator expects, which the identity
// was verified against: [boxid.Evidence.Bound].
type OperatorsWord struct{}

// Binds refuses an identity for which no operator named the instance.
func (OperatorsWord) Binds(_ Roster, identity boxid.Evidence, _ string, _ time.Time) error {
	if !identity.Bound() {
		return fmt.Errorf("only the box itself says that it is %s; name the expected instance", identity.Cloud())
	}
	return nil
}

// Enroll adds the box that e proves to a region of a roster that [Update] or
// [Create] is about to write; they check the whole of it. The binding has to
// hold, and the evidence to be of the account and the cloud region that the
// roster has for the placement.
//
// A reference that the roster holds is [ErrEnrolled], with one exception: an
// entry with no proven cloud gets it, under the enrollment, region and pool
// that it has. Everything else that is refused is [ErrInvalid].
func (r *Roster) Enroll(e boxid.Evidence, binding Binding, region, pool, enrollment string, now time.Time) error {
	ref, cloud := e.Box(), e.Cloud()
	place, ok := r.Regions[region]
	switch {
	case !cloud.Complete() || binding == nil:
		return fmt.Errorf("%w: enroll: no evidence", ErrInvalid)
	case !ok:
		return fmt.Errorf("%w: enroll box %q: region %q is not in the roster", ErrInvalid, ref, region)
	case cloud.Account != place.Account || cloud.Region != place.AWSRegion:
		return fmt.Errorf("%w: enroll box %q: it is %s, region %q is %s in account %s",
			ErrInvalid, ref, cloud, region, place.AWSRegion, place.Account)
	}
	if err := binding.Binds(*r, e, region, now); err != nil {
		return fmt.Errorf("%w: enroll box %q: %w", ErrInvalid, ref, err)
	}
	box := Box{Ref: ref, Enrollment: enrollment, EnrolledAt: now.UTC(), Region: region, Pool: pool, State: Active}
	if held, ok := r.Box(ref); ok {
		if held.Cloud != (boxid.Cloud{}) || held.Enrollment != enrollment || held.Region != region || held.Pool != pool {
			return fmt.Errorf("%w: box %q as %s in region %q, pool %q", ErrEnrolled, ref, held.Enrollment, held.Region, held.Pool)
		}
		box = held
	}
	box.Cloud, box.EvidenceSHA256 = cloud, e.SHA256()
	if r.Boxes == nil {
		r.Boxes = make(map[string]Box)
	}
	r.Boxes[ref] = box
	return nil
}

// Readmit says of the retired entry ref that the instance which it is runs on,
// and is enrolled under another reference: the one that e proves, by the call of
// [Roster.Enroll] that belongs to the same change. An entry that says so already
// stays as it is. One that is not retired, that was readmitted as another, that
// is of another instance, or that the roster does not hold, is [ErrInvalid].
func (r *Roster) Readmit(ref string, e boxid.Evidence) error {
	b, ok := r.Boxes[ref]
	switch {
	case !ok:
		return fmt.Errorf("%w: readmit box %q: it is not in the roster", ErrInvalid, ref)
	case b.State != Retired:
		return fmt.Errorf("%w: readmit box %q: it is %s", ErrInvalid, ref, b.State)
	case !b.Cloud.Complete() || b.Cloud != e.Cloud():
		return fmt.Errorf("%w: readmit box %q: it is %s, and %q is %s", ErrInvalid, ref, b.Cloud, e.Box(), e.Cloud())
	case b.ReadmittedAs != "" && b.ReadmittedAs != e.Box():
		return fmt.Errorf("%w: readmit box %q: it was readmitted as %q", ErrInvalid, ref, b.ReadmittedAs)
	}
	b.ReadmittedAs = e.Box()
	r.Boxes[ref] = b
	return nil
}

// Self decides whether a machine that proved to be the instance self may act as
// the box ref, and returns that box's entry. A box asks at its start and again
// before its first claim write, so that neither a cloned image nor a disk that
// was moved to another instance ever acts as the box it came from. Every
// refusal is [ErrNotSelf].
func (r Roster) Self(ref string, self boxid.Cloud) (Box, error) {
	b, ok := r.Box(ref)
	var why error
	switch {
	case !ok:
		why = errors.New("it is not enrolled")
	case !self.Complete():
		why = fmt.Errorf("this machine's own identity %s is incomplete", self)
	case !b.Cloud.Complete():
		why = fmt.Errorf("its entry has no proven cloud: %s", b.Cloud)
	case self.InstanceID != b.Cloud.InstanceID:
		why = fmt.Errorf("instance %q, the entry's is %q", self.InstanceID, b.Cloud.InstanceID)
	case self.Account != b.Cloud.Account:
		why = fmt.Errorf("account %q, the entry's is %q", self.Account, b.Cloud.Account)
	case self.Region != b.Cloud.Region:
		why = fmt.Errorf("region %q, the entry's is %q", self.Region, b.Cloud.Region)
	case self.Provider != b.Cloud.Provider:
		why = fmt.Errorf("provider %q, the entry's is %q", self.Provider, b.Cloud.Provider)
	case b.State != Active:
		why = fmt.Errorf("its entry is %s", b.State)
	}
	if why != nil {
		return Box{}, fmt.Errorf("roster: box %q: %w: %w", ref, ErrNotSelf, why)
	}
	return b, nil
}
