package hostclaim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

// restoredFrom is what the second session of [restored] began with.
var restoredFrom = hostclaim.Position{Generation: "g-1", TXID: 9, FilesGeneration: "g-1", FilesSeq: 3}

// restored is a served host whose second session, g-2, was restored from the
// first and has published nothing.
func restored(tb testing.TB) hostclaim.Observed {
	return then(tb, upTo(tb, "serving"), hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Session: 2, Generation: "g-1",
		Box: source.Box, NewGeneration: "g-2", Baseline: restoredFrom}))
}

// ended is o with its session ended at final.
func ended(tb testing.TB, o hostclaim.Observed, final hostclaim.Position) hostclaim.Observed {
	return then(tb, o, hostclaim.EndSession(source.Box, o.Claim.Holder.Session, final))
}

// next is the next admission of the source.
func next(c *hostclaim.Claim, coverage hostclaim.Coverage, baseline hostclaim.Position) hostclaim.Transition {
	return hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Session: c.Holder.Session, Generation: c.Holder.Generation,
		Box: source.Box, NewGeneration: "next", Coverage: coverage, Baseline: baseline})
}

func point(generation string, txid uint64, files string, seq uint64) hostclaim.Position {
	return hostclaim.Position{Generation: generation, TXID: txid, FilesGeneration: files, FilesSeq: seq}
}

func TestAHostWithoutAWriterHasNoChain(t *testing.T) {
	for _, o := range []hostclaim.Observed{freed(t), upTo(t, "creating"), upTo(t, "created")} {
		require.Nil(t, o.Claim.Chain())
		require.Nil(t, o.Claim.FilesChain())
	}
}

// TestTheFilesOfAnUnpublishedRunGoBackToWhatEachWasRestoredFrom: one that began
// without files ends the chain, and one that was passed over is not in it.
func TestTheFilesOfAnUnpublishedRunGoBackToWhatEachWasRestoredFrom(t *testing.T) {
	require.Equal(t, []string{"g-1"}, upTo(t, "admitted").Claim.FilesChain())
	c := restored(t).Claim
	require.Equal(t, []string{"g-2", "g-1"}, c.FilesChain())
	c.Holder.Admissions[0].Baseline.FilesGeneration = "f-0"
	require.Equal(t, []string{"g-2", "g-1"}, c.FilesChain(), "published: what it was restored from does not count")
	c.Holder.Admissions[0].Published = false
	require.Equal(t, []string{"g-2", "g-1", "f-0"}, c.FilesChain())
	c.Holder.Admissions[1].Baseline.FilesGeneration = "f-1"
	require.Equal(t, []string{"g-2", "f-1"}, c.FilesChain(), "g-1 was passed over")
}

func TestTheChainOfAnUnpublishedRunIsCutWhereEachWasRestoredFrom(t *testing.T) {
	c := restored(t).Claim
	links := []hostclaim.Link{{Generation: "g-2"}, {Generation: "g-1", StopAt: 9}}
	require.Equal(t, links, c.Chain())
	c.Holder.Admissions[0].Baseline = point("d-0", 4, "", 0)
	require.Equal(t, links, c.Chain(), "published: what it was restored from does not count")
	c.Holder.Admissions[0].Published = false
	require.Equal(t, append(links, hostclaim.Link{Generation: "d-0", StopAt: 4}), c.Chain())
}

func TestAPositionNamesBothItsHalves(t *testing.T) {
	require.Equal(t, "nothing", hostclaim.Position{}.String())
	require.Equal(t, "g-1@9 files g-2@3", point("g-1", 9, "g-2", 3).String())
	require.Equal(t, "@0 files g-2@3", point("", 0, "g-2", 3).String())
}

// TestASessionEndsInItsOwnGenerationOrExactlyAtItsBaseline: each half by itself.
func TestASessionEndsInItsOwnGenerationOrExactlyAtItsBaseline(t *testing.T) {
	o := restored(t)
	session := o.Claim.Holder.Session
	for _, final := range []hostclaim.Position{point("g-1", 10, "g-2", 1), point("g-9", 9, "g-2", 1), point("g-9", 10, "g-2", 1), {FilesGeneration: "g-2"},
		point("g-2", 1, "g-1", 4), point("g-2", 1, "g-9", 3), point("g-2", 1, "g-9", 4), {Generation: "g-2"}} {
		refused(t, o, hostclaim.EndSession(source.Box, session, final), hostclaim.ErrWrongState, "neither in \"g-2\" nor its baseline")
	}
	for _, final := range []hostclaim.Position{restoredFrom, point("g-2", 0, "g-2", 0), point("g-2", 7, "g-1", 3), point("g-1", 9, "g-2", 1)} {
		ended(t, o, final)
	}
}

// TestASessionThatWroteIsNotReturnedToItsBaseline: each half by itself.
func TestASessionThatWroteIsNotReturnedToItsBaseline(t *testing.T) {
	o := ended(t, restored(t), point("g-2", 5, "g-2", 2))
	for _, baseline := range []hostclaim.Position{restoredFrom, point("g-1", 9, "g-2", 2), point("g-2", 5, "g-1", 3), point("g-2", 4, "g-2", 2), point("g-2", 5, "g-2", 1)} {
		refused(t, o, next(o.Claim, hostclaim.CleanReturn, baseline), hostclaim.ErrWrongState, "does not reach the final position")
	}
	then(t, o, next(o.Claim, hostclaim.CleanReturn, point("g-2", 5, "g-2", 2)))
}

// TestASessionThatWroteNothingIsReturnedToItsOwnBaselineAlone: not to what an
// earlier one was restored from, though the number be the same.
func TestASessionThatWroteNothingIsReturnedToItsOwnBaselineAlone(t *testing.T) {
	o := restored(t)
	h := o.Claim.Holder
	o = then(t, o, hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Session: h.Session, Generation: "g-2", Box: source.Box,
		NewGeneration: "g-3", Baseline: point("g-2", 9, "g-2", 3)}))
	o = ended(t, o, point("g-3", 0, "g-3", 0))
	for _, baseline := range []hostclaim.Position{point("g-1", 9, "g-2", 3), point("g-2", 9, "g-1", 3), point("g-2", 9, "g-2", 2), restoredFrom} {
		refused(t, o, next(o.Claim, hostclaim.CleanReturn, baseline), hostclaim.ErrWrongState, "does not reach the final position")
	}
	then(t, o, next(o.Claim, hostclaim.CleanReturn, point("g-2", 9, "g-2", 3)))
	then(t, o, next(o.Claim, hostclaim.CleanReturn, point("g-3", 1, "g-3", 0)))
}

// TestASessionThatWasRestoredFromSomethingIsNoEvidenceOfNothing: it wrote
// nothing, and what it began with is there all the same.
func TestASessionThatWasRestoredFromSomethingIsNoEvidenceOfNothing(t *testing.T) {
	o := ended(t, restored(t), point("g-2", 0, "g-2", 0))
	for _, coverage := range []hostclaim.Coverage{hostclaim.Uncovered, hostclaim.CleanReturn} {
		refused(t, o, next(o.Claim, coverage, hostclaim.Position{}), hostclaim.ErrWrongState, "an empty baseline needs")
		refused(t, o, next(o.Claim, coverage, point("", 0, "g-1", 3)), hostclaim.ErrWrongState, "an empty baseline needs")
		refused(t, o, next(o.Claim, coverage, point("g-1", 9, "", 0)), hostclaim.ErrWrongState, "no files manifest needs")
	}
}
