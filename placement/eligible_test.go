package placement_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// eligible is a placement and a box that may be given it.
func eligible() (placement.Want, placement.Candidate) {
	want := placement.Want{
		Region: "ie", RosterRegion: roster.Region{Account: "123456789012", AWSRegion: "eu-west-1"},
		Pool: "default", SecretsKeyFP: full.SecretsKeyFP, Now: now,
	}
	file := placement.Published{Edges: full, ETag: `"e"`, ModTime: now}
	file.Edges.Draining = false
	return want, placement.Candidate{
		Ref: "box-1",
		Box: roster.Box{
			Ref: "box-1", Enrollment: "e-1", Region: "ie", Pool: "default", State: roster.Active,
			Cloud: boxid.Cloud{Provider: "aws", Account: "123456789012", Region: "eu-west-1", InstanceID: "i-1"},
		},
		File: file,
	}
}

func TestABoxIsEligibleOnlyIfNothingSpeaksAgainstIt(t *testing.T) {
	want, c := eligible()
	require.NoError(t, placement.Eligible(want, c))
	for reason, spoil := range map[string]func(w *placement.Want, c *placement.Candidate){
		"no roster entry":             func(w *placement.Want, c *placement.Candidate) { c.Box = roster.Box{} },
		"roster entry of its own":     func(w *placement.Want, c *placement.Candidate) { c.Box.Ref = "box-2" },
		"state quarantined":           func(w *placement.Want, c *placement.Candidate) { c.Box.State = roster.Quarantined },
		"state retired":               func(w *placement.Want, c *placement.Candidate) { c.Box.State = roster.Retired },
		"no proven cloud":             func(w *placement.Want, c *placement.Candidate) { c.Box.Cloud.InstanceID = "" },
		`in region "fr"`:              func(w *placement.Want, c *placement.Candidate) { c.Box.Region = "fr" },
		`cloud account "9"`:           func(w *placement.Want, c *placement.Candidate) { c.Box.Cloud.Account = "9" },
		`cloud region "eu-central-1"`: func(w *placement.Want, c *placement.Candidate) { c.Box.Cloud.Region = "eu-central-1" },
		`pool "big"`:                  func(w *placement.Want, c *placement.Candidate) { c.Box.Pool = "big" },
		"by the roster":               func(w *placement.Want, c *placement.Candidate) { c.Box.Draining = true },
		"terminated":                  func(w *placement.Want, c *placement.Candidate) { c.Fenced = true },
		"no edges file":               func(w *placement.Want, c *placement.Candidate) { c.File = placement.Published{} },
		`is of box "box-2"`:           func(w *placement.Want, c *placement.Candidate) { c.File.Edges.Box = "box-2" },
		`edges file says region "fr"`: func(w *placement.Want, c *placement.Candidate) { c.File.Edges.Region = "fr" },
		"old":                         func(w *placement.Want, c *placement.Candidate) { w.Now = now.Add(15*time.Minute + 1) },
		"in the future":               func(w *placement.Want, c *placement.Candidate) { w.Now = now.Add(-3 * time.Minute) },
		"want region-ha-1": func(w *placement.Want, c *placement.Candidate) {
			c.File.Edges.Capabilities = []string{placement.CapabilityWorker}
		},
		"not eligible: draining":  func(w *placement.Want, c *placement.Candidate) { c.File.Edges.Draining = true },
		"not accepting":           func(w *placement.Want, c *placement.Candidate) { c.File.Edges.Accepting = false },
		"secrets key":             func(w *placement.Want, c *placement.Candidate) { c.File.Edges.SecretsKeyFP = "0" },
		"ingress: address":        func(w *placement.Want, c *placement.Candidate) { c.File.Edges.Address = "" },
		"internal: address":       func(w *placement.Want, c *placement.Candidate) { c.File.Edges.Internal = "0.0.0.0:1" },
		"lost for this host":      func(w *placement.Want, c *placement.Candidate) { w.Lost = []string{"box-2", "box-1"} },
		"retire its old copy":     func(w *placement.Want, c *placement.Candidate) { w.Owing = []string{"box-1"} },
		"excluded":                func(w *placement.Want, c *placement.Candidate) { w.Excluded = []string{"box-1"} },
		`want ""`:                 func(w *placement.Want, c *placement.Candidate) { w.Pool, c.Box.Pool = "", "" },
		`secrets key "", want ""`: func(w *placement.Want, c *placement.Candidate) { w.SecretsKeyFP, c.File.Edges.SecretsKeyFP = "", "" },
		`enrolled in region "", want`: func(w *placement.Want, c *placement.Candidate) {
			w.Region, c.Box.Region, c.File.Edges.Region = "", "", ""
		},
		`123456789012", want ""`:       func(w *placement.Want, c *placement.Candidate) { w.RosterRegion.Account = "" },
		`cloud region "eu-west-1", wa`: func(w *placement.Want, c *placement.Candidate) { w.RosterRegion.AWSRegion = "" },
		"box : ":                       func(w *placement.Want, c *placement.Candidate) { c.Ref, c.Box.Ref, c.File.Edges.Box = "", "", "" },
	} {
		t.Run(reason, func(t *testing.T) {
			want, c := eligible()
			spoil(&want, &c)
			err := placement.Eligible(want, c)
			require.ErrorIs(t, err, placement.ErrIneligible)
			require.ErrorContains(t, err, reason)
		})
	}
}

func TestTwoHalvesNeverMakeOneEligibleBox(t *testing.T) {
	want, keyed := eligible()
	keyed.File.Edges.Accepting = false // box-1 has the key
	_, open := eligible()
	open.Ref, open.Box.Ref, open.File.Edges.Box = "box-2", "box-2", "box-2"
	open.File.Edges.SecretsKeyFP = "other" // box-2 accepts
	for _, c := range []placement.Candidate{
		keyed, open,
		{Ref: "box-1", Box: keyed.Box, File: open.File},
		{Ref: "box-2", Box: keyed.Box, File: open.File},
		{Ref: "box-1", Box: open.Box, File: keyed.File},
	} {
		require.ErrorIs(t, placement.Eligible(want, c), placement.ErrIneligible)
	}
}

func TestAnUnreadableFenceIsAnErrorAndNeverNotFenced(t *testing.T) {
	want, c := eligible()
	c.FenceErr = errors.New("store unreachable")
	err := placement.Eligible(want, c)
	require.ErrorIs(t, err, c.FenceErr)
	require.NotErrorIs(t, err, placement.ErrIneligible)
}
