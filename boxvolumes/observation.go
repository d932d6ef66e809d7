package boxvolumes

import (
	"cmp"
	"slices"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/roster"
)

// Observation is what one reply of the cloud says of one instance's disks. A
// reply that is partial or an error is no Observation.
type Observation struct {
	Found      bool // the reply shows the instance
	InstanceID string
	Account    string // of the instance's owner
	Region     string // the cloud's own name, such as eu-west-1
	State      string // as the cloud spells it

	// Volumes lists all that the reply shows attached, in any order. Instance
	// stores, which end with their instance, are no volumes.
	Volumes []Volume
}

// recordable reports whether an observation says what is attached to the very
// instance of an entry. One that is terminated says nothing, even where it still
// lists a volume.
func (o Observation) recordable(entry roster.Box) bool {
	named := boxid.Cloud{Provider: entry.Cloud.Provider, Account: o.Account, Region: o.Region, InstanceID: o.InstanceID}
	return o.Found && entry.Cloud.Complete() && named == entry.Cloud && carriesMappings(o.State)
}

// sorted returns the volumes by id, in a list of their own.
func (o Observation) sorted() []Volume {
	return slices.SortedFunc(slices.Values(o.Volumes), func(a, b Volume) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Device, b.Device))
	})
}
