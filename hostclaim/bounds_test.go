package hostclaim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

// freed is a host whose create was cancelled.
func freed(tb testing.TB) hostclaim.Observed {
	return then(tb, upTo(tb, "creating"), hostclaim.CancelCreate("op-1", "late"))
}

// numbered is a list of n ids.
func numbered(prefix string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("%s-%d", prefix, i))
	}
	return ids
}

func TestANameIs1To128OfTheLettersThatAKeyMayHave(t *testing.T) {
	o := upTo(t, "serving")
	for _, name := range []string{"a", "z", "A", "Z", "0", "9", "-", "_", "...", strings.Repeat("a", 128)} {
		o.Claim.Write = name
		require.NoError(t, o.Claim.Validate(), name)
	}
	for _, name := range []string{"", ".", "..", "`", "{", "@", "[", "/", ":", "é", strings.Repeat("a", 129)} {
		o.Claim.Write = name
		require.ErrorContains(t, o.Claim.Validate(), "write is", name)
	}
}

func TestATextOf256BytesIsTakenAndNoLonger(t *testing.T) {
	fits, over := strings.Repeat("a", 256), strings.Repeat("a", 257)
	creating := upTo(t, "creating")
	o := then(t, creating, hostclaim.CancelCreate("op-1", fits))
	require.Equal(t, fits, o.Claim.CancelledCreates[0].Reason)
	refused(t, creating, hostclaim.CancelCreate("op-1", over), hostclaim.ErrWrongState, "at most 256")

	again := newHost
	again.Incarnation = "inc-2"
	then(t, o, hostclaim.BeginCreate(again, "op-2", fits, epoch, source))
	refused(t, o, hostclaim.BeginCreate(again, "op-2", over, epoch, source), hostclaim.ErrMalformed, "at most 256")
}

func TestASweepIsOf1To32Places(t *testing.T) {
	var residue []hostclaim.Residue
	for _, incarnation := range numbered("inc", 33) {
		residue = append(residue, hostclaim.Residue{Incarnation: incarnation, Region: testRegion})
	}
	o := freed(t)
	refused(t, o, hostclaim.BeginSweep("op-9", "worker", nil, epoch), hostclaim.ErrWrongState, "0 places")
	refused(t, o, hostclaim.BeginSweep("op-9", "worker", residue, epoch), hostclaim.ErrWrongState, "33 places")
	o = then(t, o, hostclaim.BeginSweep("op-9", "worker", residue[:32], epoch))
	require.Len(t, o.Claim.Obligations, 32)
}

func TestProbeAttemptsCountFrom1To3(t *testing.T) {
	o := upTo(t, "probing")
	attempt := func(n int) hostclaim.Transition { return hostclaim.BeginProbeAttempt("op-2", n) }
	refused(t, o, attempt(0), hostclaim.ErrWrongState, "attempt 0 after 0")
	refused(t, o, attempt(2), hostclaim.ErrWrongState, "attempt 2 after 0")
	o = then(t, o, attempt(1), attempt(2), attempt(3))
	refused(t, o, attempt(3), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, attempt(4), hostclaim.ErrWrongState, "at most 3")
}

// TestTheDeadlinesAreWhatOperatorsWereToldOf: a shorter one would turn a slow box
// into a failure.
func TestTheDeadlinesAreWhatOperatorsWereToldOf(t *testing.T) {
	for name, row := range map[string]struct{ got, want time.Duration }{
		"create":                 {hostclaim.CreateDeadline, 10 * time.Minute},
		"acknowledge":            {hostclaim.AckDeadline, 2 * time.Minute},
		"drain":                  {hostclaim.DrainDeadline, 10 * time.Minute},
		"release":                {hostclaim.ReleaseDeadline, 10 * time.Minute},
		"probe":                  {hostclaim.ProbeDeadline, 10 * time.Minute},
		"spare":                  {hostclaim.SpareDeadline, 10 * time.Minute},
		"install nothing":        {hostclaim.InstallDeadline(0), 15 * time.Minute},
		"install just below 1GB": {hostclaim.InstallDeadline(1e9 - 1), 15 * time.Minute},
		"install 1GB":            {hostclaim.InstallDeadline(1e9), 16 * time.Minute},
		"install 10 TB":          {hostclaim.InstallDeadline(10_000e9), 10_015 * time.Minute},
		"install more":           {hostclaim.InstallDeadline(10_001e9), 10_015 * time.Minute},
	} {
		require.Equal(t, row.want, row.got, name)
	}
}

