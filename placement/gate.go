package placement

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/carlosframework/regionha/roster"
)

// ErrNotPermitted: the region may not have another box yet, for the reason that
// the error says. The box that joined makes no rows until it may.
var ErrNotPermitted = errors.New("the region may not have another box yet")

// Joining is a box that joins a region, and everything that is known of the
// region. What could not be read is not known: then there is nothing to ask
// [Permits].
type Joining struct {
	Region  string // placement code
	Box     string // who joins
	Roster  roster.Roster
	Files   []Published            // every edges file of the deployment
	Claimed func(host string) bool // the host has a claim
	Gone    func(ref string) bool  // the machine of a box that is in the way is proven terminated
	Now     time.Time
}

// Permits is the multi-box gate. It is nil where no other box is in the region,
// and where every host that is published there has a claim and every box there
// is active, with a proven cloud, and publishes [CapabilityRegionHA]. Otherwise
// it is [ErrNotPermitted] with the first reason, by reference.
//
// A box is in the region by its roster entry, as long as that is active and its
// machine is not gone, or by a fresh edges file of its own without an entry. A
// file of an enrolled box counts at any age: a box that died spoke the protocol
// while it lived. Whether disks are recorded is no part of it.
func Permits(j Joining) error {
	files := map[string]Published{}
	for _, f := range j.Files {
		files[f.Edges.Box] = f
	}
	for _, ref := range slices.Sorted(maps.Keys(j.Roster.Boxes)) {
		box, _ := j.Roster.Box(ref)
		file, published := files[ref]
		delete(files, ref)
		if ref == j.Box || box.Region != j.Region || box.State != roster.Active || worker(file) {
			continue
		}
		if err := j.fit(box, file, published); err != nil && !j.Gone(ref) {
			return fmt.Errorf("placement: region %s: %w: box %s %w", j.Region, ErrNotPermitted, ref, err)
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(files)) {
		if f := files[ref]; f.Edges.Region == j.Region && f.Fresh(j.Now) == nil {
			return fmt.Errorf("placement: region %s: %w: box %s publishes an edges file and is not enrolled", j.Region, ErrNotPermitted, ref)
		}
	}
	return nil
}

// fit judges another box of the region.
func (j Joining) fit(box roster.Box, file Published, published bool) error {
	switch e := file.Edges; {
	case !box.Cloud.Complete():
		return errors.New("has no proven cloud instance")
	case !published:
		return errors.New("has not published an edges file: start it, or retire it")
	case e.Region != j.Region:
		return fmt.Errorf("publishes region %q", e.Region)
	case !slices.Contains(e.Capabilities, CapabilityRegionHA):
		return fmt.Errorf("publishes capabilities %q, want %s: replace its agent", e.Capabilities, CapabilityRegionHA)
	}
	for _, host := range slices.Sorted(maps.Keys(file.Edges.Hosts)) {
		if !j.Claimed(host) {
			return fmt.Errorf("serves %s, which has no claim", host)
		}
	}
	return nil
}

// worker reports whether a file is of a process that runs no hosts.
func worker(f Published) bool {
	c := f.Edges.Capabilities
	return slices.Contains(c, CapabilityWorker) && !slices.Contains(c, CapabilityRegionHA)
}
