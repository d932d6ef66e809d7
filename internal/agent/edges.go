package agent

import (
	"context"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/announce"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// publishEvery is how often the edges file is published when nothing changes.
const publishEvery = 5 * time.Minute

// publishEdges keeps this box's edges file published until ctx ends. The last
// one says that the box takes no hosts.
func (a *Agent) publishEdges(ctx context.Context) error {
	announcer := announce.Announcer{
		Store: a.control, Changed: a.dirty, Every: publishEvery, Log: a.log,
		Edges: func() placement.Edges {
			e := a.edges()
			e.Accepting = e.Accepting && ctx.Err() == nil
			return e
		},
		Claims: &a.claims, Read: a.readClaim,
		Moved: a.tellMoved, Clock: a.clock,
	}
	return announcer.Run(ctx)
}

// readClaim reads what decides whether a row is published: one GET.
func (a *Agent) readClaim(ctx context.Context, host string) (placement.Claim, error) {
	o, err := hostclaim.Read(ctx, a.control, host)
	if err != nil {
		return placement.Claim{}, err
	}
	return behind(o), nil
}

// behind is what the edges file needs of a claim.
func behind(o hostclaim.Observed) placement.Claim {
	if o.Claim == nil {
		return placement.Claim{}
	}
	c := placement.Claim{Stamp: stampOf(o.Claim), Gen: o.Claim.Gen, ETag: o.ETag}
	if o.Claim.Holder != nil {
		c.Exec = o.Claim.Op.Exec
	}
	return c
}

// tellMoved tells every peer at once, in one hint for a whole file, that hosts
// have a new home here: those that hold requests look for them, see
// [Agent.homeMoved]. Everybody else asks when a request needs it.
func (a *Agent) tellMoved(hosts []string) {
	a.hints.Send(hint.Outgoing{Hint: hint.Hint{Host: hosts[0]}})
}

// homeMoved takes a peer's hint that it is a new home. Who holds no request
// reads nothing, whatever moves in the region.
func (a *Agent) homeMoved() {
	if a.gateway.Held() > 0 {
		a.homes.soon()
	}
}

// clock says so when this box's clock is off. It serves on: nothing that it may
// do depends on what time it believes it is.
func (a *Agent) clock(off time.Duration) {
	if off.Abs() <= announce.ClockLimit {
		a.alerts.Clear(alert.Clock, a.self.Box)
		return
	}
	a.alerts.Raise(alert.Clock, a.self.Box, "this box's clock is off from the store's; serving on",
		"off", off.Round(time.Second), "at_most", announce.ClockLimit)
}

// edges is what this box says of itself now: it is home for the hosts whose row
// is ready and for those that sleep here. What their claims say of them is the
// announcer's to add.
func (a *Agent) edges() placement.Edges {
	e := placement.Edges{
		Box: a.self.Box, Region: a.set.Region, Address: a.ingressAddr, Internal: a.internalAddr,
		Protocol: roster.Protocol, Capabilities: []string{placement.CapabilityRegionHA},
		Accepting: a.place.accepts(), Draining: a.place.draining.Load(),
		SecretsKeyFP: a.secret.Fingerprint(), At: time.Now().UTC(), Hosts: map[string]placement.Host{},
	}
	if a.canRelease() {
		e.Capabilities = append(e.Capabilities, placement.CapabilityRelease)
	}
	e.Headroom.MemoryBytes, e.Headroom.DiskBytes = headroom(a.set.DataDir)
	for _, h := range a.rows() {
		s := h.shown.Load()
		if s == nil || (s.run == nil && !s.idle) {
			continue
		}
		if s.run != nil {
			e.Headroom.Awake++
		}
		if s.row == ready || s.idle {
			e.Hosts[h.name] = placement.Host{Role: placement.RoleHome,
				App: s.record.Account + "/" + s.record.App, Aliases: s.record.Aliases}
		}
	}
	return e
}