func TestTheNewest32IdsOfLossesAreKept(t *testing.T) {
	again := newHost
	again.Incarnation = "inc-2"
	for name, row := range map[string]struct {
		o    hostclaim.Observed
		step hostclaim.Transition
	}{
		"a host that is held": {upTo(t, "serving"), hostclaim.EndSession(source.Box, 2, pinned)},
		"a host that is free": {freed(t), hostclaim.BeginCreate(again, "op-2", "console", epoch, source)},
	} {
		for _, n := range []int{31, 32, 33, 40} {
			ids := numbered("loss", n)
			row.o.Claim.LossRefs = slices.Clone(ids)
			require.Equal(t, ids[max(0, n-32):], then(t, row.o, row.step).Claim.LossRefs, "%s, %d ids", name, n)
		}
	}
}

// TestTheIdOfALossIsKeptAsLongAsTheClaimNamesIt: without it the loss would be
// reported again.
func TestTheIdOfALossIsKeptAsLongAsTheClaimNamesIt(t *testing.T) {
	o := upTo(t, "relocated")
	o = then(t, o, hostclaim.ReportLoss(o.Claim.PendingLosses()[0].ID))
	named := slices.Clone(o.Claim.LossRefs)
	require.Len(t, named, 2, "of the evidence, and of the writer that it stopped")
	others := numbered("loss", 32)
	end := hostclaim.EndSession(target.Box, o.Claim.Holder.Session, written)

	o.Claim.LossRefs = slices.Concat(named, others)
	require.Equal(t, slices.Concat(named, others[2:]), then(t, o, end).Claim.LossRefs)
	o.Claim.LossRefs = slices.Concat(others[:1], named, others[1:])
	require.Equal(t, slices.Concat(named, others[2:]), then(t, o, end).Claim.LossRefs)
}

func TestNoBoundForgetsALossThatNobodyWasToldOf(t *testing.T) {
	o := upTo(t, "serving")
	key := upTo(t, "starting").Claim.EvidenceRefs[0].Fence.Key
	for _, id := range numbered("loss", 40) {
		o.Claim.LossRefs = append(o.Claim.LossRefs, id)
		o.Claim.EvidenceRefs = append(o.Claim.EvidenceRefs, hostclaim.AutomaticLoss{ID: id, Fence: hostclaim.Fence{Key: key}})
	}
	require.Equal(t, numbered("loss", 40), then(t, o, hostclaim.EndSession(source.Box, 2, pinned)).Claim.LossRefs)
}

// TestTheNewestAdmissionIsNeverTrimmed: it is the writer, also where all older
// ones wait for a report and it is the only one that does not.
func TestTheNewestAdmissionIsNeverTrimmed(t *testing.T) {
	o := upTo(t, "serving")
	base := hostclaim.Position{Generation: "g-1", TXID: 9, FilesGeneration: "g-1", FilesSeq: 1}
	admit := func(generation string, coverage hostclaim.Coverage, from hostclaim.Position) {
		h := o.Claim.Holder
		o = then(t, o, hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Session: h.Session, Generation: h.Generation,
			Box: source.Box, NewGeneration: generation, Coverage: coverage, Baseline: from}))
	}
	o.Claim.Holder.Admissions[0].WritesLost = &hostclaim.WritesLost{ID: "before"}
	for _, generation := range numbered("c", 35) {
		admit(generation, hostclaim.Uncovered, base)
	}
	final := hostclaim.Position{Generation: "c-34", TXID: 3, FilesGeneration: "c-34", FilesSeq: 1}
	o = then(t, o, hostclaim.EndSession(source.Box, o.Claim.Holder.Session, final))
	admit("clean", hostclaim.CleanReturn, final)
	require.Len(t, o.Claim.Holder.Admissions, 37)
	require.Equal(t, "clean", o.Claim.Holder.Admissions[36].Generation)
}
