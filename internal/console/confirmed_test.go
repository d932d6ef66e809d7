package console_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/membership"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

const groupARN = "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:1:autoScalingGroupName/boxes"

// grouped is a deployment whose region has a group, with an Enroller.
type grouped struct {
	*deployment
	*console.Enroller
	logged bytes.Buffer
}

func group(t *testing.T) *grouped {
	t.Helper()
	g := &grouped{deployment: deploy(t)}
	_, err := roster.Update(t.Context(), g.mem, g.Private, g.Roster, func(r *roster.Roster) error {
		ie := r.Regions["ie"]
		ie.GroupName, ie.GroupARN = "boxes", groupARN
		r.Regions["ie"] = ie
		return nil
	})
	require.NoError(t, err)
	g.Enroller = g.enroller()
	return g
}

func (g *grouped) enroller() *console.Enroller {
	log := slog.New(slog.NewTextHandler(&g.logged, nil))
	return &console.Enroller{Console: g.deployment.Console, Alerts: alert.New(log), Log: log}
}

// confirm lets the worker that runs on box-1 confirm a box of the group.
func (g *grouped) confirm(t *testing.T, ref, instance string) {
	t.Helper()
	snap, err := g.Roster.Read(t.Context())
	require.NoError(t, err)
	by := membership.Confirmer{Box: "box-1", Enrollment: snap.Boxes["box-1"].Enrollment, Region: "ie"}
	cloud := boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: instance}
	rec, err := membership.Verify(snap.Roster, by, "ie", membership.Sighting{Identity: boxidtest.Unbound(t, ref, cloud),
		Group: membership.Observation{Found: true, InstanceID: instance, AWSRegion: "eu-west-1", Zone: "eu-west-1a", GroupName: "boxes",
			GroupARN: groupARN, LifecycleState: membership.InService, RequestIDs: []string{"r"}}}, g.clock)
	require.NoError(t, err)
	_, err = membership.Publish(t.Context(), g.mem, membership.Reader{Store: g.mem, Roster: g.Roster}, rec)
	require.NoError(t, err)
}

// asked counts the requests of what follows.
func (g *grouped) asked() *int {
	n := new(int)
	g.mem.Inject(func(memstore.Request) memstore.Fault { *n++; return memstore.None })
	return n
}

func TestAConfirmedBoxIsEnrolledByTheServer(t *testing.T) {
	g := group(t)
	for i := range 3 {
		ref, instance := fmt.Sprintf("new-%d", i), fmt.Sprintf("i-new-%d", i)
		g.identify(t, ref, instance)
		g.confirm(t, ref, instance)
	}
	before := len(g.mem.Log())
	require.NoError(t, g.Pass(t.Context()))
	require.Len(t, g.mem.Log(), before+1, "one write for all of them")
	for i := range 3 {
		box := g.entry(t, fmt.Sprintf("new-%d", i))
		require.Equal(t, roster.Active, box.State)
		require.Equal(t, fmt.Sprintf("i-new-%d", i), box.Cloud.InstanceID)
		require.Equal(t, "ie", box.Region)
		require.Equal(t, "default", box.Pool)
	}
	requests := g.asked()
	require.NoError(t, g.Pass(t.Context()))
	require.Equal(t, 1, *requests, "at rest a pass is one LIST")
}

func TestAPassEnrollsSomeAndTheNextOneTheRest(t *testing.T) {
	g := group(t)
	for i := range 70 {
		ref, instance := fmt.Sprintf("new-%02d", i), fmt.Sprintf("i-new-%02d", i)
		g.identify(t, ref, instance)
		g.confirm(t, ref, instance)
	}
	for _, enrolled := range []int{64, 70} {
		require.NoError(t, g.Pass(t.Context()))
		snap, err := g.Roster.Read(t.Context())
		require.NoError(t, err)
		require.Len(t, snap.Boxes, enrolled+1)
	}
}

func TestAnIdentityWithoutAConfirmationEnrollsNobody(t *testing.T) {
	g := group(t)
	g.identify(t, "new", "i-new")
	before := len(g.mem.Log())
	require.NoError(t, g.Pass(t.Context()))
	require.Len(t, g.mem.Log(), before)
}

func TestAConsoleThatIsKilledBetweenItsReadsAndItsWriteLeavesNothing(t *testing.T) {
	for name, fault := range map[string]memstore.Fault{"lost": memstore.Lose, "held": memstore.Hold, "answer lost": memstore.LoseAnswer} {
		t.Run(name, func(t *testing.T) {
			g := group(t)
			g.identify(t, "new", "i-new")
			g.confirm(t, "new", "i-new")
			ctx, kill := context.WithCancel(t.Context())
			g.mem.Inject(func(r memstore.Request) memstore.Fault {
				if r.Op == memstore.OpPut && r.Key == roster.Key {
					kill()
					return fault
				}
				return memstore.None
			})
			_ = g.Pass(ctx) // nobody is there to read its error
			g.mem.Inject(nil)
			require.NoError(t, g.enroller().Pass(t.Context()))
			first := g.entry(t, "new")
			require.Equal(t, "i-new", first.Cloud.InstanceID)
			for _, held := range g.mem.Held() {
				_, _ = held.Deliver() // it lands late, and finds that it lost
			}
			require.NoError(t, g.enroller().Pass(t.Context()))
			require.Equal(t, first, g.entry(t, "new"))
		})
	}
}

