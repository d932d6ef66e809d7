package hostclaim_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

func TestALossIsReportedOnceAndItsIdStays(t *testing.T) {
	o := upTo(t, "relocated")
	evidence, declared := o.Claim.EvidenceRefs[0].ID, o.Claim.PendingLosses()[0].ID
	refused(t, o, hostclaim.ReportLoss("x"), hostclaim.ErrWrongState, "no loss \"x\"")
	o = then(t, o, hostclaim.ReportLoss(evidence))
	require.Empty(t, o.Claim.EvidenceRefs)
	require.Contains(t, o.Claim.LossRefs, evidence, "a replay of the evidence adds nothing")
	refused(t, o, hostclaim.ReportLoss(evidence), hostclaim.ErrAlreadyRecorded, "")

	o = then(t, o, hostclaim.ReportLoss(declared))
	require.Empty(t, o.Claim.PendingLosses())
	require.Contains(t, o.Claim.LossRefs, declared)
	refused(t, o, hostclaim.ReportLoss(declared), hostclaim.ErrAlreadyRecorded, "")
}

// crash admits a session that publishes nothing, restored from what the one
// before it held, and reports what it declares.
func crash(tb testing.TB, o hostclaim.Observed, generation string, base hostclaim.Position) hostclaim.Observed {
	h := o.Claim.Holder
	o = then(tb, o, hostclaim.AdmitWriter(hostclaim.Admission{Op: o.Claim.Op.ID, Session: h.Session, Generation: h.Generation,
		Box: o.Claim.Op.Exec, NewGeneration: generation, Baseline: base}))
	for _, w := range o.Claim.PendingLosses() {
		o = then(tb, o, hostclaim.ReportLoss(w.ID))
	}
	return o
}

// TestARunThatNeverPublishesStaysBoundedAndKeepsItsBaseline: the admission list
// is at its bound and nothing was published since. What the newest session was
// restored from stays; what no baseline falls back to is put away.
func TestARunThatNeverPublishesStaysBoundedAndKeepsItsBaseline(t *testing.T) {
	o := upTo(t, "serving")
	base := hostclaim.Position{Generation: "g-1", TXID: 9, FilesGeneration: "g-1", FilesSeq: 1}
	for n := range 30 {
		o = crash(t, o, fmt.Sprintf("c-%d", n), base)
	}
	require.Len(t, o.Claim.Holder.Admissions, 31, "an unfinished run is protected")
	require.Empty(t, deadGenerations(o.Claim))
	for n := 30; n < 100; n++ {
		o = crash(t, o, fmt.Sprintf("c-%d", n), base)
	}
	require.Len(t, o.Claim.Holder.Admissions, 32)
	require.Equal(t, "g-1", o.Claim.Holder.Admissions[0].Generation)
	require.Contains(t, o.Claim.Chain(), hostclaim.Link{Generation: "g-1", StopAt: 9})
	require.Contains(t, o.Claim.FilesChain(), "g-1")
	require.NotEmpty(t, deadGenerations(o.Claim))
	require.NotContains(t, deadGenerations(o.Claim), "g-1")

	// The next box restores the same baseline.
	crash(t, o, "c-100", base)
}

// TestAnUnreportedRunIsNeverDropped: a loss that nobody was told of stays.
func TestAnUnreportedRunIsNeverDropped(t *testing.T) {
	o := upTo(t, "serving")
	base := hostclaim.Position{Generation: "g-1", TXID: 9, FilesGeneration: "g-1", FilesSeq: 1}
	for n := range 40 {
		h := o.Claim.Holder
		o = then(t, o, hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Session: h.Session, Generation: h.Generation,
			Box: source.Box, NewGeneration: fmt.Sprintf("c-%d", n), Baseline: base}))
	}
	require.Len(t, o.Claim.Holder.Admissions, 41)
	require.Len(t, o.Claim.PendingLosses(), 40)
}
