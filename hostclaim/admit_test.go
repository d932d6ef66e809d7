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

// TestAnAdmissionIsRecordedOnlyWhileItStands: whoever looks again after a lost
// answer starts a writer on ErrAlreadyRecorded.
func TestAnAdmissionIsRecordedOnlyWhileItStands(t *testing.T) {
	before := drainUpTo(t, "starting")
	a := readmission(before.Claim, "g-2")
	o := then(t, before, hostclaim.AdmitWriter(a))
	refused(t, o, hostclaim.AdmitWriter(a), hostclaim.ErrAlreadyRecorded, "")
	for name, change := range map[string]func(*hostclaim.Admission){
		"another baseline":   func(a *hostclaim.Admission) { a.Baseline.TXID-- },
		"another coverage":   func(a *hostclaim.Admission) { a.Coverage = hostclaim.CleanReturn },
		"another box":        func(a *hostclaim.Admission) { a.Box = target.Box },
		"another generation": func(a *hostclaim.Admission) { a.NewGeneration = "g-3" },
	} {
		t.Run(name, func(t *testing.T) {
			other := a
			change(&other)
			_, err := o.Next("nonce", hostclaim.AdmitWriter(other))
			require.ErrorIs(t, err, hostclaim.ErrWrongState)
		})
	}
	final := hostclaim.Position{Generation: "g-2", TXID: 3, FilesGeneration: "g-2", FilesSeq: 1}
	ended := then(t, o, hostclaim.EndSession(source.Box, o.Claim.Holder.Session, final))
	refused(t, ended, hostclaim.AdmitWriter(a), hostclaim.ErrWrongState, "observed 2 of")
	later := then(t, o, hostclaim.AdmitWriter(readmission(o.Claim, "g-3")))
	refused(t, later, hostclaim.AdmitWriter(a), hostclaim.ErrWrongState, "observed 2 of")

	released := then(t, o, ack(source), ack(target), hostclaim.ToReleasing("op-2", phaseAt))
	released = then(t, released, hostclaim.JournalRelease("op-2", releaseOf(t, released.Claim, final)))
	refused(t, released, hostclaim.AdmitWriter(a), hostclaim.ErrWrongState, "nobody is admitted in relocating releasing")
	unended := released
	unended.Claim = released.Claim.Clone()
	unended.Claim.Holder.Ended = nil
	refused(t, unended, hostclaim.AdmitWriter(a), hostclaim.ErrWrongState, "nobody is admitted in relocating releasing")

	// A target that is to open P has admitted nothing of its source's.
	attempt := drainUpTo(t, "attempt")
	foreign := hostclaim.Admission{Op: "op-2", Box: target.Box, NewGeneration: "g-1"}
	attempt.Claim.Holder.Ended = nil
	refused(t, attempt, hostclaim.AdmitWriter(foreign), hostclaim.ErrWrongState, "phase is \"probing\"")

	dead := then(t, o, fenceSource(t), ack(target), hostclaim.PinFailover("op-2", diedAt))
	refused(t, dead, hostclaim.AdmitWriter(a), hostclaim.ErrWrongState, "nobody is admitted")
	p := pinOf(dead.Claim)
	p.ListedAt = decidedAt
	dead = then(t, dead, hostclaim.JournalPin("op-2", p), hostclaim.ToInstalling("op-2", "p-1", diedAt), hostclaim.ToInstalled("op-2", built, diedAt))
	dead = then(t, dead, hostclaim.RecordLocalInstall("op-2", installOf(dead.Claim)), hostclaim.ToProbing("op-2", diedAt))
	refused(t, dead, hostclaim.AdmitWriter(a), hostclaim.ErrWrongState, "phase is \"probing\"")
}

// TestNothingIsDeclaredLostThatIsVouchedFor: an uncovered admission would tell
// a person of a loss that there is not.
func TestNothingIsDeclaredLostThatIsVouchedFor(t *testing.T) {
	o := then(t, upTo(t, "serving"), hostclaim.EndSession(source.Box, 2, pinned))
	a := readmission(o.Claim, "g-2")
	refused(t, o, hostclaim.AdmitWriter(a), hostclaim.ErrWrongState, "ask for \"clean-return\"")
	short := a
	short.Baseline.TXID--
	require.Len(t, then(t, o, hostclaim.AdmitWriter(short)).Claim.PendingLosses(), 1, "the store does not hold what the session ended at")

	opening := drainUpTo(t, "attempt")
	uncovered := hostclaim.AdmitWriter(openingOf(opening.Claim, hostclaim.Uncovered))
	refused(t, opening, uncovered, hostclaim.ErrWrongState, "nothing is lost")
	opening.Claim.Holder.Ended = nil
	refused(t, opening, uncovered, hostclaim.ErrWrongState, "ask for \"released\"")
	opening.Claim.Op.Journal.Release = nil
	require.Len(t, then(t, opening, uncovered).Claim.PendingLosses(), 1)
}
