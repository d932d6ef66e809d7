package hostclaim_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

func TestACleanReturnReachesTheRecordedEnd(t *testing.T) {
	final := hostclaim.Position{Generation: "g-1", TXID: 9, FilesGeneration: "g-1", FilesSeq: 3}
	o := then(t, upTo(t, "serving"), hostclaim.EndSession(source.Box, 2, final))
	a := hostclaim.Admission{Op: "op-1", Session: 2, Generation: "g-1", Box: source.Box, NewGeneration: "g-2",
		Coverage: hostclaim.CleanReturn, Baseline: final}
	short := a
	short.Baseline.TXID = 8
	refused(t, o, hostclaim.AdmitWriter(short), hostclaim.ErrWrongState, "does not reach")
	short = a
	short.Baseline.FilesSeq = 2
	refused(t, o, hostclaim.AdmitWriter(short), hostclaim.ErrWrongState, "does not reach")
	kept := a
	kept.KeepStamp = true
	refused(t, o, hostclaim.AdmitWriter(kept), hostclaim.ErrWrongState, "needs a new stamp")
	o = then(t, o, hostclaim.AdmitWriter(a))
	require.Nil(t, o.Claim.Holder.Admissions[1].WritesLost)
	require.Nil(t, o.Claim.Holder.Ended)

	// An end of the session before it comes too late to matter.
	refused(t, o, hostclaim.EndSession(source.Box, 2, final), hostclaim.ErrWrongState, "not the current one")
}

// TestAnEmptyGenerationIsCutAtItsBaseline: what a dead writer uploads late to
// the generation before belongs to nobody.
func TestAnEmptyGenerationIsCutAtItsBaseline(t *testing.T) {
	at := hostclaim.Position{Generation: "g-1", TXID: 9, FilesGeneration: "g-1", FilesSeq: 3}
	o := then(t, upTo(t, "serving"), hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Session: 2, Generation: "g-1",
		Box: source.Box, NewGeneration: "g-2", Baseline: at}))
	require.Equal(t, []hostclaim.Link{{Generation: "g-2"}, {Generation: "g-1", StopAt: 9}}, o.Claim.Chain())
	require.Equal(t, []string{"g-2", "g-1"}, o.Claim.FilesChain())
	next := hostclaim.Admission{Op: "op-1", Session: o.Claim.Holder.Session, Generation: "g-2", Box: source.Box, NewGeneration: "g-3", Baseline: at}
	late := next
	late.Baseline.TXID = 10
	refused(t, o, hostclaim.AdmitWriter(late), hostclaim.ErrWrongState, "is read to 9")
	then(t, o, hostclaim.AdmitWriter(next))
}

// TestAdmissionsAreTrimmedOnlyWhenTheirLossWasReported holds the bounded list
// to what may be forgotten.
func TestAdmissionsAreTrimmedOnlyWhenTheirLossWasReported(t *testing.T) {
	readmit := func(o hostclaim.Observed, n int, ended bool) hostclaim.Observed {
		h := o.Claim.Holder
		at := hostclaim.Position{Generation: h.Generation, TXID: 1, FilesGeneration: h.Generation, FilesSeq: 1}
		a := hostclaim.Admission{Op: "op-1", Session: h.Session, Generation: h.Generation, Box: source.Box,
			NewGeneration: fmt.Sprintf("h-%d", n), Baseline: at}
		if ended {
			o = then(t, o, hostclaim.EndSession(source.Box, h.Session, at))
			a.Coverage = hostclaim.CleanReturn
		}
		o = then(t, o, hostclaim.AdmitWriter(a))
		return then(t, o, hostclaim.PublishGeneration(source.Box, o.Claim.Holder.Session))
	}
	clean, lossy := upTo(t, "serving"), upTo(t, "serving")
	for n := range 20 {
		clean, lossy = readmit(clean, n, true), readmit(lossy, n, false)
	}
	require.Len(t, clean.Claim.Holder.Admissions, 8)
	require.Len(t, lossy.Claim.Holder.Admissions, 20, "20 losses that nobody was told of; the first admission lost nothing")
}
