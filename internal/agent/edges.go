package agent

import (
	"context"
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
		Moved: func(hosts []string) {
			a.homes.look(ctx) // peers may have come that this box does not know yet
			for _, host := range hosts {
				a.hints.Send(hint.Outgoing{Hint: hint.Hint{Host: host}})
			}
		},
		Clock: a.clock,
	}
	return announcer.Run(ctx)
}

// clock says so when this box's clock is off. It serves on: nothing that it may
// do depends on what time it believes it is.
func (a *Agent) clock(off time.Duration) {
	if off.Abs() > announce.ClockLimit {
		a.log.Error("this box's clock is off from the store's; serving on", "off", off.Round(time.Second), "at_most", announce.ClockLimit)
	}
}

// edges is what this box says of itself now: it is home for the hosts whose row
// is ready, under their claims' stamps.
func (a *Agent) edges() placement.Edges {
	e := placement.Edges{
		Box: a.self.Box, Region: a.set.Region, Address: a.ingressAddr, Internal: a.internalAddr,
		Protocol: roster.Protocol, Capabilities: []string{placement.CapabilityRegionHA}, Accepting: true,
		SecretsKeyFP: a.secret.Fingerprint(), At: time.Now().UTC(), Hosts: map[string]placement.Host{},
	}
	for _, h := range a.rows() {
		s := h.shown.Load()
		if s == nil || s.run == nil {
			continue
		}
		e.Headroom.Awake++
		if s.row == ready {
			e.Hosts[h.name] = placement.Host{Role: placement.RoleHome, Stamp: stampOf(s.claim),
				App: s.record.Account + "/" + s.record.App, Aliases: s.record.Aliases}
		}
	}
	return e
}
