package agent

import (
	"context"
	"slices"
	"time"

	"github.com/carlosframework/regionha/internal/announce"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// publishEvery is how often the edges file is published when nothing changes.
const publishEvery = 5 * time.Minute

// publishEdges keeps this box's edges file published until ctx ends.
func (a *Agent) publishEdges(ctx context.Context) error {
	announcer := announce.Announcer{
		Store: a.control, Edges: a.edges, Changed: a.dirty, Every: publishEvery, Log: a.log,
		Moved: func(hosts []string) { a.tellMoved(ctx, hosts) },
		Clock: a.clock,
	}
	return announcer.Run(ctx)
}

// tellMoved tells the peers at once that hosts have a new home here, and then
// those that have come since this box last read who they are.
func (a *Agent) tellMoved(ctx context.Context, hosts []string) {
	tell := func(peers []string) {
		for _, host := range hosts {
			a.hints.Send(hint.Outgoing{Hint: hint.Hint{Host: host}, To: peers})
		}
	}
	known := a.homes.boxes()
	tell(known)
	a.homes.look(ctx)
	came := slices.DeleteFunc(a.homes.boxes(), func(box string) bool { return contains(known, box) })
	if len(came) > 0 {
		tell(came)
	}
}

// clock says so when this box's clock is off. It serves on: nothing that it may
// do depends on what time it believes it is.
func (a *Agent) clock(off time.Duration) {
	if off.Abs() > announce.ClockLimit {
		a.log.Error("this box's clock is off from the store's; serving on", "off", off.Round(time.Second), "at_most", announce.ClockLimit)
	}
}

// edges is what this box says of itself now: it is home for the hosts whose row
// is ready and for those that sleep here, under their claims' stamps.
func (a *Agent) edges() placement.Edges {
	e := placement.Edges{
		Box: a.self.Box, Region: a.set.Region, Address: a.ingressAddr, Internal: a.internalAddr,
		Protocol: roster.Protocol, Capabilities: []string{placement.CapabilityRegionHA}, Accepting: true,
		SecretsKeyFP: a.secret.Fingerprint(), At: time.Now().UTC(), Hosts: map[string]placement.Host{},
	}
	if a.canRelease() {
		e.Capabilities = append(e.Capabilities, placement.CapabilityRelease)
	}
	for _, h := range a.rows() {
		s := h.shown.Load()
		if s == nil || (s.run == nil && !s.idle) {
			continue
		}
		if s.run != nil {
			e.Headroom.Awake++
		}
		if s.row == ready || s.idle {
			e.Hosts[h.name] = placement.Host{Role: placement.RoleHome, Stamp: stampOf(s.claim),
				App: s.record.Account + "/" + s.record.App, Aliases: s.record.Aliases}
		}
	}
	return e
}
