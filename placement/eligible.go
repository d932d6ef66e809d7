package placement

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carlosframework/regionha/roster"
)

// ErrIneligible: the box may not be given the host, for the reason that the
// error says.
var ErrIneligible = errors.New("not eligible")

// Want is one placement: what the host needs, and what its claim excludes.
type Want struct {
	Region       string        // placement code
	RosterRegion roster.Region // the roster's entry for it
	Pool         string
	SecretsKeyFP string    // of the deployment's secret
	Lost         []string  // the claim's lost boxes
	Owing        []string  // boxes that owe this host a park-local
	Excluded     []string  // boxes that the operation may not name: source, target, replaced ones
	Now          time.Time // the reader's clock, kept within 30 s of the store's
}

// Candidate is everything that is known of one box, all by one reference.
type Candidate struct {
	Ref      string
	Box      roster.Box // its roster entry; zero if it has none
	File     Published  // its edges file; zero if it has none
	Fenced   bool
	FenceErr error // the fence could not be read
}

// Eligible is nil where the box may be given the host. Otherwise it is
// [ErrIneligible] with the first reason, or the error with which its fence could
// not be read: then nothing is known of it, and the caller chooses nobody.
func Eligible(want Want, c Candidate) error {
	if c.FenceErr != nil {
		return fmt.Errorf("placement: box %s: its fence: %w", c.Ref, c.FenceErr)
	}
	for _, judge := range []func(Want, Candidate) error{enrolled, published, accepting, allowed} {
		if err := judge(want, c); err != nil {
			return fmt.Errorf("placement: box %s: %w: %w", c.Ref, ErrIneligible, err)
		}
	}
	return nil
}

// enrolled judges the roster's half, and the fence. An empty expectation
// matches nothing.
func enrolled(want Want, c Candidate) error {
	switch box, region := c.Box, want.RosterRegion; {
	case c.Ref == "" || box.Ref != c.Ref:
		return fmt.Errorf("no roster entry of its own (%q)", box.Ref)
	case box.State != roster.Active:
		return fmt.Errorf("state %s, want %s", box.State, roster.Active)
	case !box.Cloud.Complete():
		return errors.New("no proven cloud instance")
	case want.Region == "" || box.Region != want.Region:
		return fmt.Errorf("enrolled in region %q, want %q", box.Region, want.Region)
	case region.Account == "" || box.Cloud.Account != region.Account:
		return fmt.Errorf("cloud account %q, want %q", box.Cloud.Account, region.Account)
	case region.AWSRegion == "" || box.Cloud.Region != region.AWSRegion:
		return fmt.Errorf("cloud region %q, want %q", box.Cloud.Region, region.AWSRegion)
	case want.Pool == "" || box.Pool != want.Pool:
		return fmt.Errorf("pool %q, want %q", box.Pool, want.Pool)
	case box.Draining:
		return errors.New("draining, by the roster")
	case c.Fenced:
		return errors.New("its machine is terminated")
	}
	return nil
}

// published judges whether the edges file is this box's, and speaks now.
func published(want Want, c Candidate) error {
	e := c.File.Edges
	switch {
	case c.File.ModTime.IsZero():
		return errors.New("no edges file")
	case e.Box != c.Ref:
		return fmt.Errorf("the edges file is of box %q", e.Box)
	case e.Region != want.Region:
		return fmt.Errorf("its edges file says region %q, want %q", e.Region, want.Region)
	}
	return c.File.Fresh(want.Now)
}

// accepting judges what the edges file offers.
func accepting(want Want, c Candidate) error {
	e := c.File.Edges
	switch {
	case !slices.Contains(e.Capabilities, CapabilityRegionHA):
		return fmt.Errorf("capabilities %q, want %s", e.Capabilities, CapabilityRegionHA)
	case e.Draining:
		return errors.New("draining")
	case !e.Accepting:
		return errors.New("not accepting hosts")
	case want.SecretsKeyFP == "" || e.SecretsKeyFP != want.SecretsKeyFP:
		return fmt.Errorf("secrets key %q, want %q", e.SecretsKeyFP, want.SecretsKeyFP)
	}
	if err := Dialable(e.Address); err != nil {
		return fmt.Errorf("ingress: %w", err)
	}
	if err := Dialable(e.Internal); err != nil {
		return fmt.Errorf("internal: %w", err)
	}
	return nil
}

// allowed judges what the claim excludes.
func allowed(want Want, c Candidate) error {
	switch {
	case slices.Contains(want.Lost, c.Ref):
		return errors.New("lost for this host")
	case slices.Contains(want.Owing, c.Ref):
		return errors.New("it still has to retire its old copy of this host")
	case slices.Contains(want.Excluded, c.Ref):
		return errors.New("excluded by the running operation")
	}
	return nil
}
