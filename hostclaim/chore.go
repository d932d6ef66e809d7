package hostclaim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carlosframework/regionha/termfence"
)

// The kinds of chore.
const (
	ParkLocal      = "park-local"      // a box puts its local state of the host away
	ParkGeneration = "park-generation" // a region puts a dead generation away, or all of them
	ParkReplica    = "park-replica"    // a region puts all of an incarnation away
)

// Obligation is clean-up that a box or a region owes.
type Obligation struct {
	ID          string `json:"id"`
	Op          string `json:"op"` // the operation that left it behind
	Kind        string `json:"kind"`
	Incarnation string `json:"incarnation"`
	Box         string `json:"box"`    // whose local state, for park-local
	Region      string `json:"region"` // whose data store
	// Generation is the one of a park-generation. Where too many were dead to
	// list it is "": every generation but those in [Claim.Chain], in
	// [Claim.FilesChain] and the prepared one.
	Generation string `json:"generation"`
	Owner      string `json:"owner"` // box:<ref> or region:<code>
	Park       *Park  `json:"park"`  // its scope, once bound
}

// Park is the scope of a chore over stored objects. It is bound once, and every
// retry uses it.
type Park struct {
	Location     string        `json:"location"`
	Incarnation  string        `json:"incarnation"`
	EvidenceAt   time.Time     `json:"evidence_at"`   // when the last writer had stopped or was gone, never when the clean-up began
	RequestLimit time.Duration `json:"request_limit"` // how long a request may be under way
}

const (
	ownerBox    = "box:"
	ownerRegion = "region:"
)

// BindScope binds the scope of a chore, once.
func BindScope(op, id string, p Park) Transition {
	return func(c *Claim) error {
		p.EvidenceAt = p.EvidenceAt.UTC()
		o := c.obligation(op, id)
		if o == nil {
			return wrong("no chore %s of %s is open", id, op)
		}
		if o.Park != nil {
			if *o.Park == p {
				return ErrAlreadyRecorded
			}
			return wrong("chore %s is bound to %s up to %s", id, o.Park.Location, o.Park.EvidenceAt)
		}
		switch want := LocationOf(c.Host, o.Incarnation); {
		case o.Kind == ParkLocal:
			return wrong("a %s has no scope: its box clears it at once", ParkLocal)
		case p.Incarnation != o.Incarnation || p.Location != want:
			return wrong("scope of %s is incarnation %q at %q, want %q at %q", id, p.Incarnation, p.Location, o.Incarnation, want)
		case p.EvidenceAt.IsZero() || p.RequestLimit <= 0:
			return wrong("scope of %s ends at %s with a request limit of %s: want both", id, p.EvidenceAt, p.RequestLimit)
		case o.Kind == ParkGeneration && o.Generation == "" && c.sweepBound(o.Region):
			return wrong("another chore over all dead generations of %q is bound: it comes first", o.Region)
		}
		o.Park = &p
		return nil
	}
}

// CompleteObligation removes a chore that was done; one that is not open counts as
// done. A box that cleared its local state holds none any more. The last chore of
// a host without a holder frees it.
func CompleteObligation(op, id string) Transition {
	return func(c *Claim) error {
		o := c.obligation(op, id)
		switch {
		case o == nil:
			return ErrAlreadyRecorded
		case o.Kind != ParkLocal && o.Park == nil:
			return wrong("chore %s is not bound to a scope", id)
		case o.Kind == ParkLocal && o.Box == c.Op.Exec:
			return wrong("%s executes: its local state is live", o.Box)
		}
		if o.Kind == ParkLocal {
			c.cleared(o.Box)
		} else {
			c.drop(func(x Obligation) bool { return x.ID == id })
		}
		if c.Op.Kind == Parking && c.Holder == nil && len(c.Obligations) == 0 {
			c.Op = Op{Kind: Free}
		}
		return nil
	}
}

// DischargeDestroyed completes the local chores of a box whose disks an operator
// declared destroyed: a box that is gone, whether this host lost it or had left
// it before.
func DischargeDestroyed(d termfence.Destroyed) Transition {
	return func(c *Claim) error {
		switch {
		case d.Box() == "":
			return wrong("no declaration that a disk is destroyed")
		case d.Box() == c.Op.Exec:
			return wrong("%s executes: the host is to leave it first", d.Box())
		case !c.Owes(d.Box(), ParkLocal) && !contains(c.Touched, d.Box()):
			return ErrAlreadyRecorded
		}
		c.cleared(d.Box())
		return nil
	}
}

// cleared records that box holds no local state of the host.
func (c *Claim) cleared(box string) {
	c.drop(func(o Obligation) bool { return o.Kind == ParkLocal && o.Box == box })
	c.Touched = without(c.Touched, func(b string) bool { return b == box })
}

func (c *Claim) drop(done func(Obligation) bool) {
	c.Obligations = without(c.Obligations, done)
}

func (c *Claim) obligation(op, id string) *Obligation {
	for i, o := range c.Obligations {
		if o.ID == id && o.Op == op {
			return &c.Obligations[i]
		}
	}
	return nil
}

// oweLocal queues the clean-up of every box that may hold local state and does
// not execute.
func (c *Claim) oweLocal() {
	for _, box := range c.Touched {
		if box != c.Op.Exec {
			c.oweLocalOf(box)
		}
	}
}

func (c *Claim) oweLocalOf(box string) {
	if contains(c.Touched, box) && !c.Owes(box, ParkLocal) {
		c.owe(Obligation{Kind: ParkLocal, Box: box, Owner: ownerBox + box})
	}
}

// oweGeneration queues the parking of a dead generation. Where too many wait,
// one chore over all of them takes their place; those that are bound already keep
// theirs.
func (c *Claim) oweGeneration(generation string) {
	region, listed := c.Holder.Region, 0
	for _, o := range c.Obligations {
		if o.Kind != ParkGeneration || o.Region != region {
			continue
		}
		if o.Generation == generation || (o.Generation == "" && o.Park == nil) {
			return
		}
		listed++
	}
	o := Obligation{Kind: ParkGeneration, Region: region, Generation: generation, Owner: ownerRegion + region}
	if listed >= keepOthers {
		c.drop(func(x Obligation) bool { return x.Kind == ParkGeneration && x.Region == region && x.Park == nil })
		o.Generation = ""
	}
	c.owe(o)
}

// sweepBound reports whether a bound chore over all dead generations is open.
func (c *Claim) sweepBound(region string) bool {
	return slices.ContainsFunc(c.Obligations, func(o Obligation) bool {
		return o.Kind == ParkGeneration && o.Region == region && o.Generation == "" && o.Park != nil
	})
}

// owe queues a chore. Its id is of this write: whoever completes an earlier
// chore late does not complete this one.
func (c *Claim) owe(o Obligation) {
	o.Op = c.Op.ID
	if c.Holder != nil {
		o.Incarnation, o.Region = c.Holder.Incarnation, c.Holder.Region
	}
	o.ID = o.Kind + "." + derivedID(o.Incarnation, o.Op, o.Box, o.Region, o.Generation, fmt.Sprint(c.Gen))
	c.Obligations = append(c.Obligations, o)
}

func checkOwner(owner string) bool {
	return (strings.HasPrefix(owner, ownerBox) && len(owner) > len(ownerBox)) ||
		(strings.HasPrefix(owner, ownerRegion) && len(owner) > len(ownerRegion))
}
