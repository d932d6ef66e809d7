package claimtest

import (
	"slices"

	"github.com/carlosframework/regionha/hostclaim"
)

// chores is a part of property 5: no chore goes but by being done, and none is
// about what is still needed.
func (k *checker) chores(before, after *hostclaim.Claim) error {
	for _, o := range before.Obligations {
		if slices.ContainsFunc(after.Obligations, func(x hostclaim.Obligation) bool { return x.ID == o.ID }) {
			continue
		}
		switch {
		case o.Kind == hostclaim.ParkLocal:
			if after.Op.Exec == o.Box {
				return broken(5, "%s executes, and its %s is gone", o.Box, o.Kind)
			}
			delete(k.local, o.Box) // its box, or whoever saw its disks destroyed, said so
		case o.Park == nil && !slices.ContainsFunc(after.Obligations, wide):
			return broken(5, "chore %s is gone without having been bound", o.ID)
		}
	}
	for _, o := range after.Obligations {
		if o.Kind == hostclaim.ParkGeneration && needed(after, o) {
			return broken(5, "%s waits to be parked and is still needed", o.Generation)
		}
	}
	return nil
}

// needed reports whether a baseline may still come from what a chore puts away.
func needed(c *hostclaim.Claim, o hostclaim.Obligation) bool {
	h := c.Holder
	if h == nil || o.Generation == "" || o.Incarnation != h.Incarnation {
		return false
	}
	for _, l := range c.Chain() {
		if l.Generation == o.Generation {
			return true
		}
	}
	j := c.Op.Journal
	return slices.Contains(c.FilesChain(), o.Generation) || o.Generation == j.Prepared && j.PreparedOpened != j.Prepared
}

// finished is the rest of property 5: as an operation ends, every other box that
// may hold local state owes its clean-up, and every prepared generation that
// nobody opened is to be parked.
func (k *checker) finished(before, after *hostclaim.Claim) error {
	if exec := after.Op.Exec; exec != "" && exec != hostclaim.None {
		k.local[exec] = true
	}
	if after.Op.Kind == hostclaim.Relocating || after.Op.Kind == hostclaim.Deleting || after.Op.Kind == hostclaim.Creating {
		return nil
	}
	for ref := range k.local {
		if ref == after.Op.Exec || after.Owes(ref, hostclaim.ParkLocal) || k.w.Box(ref).DisksGone {
			continue
		}
		return broken(5, "%s may hold local state and owes nothing, in %s on %q", ref, after.Op.Kind, after.Op.Exec)
	}
	if before.Op.Kind != hostclaim.Relocating {
		return nil
	}
	for _, g := range k.generations {
		if !g.prepared || g.session > 0 || k.parked[g.id] != "" {
			continue
		}
		if !owesGeneration(after, g.id) {
			return broken(5, "%s was prepared, nobody opened it, and it is not to be parked", g.id)
		}
		k.parked[g.id] = after.Op.ID
	}
	return nil
}
