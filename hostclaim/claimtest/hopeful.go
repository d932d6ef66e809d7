package claimtest

import "github.com/carlosframework/regionha/hostclaim"

// place is where a claim is: a bit for its kind, or for the phase of its
// relocation.
type place uint16

const (
	serving place = 1 << iota
	starting
	releasing
	pinning
	installing
	installed
	probing
	probeFailed
	deleting
	stuck
	elsewhere
)

var phases = map[hostclaim.Phase]place{
	hostclaim.Starting: starting, hostclaim.Releasing: releasing, hostclaim.Pinning: pinning, hostclaim.Installing: installing,
	hostclaim.Installed: installed, hostclaim.Probing: probing, hostclaim.ProbeFailed: probeFailed,
}

// position is where the claim is. An operation that is stuck is nowhere else.
func position(c *hostclaim.Claim) place {
	switch {
	case c == nil:
		return elsewhere
	case c.Op.Journal.Stuck != nil && c.Op.Phase == hostclaim.Starting:
		return stuck | starting
	case c.Op.Journal.Stuck != nil:
		return stuck
	case c.Op.Kind == hostclaim.Serving:
		return serving
	case c.Op.Kind == hostclaim.Deleting:
		return deleting
	case c.Op.Kind == hostclaim.Relocating:
		return phases[c.Op.Phase]
	}
	return elsewhere
}

// sense says where a step makes sense to try. What is not listed may everywhere.
// It saves refusals and decides nothing: hasty actors and those that look again
// late ask for steps in any place.
var sense = map[string]place{
	"to releasing": starting, "pin failover": starting, "cancel drain": starting,
	"pin after release": releasing, "pin after release and name": probeFailed,
	"journal pin": pinning, "pin and hand over": pinning, "hand over": pinning, "stuck: pin uncovered": pinning,
	"accept build": installing, "local install": installed | probing, "to probing": installed, "install and open": installed | probing,
	"begin attempt": probing, "open": probing, "open and declare": probing, "admit and declare": serving | starting | releasing | probing,
	"admit under the same stamp": 0, "pass probe": probing, "complete relocation": probing, "to probe-failed": probing,
	"receipt lost": probing, "stuck: install overdue": installing | installed, "stuck: release overdue": releasing | probeFailed | deleting,
	"admit": serving | starting | releasing | probing, "admit under a new stamp": serving | starting | releasing | probing,
	"publish": serving | starting | releasing | probing, "abandon target": starting | releasing | pinning | installing | installed | probing | probeFailed,
	"stuck: no spare": starting | releasing | pinning | installing | installed | probing | probeFailed,
	"resolve":         stuck,
}

func (s Step) hopeful(at place) bool {
	in, ok := sense[s.Name]
	return !ok || in&at != 0
}
