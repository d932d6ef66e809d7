package hostclaim_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/stopevidence"
)

// TestEachRuleOfAClaimRefusesByItself breaks one rule of a valid claim, and looks
// for the refusal that names it.
func TestEachRuleOfAClaimRefusesByItself(t *testing.T) {
	swept := func(tb testing.TB) hostclaim.Observed {
		return then(tb, upTo(tb, "creating"), hostclaim.CancelCreate("op-1", "late"),
			hostclaim.BeginSweep("op-9", "worker", []hostclaim.Residue{{Incarnation: "inc-1", Region: "ie"}}, epoch))
	}
	at := func(stage string) func(testing.TB) hostclaim.Observed {
		return func(tb testing.TB) hostclaim.Observed { return upTo(tb, stage) }
	}
	draining := func(tb testing.TB) hostclaim.Observed { return drainUpTo(tb, "starting") }
	for name, row := range map[string]struct {
		of      func(testing.TB) hostclaim.Observed
		breakIt func(*hostclaim.Claim)
		want    string
	}{
		"a generation that is no name":     {at("published"), func(c *hostclaim.Claim) { c.Holder.Admissions[0].Generation = "a/b" }, "admission.generation"},
		"a writer that is no box":          {at("published"), func(c *hostclaim.Claim) { c.Holder.Admissions[0].Box = "A B" }, `"A B"`},
		"parking of nothing":               {swept, func(c *hostclaim.Claim) { c.Obligations = nil }, "without a holder or a chore"},
		"an executor without a stamp":      {at("created"), func(c *hostclaim.Claim) { c.Holder.Stamp = 0 }, "without a stamp"},
		"a source without an enrollment":   {at("starting"), func(c *hostclaim.Claim) { c.Op.Intent.Source.Enrollment = "" }, "op.intent.source.enrollment"},
		"a failover that became a drain":   {at("starting"), func(c *hostclaim.Claim) { c.Op.Journal.Reason = hostclaim.Drain }, "op.journal.reason"},
		"an acknowledgement of a stranger": {at("acknowledged"), func(c *hostclaim.Claim) { c.Op.Journal.Acks["box-9"] = "enr-9" }, "takes no part"},
		"a release before it was asked for": {draining, func(c *hostclaim.Claim) {
			c.Op.Journal.Release = &hostclaim.Release{Box: source.Box}
		}, "a release in starting"},
		"a pin before pinning":               {at("starting"), func(c *hostclaim.Claim) { c.Op.Journal.Pin = &hostclaim.Pin{} }, "a pin in starting"},
		"a prepared generation of no stamp":  {at("installing"), func(c *hostclaim.Claim) { c.Op.Journal.PreparedStamp = 0 }, "of stamp 0"},
		"an authority of another generation": {at("installed"), func(c *hostclaim.Claim) { c.Op.Journal.PreparedAuthority.Generation = "p-2" }, "prepared authority is of"},
		"an installation of no stamp":        {at("installing"), func(c *hostclaim.Claim) { c.Op.Journal.InstallStamp = 0 }, "with install stamp 0"},
		"local state of no box": {at("relocated"), func(c *hostclaim.Claim) {
			c.Obligations = append(c.Obligations, hostclaim.Obligation{ID: "x", Kind: hostclaim.ParkLocal, Owner: "box:box-1"})
		}, "is of box"},
	} {
		t.Run(name, func(t *testing.T) {
			o := row.of(t)
			require.NoError(t, o.Claim.Validate())
			row.breakIt(o.Claim)
			err := o.Claim.Validate()
			require.ErrorIs(t, err, hostclaim.ErrMalformed)
			require.ErrorContains(t, err, row.want)
		})
	}
}

func TestAStepIsOfItsOwnOperation(t *testing.T) {
	served := upTo(t, "serving")
	refused(t, served, hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-9", Session: 2, Generation: "g-1", Box: source.Box,
		NewGeneration: "g-2", Baseline: pinned}), hostclaim.ErrStaleOp, "op-9")
	refused(t, served, hostclaim.ParkAfterRelease("op-1", stopevidence.Receipt{}), hostclaim.ErrWrongState, "no such step")
	received := upTo(t, "received")
	refused(t, received, hostclaim.RecordLocalInstall("op-9", *received.Claim.Op.Journal.LocalInstall), hostclaim.ErrStaleOp, "op-9")
}

// TestAGenerationThatWaitsToBeParkedIsNotFresh: its admission is forgotten, its
// objects are still there.
func TestAGenerationThatWaitsToBeParkedIsNotFresh(t *testing.T) {
	o := upTo(t, "serving")
	for n := range 12 {
		o = republish(t, o, fmt.Sprintf("h-%d", n))
	}
	require.Contains(t, deadGenerations(o.Claim), "g-1")
	h := o.Claim.Holder
	refused(t, o, hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Session: h.Session, Generation: h.Generation, Box: source.Box,
		NewGeneration: "g-1", Baseline: hostclaim.Position{Generation: h.Generation, TXID: 1, FilesGeneration: h.Generation, FilesSeq: 1}}),
		hostclaim.ErrWrongState, "waits to be parked")
}
