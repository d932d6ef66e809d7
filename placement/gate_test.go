package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// joining is box-2, which joins a region with box-1 and a worker.
func joining() placement.Joining {
	cloud := func(id string) boxid.Cloud {
		return boxid.Cloud{Provider: "aws", Account: "123456789012", Region: "eu-west-1", InstanceID: id}
	}
	one := file("box-1", map[string]uint64{"notes": 7})
	one.Edges.Region, one.Edges.Capabilities = "ie", []string{placement.CapabilityRegionHA}
	worker := file("worker-1", nil)
	worker.Edges.Region, worker.Edges.Capabilities = "ie", []string{placement.CapabilityWorker}
	return placement.Joining{Region: "ie", Box: "box-2", Now: now, Files: []placement.Published{one, worker},
		Roster: roster.Roster{Boxes: map[string]roster.Box{
			"box-1":    {Region: "ie", State: roster.Active, Cloud: cloud("i-1")},
			"box-2":    {Region: "ie", State: roster.Active, Cloud: cloud("i-2")},
			"worker-1": {Region: "ie", State: roster.Active},
		}},
		Claimed: func(host string) bool { return host == "notes" },
		Gone:    func(string) bool { return false },
	}
}

// edit changes the roster's entry of box-1.
func edit(j *placement.Joining, change func(*roster.Box)) {
	b := j.Roster.Boxes["box-1"]
	change(&b)
	j.Roster.Boxes["box-1"] = b
}

func TestASecondBoxJoinsOnlyARegionThatIsReadyForIt(t *testing.T) {
	require.NoError(t, placement.Permits(joining()))
	for reason, spoil := range map[string]func(j *placement.Joining){
		"has no proven cloud": func(j *placement.Joining) { edit(j, func(b *roster.Box) { b.Cloud.InstanceID = "" }) },
		"has not published":   func(j *placement.Joining) { j.Files = j.Files[1:] },
		`region "fr"`:         func(j *placement.Joining) { j.Files[0].Edges.Region = "fr" },
		"want region-ha-1":    func(j *placement.Joining) { j.Files[0].Edges.Capabilities = nil },
		"serves notes, which has no claim": func(j *placement.Joining) {
			j.Claimed = func(string) bool { return false }
		},
		"box box-9 publishes an edges file and is not enrolled": func(j *placement.Joining) {
			f := file("box-9", nil)
			f.Edges.Region = "ie"
			j.Files = append(j.Files, f)
		},
	} {
		t.Run(reason, func(t *testing.T) {
			j := joining()
			spoil(&j)
			err := placement.Permits(j)
			require.ErrorIs(t, err, placement.ErrNotPermitted)
			require.ErrorContains(t, err, reason)
		})
	}
}

// TestWhoIsNotInTheRegionIsNotInTheWay: each is a box that says nothing of
// itself.
func TestWhoIsNotInTheRegionIsNotInTheWay(t *testing.T) {
	for name, spoil := range map[string]func(j *placement.Joining){
		"another region":            func(j *placement.Joining) { edit(j, func(b *roster.Box) { b.Region = "fr" }) },
		"retired":                   func(j *placement.Joining) { edit(j, func(b *roster.Box) { b.State = roster.Retired }) },
		"declared lost":             func(j *placement.Joining) { edit(j, func(b *roster.Box) { b.State = roster.Quarantined }) },
		"its machine is terminated": func(j *placement.Joining) { j.Gone = func(ref string) bool { return ref == "box-1" } },
		"a first box":               func(j *placement.Joining) { delete(j.Roster.Boxes, "box-1") },
		"the box itself":            func(j *placement.Joining) { j.Box = "box-1"; delete(j.Roster.Boxes, "box-2") },
		"it publishes nothing lately": func(j *placement.Joining) {
			delete(j.Roster.Boxes, "box-1")
			f := file("box-9", nil)
			f.Edges.Region, f.ModTime = "ie", now.Add(-time.Hour)
			j.Files = append(j.Files, f)
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := joining()
			j.Files = j.Files[1:]
			spoil(&j)
			require.NoError(t, placement.Permits(j))
		})
	}
}

func TestABoxThatDiedSpokeTheProtocol(t *testing.T) {
	j := joining()
	j.Files[0].ModTime = now.Add(-24 * time.Hour)
	require.NoError(t, placement.Permits(j))
}