func TestTwoConsolesEnrollABoxOnce(t *testing.T) {
	g := group(t)
	g.identify(t, "new", "i-new")
	g.confirm(t, "new", "i-new")
	other, raced := g.enroller(), false
	g.mem.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpPut && r.Key == roster.Key && !raced {
			raced = true
			require.NoError(t, other.Pass(t.Context()))
		}
		return memstore.None
	})
	require.NoError(t, g.Pass(t.Context()))
	require.True(t, raced)
	require.Equal(t, 2, strings.Count(g.logged.String(), g.entry(t, "new").Enrollment), "both tell the one enrollment")
}

func TestARefusedBoxIsAnAlertAndKeepsNoOtherWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(*testing.T, *grouped)
		reason string
	}{
		"no identity": {func(*testing.T, *grouped) {}, "control/boxes/bad.json"},
		"another instance's identity": {func(t *testing.T, g *grouped) {
			g.identify(t, "bad", "i-other")
		}, "i-other"},
		"an identity that is none": {func(t *testing.T, g *grouped) {
			_, err := g.mem.Put(t.Context(), boxid.Key("bad"), []byte("{}"), objstore.IfAbsent())
			require.NoError(t, err)
		}, "identity not verified"},
		"its group was replaced": {func(t *testing.T, g *grouped) {
			g.identify(t, "bad", "i-bad")
			key := membership.Key("bad", g.clock)
			obj, err := g.mem.Get(t.Context(), key)
			require.NoError(t, err)
			_, err = g.mem.Put(t.Context(), key, bytes.Replace(obj.Body, []byte("Group:1:"), []byte("Group:2:"), 1), objstore.Always())
			require.NoError(t, err)
		}, "the placement's is"},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(t)
			g.confirm(t, "bad", "i-bad")
			c.spoil(t, g)
			g.identify(t, "good", "i-good")
			g.confirm(t, "good", "i-good")
			require.NoError(t, g.Pass(t.Context()))
			require.Equal(t, "i-good", g.entry(t, "good").Cloud.InstanceID)
			require.Zero(t, g.entry(t, "bad"))
			require.True(t, g.Alerts.Raised(alert.Enrollment, "bad"))
			require.Contains(t, g.logged.String(), c.reason)

			requests := g.asked()
			require.NoError(t, g.Pass(t.Context()))
			require.Equal(t, 1, *requests, "it is let alone for a while")
			g.clock = g.clock.Add(time.Second)
			require.NoError(t, g.Pass(t.Context()))
			require.Greater(t, *requests, 2)
			require.Equal(t, 1, strings.Count(g.logged.String(), "level=ERROR"), "and it is said once")
		})
	}
}

func TestANewConfirmationOfARefusedBoxIsTriedAtOnce(t *testing.T) {
	g := group(t)
	g.confirm(t, "new", "i-new")
	require.NoError(t, g.Pass(t.Context()))
	require.True(t, g.Alerts.Raised(alert.Enrollment, "new"))
	g.identify(t, "new", "i-new")
	require.NoError(t, g.Pass(t.Context()))
	require.Zero(t, g.entry(t, "new"))
	g.clock = g.clock.Add(time.Millisecond)
	g.confirm(t, "new", "i-new")
	require.NoError(t, g.Pass(t.Context()))
	require.Equal(t, "i-new", g.entry(t, "new").Cloud.InstanceID)
	require.False(t, g.Alerts.Raised(alert.Enrollment, "new"))
}

func TestBoxesThatCannotBeReadKeepNoOtherWaiting(t *testing.T) {
	g := group(t)
	for i := range 64 { // as many as one pass enrolls
		g.confirm(t, fmt.Sprintf("a-%02d", i), fmt.Sprintf("i-a-%02d", i))
	}
	g.identify(t, "z", "i-z")
	g.confirm(t, "z", "i-z")
	g.mem.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpGet && strings.HasPrefix(r.Key, boxid.Key("a-")[:len("control/boxes/a-")]) {
			return memstore.Lose
		}
		return memstore.None
	})
	require.ErrorIs(t, g.Pass(t.Context()), memstore.ErrInjected)
	require.NoError(t, g.Pass(t.Context()))
	require.Equal(t, "i-z", g.entry(t, "z").Cloud.InstanceID)
	require.False(t, g.Alerts.Raised(alert.Enrollment, "a-00"), "nothing is known of them")
}

func TestAStoreThatFailsRefusesNobody(t *testing.T) {
	for _, key := range []string{"control/box-memberships/", boxid.Key("new"), roster.Key} {
		for _, op := range []memstore.Op{memstore.OpList, memstore.OpGet} {
			g := group(t)
			g.identify(t, "new", "i-new")
			g.confirm(t, "new", "i-new")
			fault := memstore.Once(op, key, memstore.Lose)
			fired := false
			g.mem.Inject(func(r memstore.Request) memstore.Fault {
				f := fault(r)
				fired = fired || f != memstore.None
				return f
			})
			err := g.Pass(t.Context())
			if !fired {
				continue
			}
			require.ErrorIs(t, err, memstore.ErrInjected, "%v of %s", op, key)
			require.False(t, g.Alerts.Raised(alert.Enrollment, "new"))
			g.mem.Inject(nil)
			g.clock = g.clock.Add(5 * time.Second)
			require.NoError(t, g.Pass(t.Context()), "and the next pass enrolls it")
			require.Equal(t, "i-new", g.entry(t, "new").Cloud.InstanceID)
		}
	}
}
