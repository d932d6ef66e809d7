package console_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

func TestAMachineThatWaitsSaysWhatFor(t *testing.T) {
	const byYou = "console box enroll new --region ie --instance-id i-new"
	for name, c := range map[string]struct {
		arrange func(*testing.T, *grouped)
		status  string
		next    string
	}{
		"for an operator": {func(t *testing.T, g *grouped) {
			g.identify(t, "new", "i-new")
			_, err := roster.Update(t.Context(), g.mem, g.Private, g.Roster, func(r *roster.Roster) error {
				ie := r.Regions["ie"]
				ie.GroupName, ie.GroupARN = "", ""
				r.Regions["ie"] = ie
				return nil
			})
			require.NoError(t, err)
		}, "waits to be enrolled by you: the roster names no group for region ie", byYou},
		"for a worker": {func(t *testing.T, g *grouped) { g.identify(t, "new", "i-new") },
			"waits for a worker to confirm that group boxes launched it, or for you", byYou},
		"for a worker in vain": {func(t *testing.T, g *grouped) {
			g.identify(t, "new", "i-new")
			g.clock = g.clock.Add(25 * time.Hour)
		}, "waits for you: no worker confirmed it within 24h", byYou},
		"for a console": {func(t *testing.T, g *grouped) {
			g.identify(t, "new", "i-new")
			g.confirm(t, "new", "i-new")
		}, "waits for console serve: confirmed by box-1 at ", byYou},
		"for another confirmation": {func(t *testing.T, g *grouped) {
			g.identify(t, "new", "i-new")
			g.confirm(t, "new", "i-new")
			g.become(t, "box-1", roster.Quarantined)
		}, `waits for another confirmation by a worker, or for you: membership: confirmation of "new": confirmation not verified: its confirmer "box-1" is quarantined`, byYou},
		"for a store that answers": {func(t *testing.T, g *grouped) {
			g.identify(t, "new", "i-new")
			g.confirm(t, "new", "i-new")
			g.mem.Inject(func(r memstore.Request) memstore.Fault {
				if r.Op == memstore.OpGet && r.Key != boxid.Key("new") && r.Key[:14] == "control/box-me" {
					return memstore.Lose
				}
				return memstore.None
			})
		}, "waits; its confirmation cannot be read", byYou},
		"in vain, of another account": {func(t *testing.T, g *grouped) {
			doc := boxidtest.Document(boxid.Cloud{Account: "999999999999", Region: "eu-west-1", InstanceID: "i-new"})
			body, err := record.Encode(boxid.Record{V: 1, Box: "new", IdentityDocument: doc, IdentitySignature: boxidtest.Sign(doc)})
			require.NoError(t, err)
			_, err = g.mem.Put(t.Context(), boxid.Key("new"), body, objstore.IfAbsent())
			require.NoError(t, err)
		}, "not enrolled: no region of this deployment is eu-west-1 in account 999999999999", ""},
		"in vain, damaged": {func(t *testing.T, g *grouped) {
			_, err := g.mem.Put(t.Context(), boxid.Key("new"), []byte("{}"), objstore.IfAbsent())
			require.NoError(t, err)
		}, "not enrolled: its identity cannot be read", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(t)
			c.arrange(t, g)
			one, err := g.Box(t.Context(), "new")
			require.NoError(t, err)
			require.Equal(t, console.Waiting, one.State)
			require.Contains(t, one.Status, c.status)
			require.Equal(t, c.next, one.Next)
			all, err := g.Boxes(t.Context())
			require.NoError(t, err)
			require.Equal(t, one, all[len(all)-1])
			require.Equal(t, "box-1", all[0].Ref)
		})
	}
}

func TestAnEnrolledBoxWaitsForNothing(t *testing.T) {
	d := deploy(t)
	list, err := d.Boxes(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Empty(t, list[0].Next)
	for _, ref := range []string{"box-9", "No", "../x"} {
		_, err = d.Box(t.Context(), ref)
		require.ErrorIs(t, err, console.ErrNone)
	}
}

func TestOnlyTheMachinesThatPublishedLastAreListed(t *testing.T) {
	d := deploy(t)
	at := time.Now()
	d.mem.Now = func() time.Time { at = at.Add(time.Second); return at }
	for i := range 60 {
		d.identify(t, fmt.Sprintf("new-%02d", 59-i), fmt.Sprintf("i-%02d", i))
	}
	list, err := d.Boxes(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 51)
	require.Equal(t, "new-00", list[1].Ref, "the last one")
	require.Equal(t, "new-49", list[50].Ref)
}

func TestAListingOfMachinesThatFailsIsAnError(t *testing.T) {
	g := group(t)
	g.identify(t, "new", "i-new")
	for _, prefix := range []string{"control/boxes/", "control/box-memberships/"} {
		g.mem.Inject(memstore.Once(memstore.OpList, prefix, memstore.Lose))
		_, err := g.Boxes(t.Context())
		require.ErrorIs(t, err, memstore.ErrInjected)
	}
}
