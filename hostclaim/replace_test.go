package hostclaim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

var fourth = hostclaim.Member{Box: "box-4", Enrollment: "enr-4"}

// replaced puts the spare in the place of the target, which died, at a stage of
// a drain.
func replaced(t *testing.T, o hostclaim.Observed) *hostclaim.Claim {
	t.Helper()
	o = then(t, o, hostclaim.ReplaceTarget("op-2", lostAt(t, target, phaseAt), spare, "p-2", phaseAt.Add(time.Minute)))
	j := o.Claim.Op.Journal
	require.Equal(t, spare, o.Claim.Op.Target())
	require.Equal(t, phaseAt.Add(time.Minute), j.TargetSince)
	require.Equal(t, []string{target.Box}, j.Replaced)
	require.Equal(t, 1, j.Replacements)
	require.Equal(t, []string{source.Box, spare.Box}, o.Claim.Op.Participants)
	require.NotContains(t, j.Acks, target.Box)
	require.Equal(t, []string{target.Box}, o.Claim.Lost)
	require.Equal(t, "target", o.Claim.EvidenceRefs[0].Role)
	return o.Claim
}

func TestATargetThatDiesBeforeAHandOverChangesNothingButTheTarget(t *testing.T) {
	for _, stage := range []string{"starting", "acknowledged", "releasing", "released", "pinning", "pinned"} {
		t.Run(stage, func(t *testing.T) {
			o := drainUpTo(t, stage)
			before, c := o.Claim, replaced(t, o)
			require.Equal(t, before.Op.Phase, c.Op.Phase)
			require.Equal(t, before.Op.Exec, c.Op.Exec)
			require.Equal(t, before.Holder, c.Holder)
			require.Equal(t, before.Op.Journal.PhaseSince, c.Op.Journal.PhaseSince, "the source's own deadline runs on")
			require.Equal(t, before.Op.Journal.Release, c.Op.Journal.Release)
			require.Equal(t, before.Op.Journal.Pin, c.Op.Journal.Pin)
			require.Equal(t, before.Op.Journal.Acks[source.Box], c.Op.Journal.Acks[source.Box])
			require.Equal(t, []string{source.Box}, c.Touched)
		})
	}
}

func TestATargetThatDiesWhileItBuildsIsFollowedByAFreshBuildOfTheSamePin(t *testing.T) {
	o := drainUpTo(t, "installing")
	dead := lostAt(t, target, phaseAt)
	for _, used := range []string{"p-1", "g-1", "a/b", ""} {
		refused(t, o, hostclaim.ReplaceTarget("op-2", dead, spare, used, phaseAt), hostclaim.ErrWrongState, "generation")
	}
	before, c := o.Claim, replaced(t, o)
	j := c.Op.Journal
	require.Equal(t, hostclaim.Installing, c.Op.Phase)
	require.Equal(t, spare.Box, c.Op.Exec)
	require.Equal(t, c.Gen, c.Holder.Stamp)
	require.Equal(t, []uint64{c.Gen, c.Gen}, []uint64{j.InstallStamp, j.PreparedStamp})
	require.Equal(t, "p-2", j.Prepared)
	require.Equal(t, []string{"p-1"}, j.Abandoned)
	require.Nil(t, j.PreparedAuthority)
	require.Equal(t, before.Op.Journal.Pin, j.Pin)
	require.Equal(t, []string{source.Box, target.Box, spare.Box}, c.Touched, "on the list before its first effect")
	require.Equal(t, before.Holder.Session, c.Holder.Session)
}

func TestATargetThatDiesBeforeItOpenedLeavesItsBuildToTheNext(t *testing.T) {
	for _, o := range []hostclaim.Observed{drainUpTo(t, "installed"), drainUpTo(t, "received"), drainUpTo(t, "probing"),
		drainUpTo(t, "attempt"), failedProbe(t, "attempt")} {
		t.Run(string(o.Claim.Op.Phase), func(t *testing.T) {
			before, c := o.Claim.Op.Journal, replaced(t, o)
			j := c.Op.Journal
			require.Equal(t, hostclaim.Installed, c.Op.Phase)
			require.Equal(t, spare.Box, c.Op.Exec)
			require.Equal(t, c.Gen, c.Holder.Stamp)
			require.Equal(t, c.Gen, j.InstallStamp)
			require.Equal(t, before.PreparedStamp, j.PreparedStamp, "P stays that of the stamp it was handed out under")
			require.Equal(t, before.PreparedAuthority, j.PreparedAuthority)
			require.Equal(t, before.Release, j.Release)
			require.Equal(t, before.Pin, j.Pin)
			require.Nil(t, j.LocalInstall, "it inherits no receipt")
			require.Zero(t, j.ProbeAttempts, "it inherits no attempt")
			require.Empty(t, j.Abandoned)
			require.Contains(t, c.Touched, spare.Box)
		})
	}
}

func TestTheNextOpensTheBuildThatItInherited(t *testing.T) {
	o := drainUpTo(t, "attempt")
	inherited := installOf(o.Claim)
	o.Claim = replaced(t, o)
	o = then(t, o, ack(spare))
	refused(t, o, hostclaim.RecordLocalInstall("op-2", inherited), hostclaim.ErrWrongState, "the executor is box-3")
	o = then(t, o, hostclaim.RecordLocalInstall("op-2", installOf(o.Claim)), hostclaim.ToProbing("op-2", phaseAt))
	o = then(t, o, hostclaim.BeginProbeAttempt("op-2", 1))
	o = then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Released)))
	require.Equal(t, spare.Box, o.Claim.Holder.WriterBox)
	require.Nil(t, o.Claim.Holder.Admissions[1].WritesLost, "the source's release still vouches")
}

// TestAForeignReceiptInTheJournalAllowsNoProbing, whoever planted it there.
func TestAForeignReceiptInTheJournalAllowsNoProbing(t *testing.T) {
	for text, change := range map[string]func(*hostclaim.LocalInstall){
		"the receipt is of box-3":        func(l *hostclaim.LocalInstall) { l.Box = spare.Box },
		"the receipt is of box-2 as enr": func(l *hostclaim.LocalInstall) { l.Enrollment = "enr-9" },
		"of installation 13, not 12":     func(l *hostclaim.LocalInstall) { l.InstallStamp++ },
		"of files manifest ff66":         func(l *hostclaim.LocalInstall) { l.SHA256 = "ff66" },
	} {
		o := drainUpTo(t, "received")
		change(o.Claim.Op.Journal.LocalInstall)
		refused(t, o, hostclaim.ToProbing("op-2", phaseAt), hostclaim.ErrWrongState, text)
	}
	refused(t, drainUpTo(t, "installed"), hostclaim.ToProbing("op-2", phaseAt), hostclaim.ErrWrongState, "has no receipt of installation")
	refused(t, drainUpTo(t, "probing"), hostclaim.ToProbing("op-2", phaseAt), hostclaim.ErrAlreadyRecorded, "")
}

func TestATargetThatDiesAfterItOpenedIsAFailoverFromWhatItWrote(t *testing.T) {
	probeFailed := failedProbe(t, "opened")
	for name, o := range map[string]hostclaim.Observed{"probing": drainUpTo(t, "opened"), "probe-failed": probeFailed,
		"released": targetReleased(t)} {
		t.Run(name, func(t *testing.T) {
			before, c := o.Claim, replaced(t, o)
			j := c.Op.Journal
			require.Equal(t, hostclaim.Pinning, c.Op.Phase)
			require.Equal(t, hostclaim.None, c.Op.Exec)
			require.Equal(t, before.Holder, c.Holder)
			var kept *hostclaim.Release // what the target released itself
			if name == "released" {
				kept = before.Op.Journal.Release
			}
			require.Equal(t, hostclaim.Journal{PhaseSince: j.TargetSince, TargetSince: j.TargetSince, Target: spare, Replaced: j.Replaced,
				Replacements: 1, Acks: map[string]string{source.Box: source.Enrollment}, Fences: j.Fences, PreparedOpened: "p-1",
				Release: kept}, j, "pin, prepared, authority, install, probe and the source's release are gone")
			require.Equal(t, before.Holder.Session, c.EvidenceRefs[0].Session)
			require.Equal(t, "p-1", c.EvidenceRefs[0].Admission.Generation)
		})
	}
}

func TestADeadTargetsFenceCountsForTheNextPin(t *testing.T) {
	o := drainUpTo(t, "opened")
	o.Claim = replaced(t, o)
	p := pinOf(o.Claim)
	p.Position = written
	p.ListedAt = phaseAt.Add(relocation.PinDelay - time.Second)
	refused(t, o, hostclaim.JournalPin("op-2", p), hostclaim.ErrWrongState, "before")
	p.ListedAt = phaseAt.Add(relocation.PinDelay)
	o = then(t, o, hostclaim.JournalPin("op-2", p), ack(spare), hostclaim.ToInstalling("op-2", "p-2", phaseAt))
	a := built
	a.Generation, a.SnapshotTXID, a.SourceFilesSeq = "p-2", written.TXID, written.FilesSeq
	o = then(t, o, hostclaim.ToInstalled("op-2", a, phaseAt))
	o = then(t, o, hostclaim.RecordLocalInstall("op-2", installOf(o.Claim)), hostclaim.ToProbing("op-2", phaseAt), hostclaim.BeginProbeAttempt("op-2", 1))
	refused(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Released)), hostclaim.ErrWrongState, "no release is journaled")
	o = then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Uncovered)))
	lost := o.Claim.PendingLosses()
	require.Len(t, lost, 1)
	require.Equal(t, []any{target.Box, "p-1", uint64(43)}, []any{lost[0].Box, lost[0].Generation, lost[0].RemoteMaxTXID})
}

func TestNobodyUnfitIsNamed(t *testing.T) {
	dead, late := lostAt(t, target, phaseAt), phaseAt.Add(24*time.Hour)
	fail := targetReleased(t)
	for origin, row := range map[string]struct {
		o    hostclaim.Observed
		name func(hostclaim.Member) hostclaim.Transition
	}{
		"replaced": {drainUpTo(t, "releasing"), func(m hostclaim.Member) hostclaim.Transition {
			return hostclaim.ReplaceTarget("op-2", dead, m, "p-2", phaseAt)
		}},
		"abandoned": {drainUpTo(t, "installing"), func(m hostclaim.Member) hostclaim.Transition {
			return hostclaim.AbandonTarget("op-2", m, "p-2", late)
		}},
		"released": {fail, func(m hostclaim.Member) hostclaim.Transition {
			return hostclaim.PinAfterRelease("op-2", stopOf(t, fail.Claim), m, late)
		}},
	} {
		t.Run(origin, func(t *testing.T) {
			refused(t, row.o, row.name(source), hostclaim.ErrWrongState, "is the source")
			refused(t, row.o, row.name(target), hostclaim.ErrWrongState, "is the target already")
			refused(t, row.o, row.name(hostclaim.Member{Box: spare.Box}), hostclaim.ErrWrongState, "enrollment")
			refused(t, row.o, row.name(hostclaim.Member{}), hostclaim.ErrWrongState, "next")
			with := func(change func(*hostclaim.Claim)) hostclaim.Observed {
				o := row.o
				o.Claim = o.Claim.Clone()
				change(o.Claim)
				return o
			}
			refused(t, with(func(c *hostclaim.Claim) { c.Lost = []string{spare.Box} }), row.name(spare), hostclaim.ErrWrongState, "is lost")
			refused(t, with(func(c *hostclaim.Claim) {
				c.Op.Journal.Replaced, c.Op.Journal.Replacements = []string{spare.Box}, 1
			}), row.name(spare), hostclaim.ErrWrongState, "was replaced")
			refused(t, with(func(c *hostclaim.Claim) {
				c.Obligations = []hostclaim.Obligation{{ID: "a", Kind: hostclaim.ParkLocal, Box: spare.Box, Owner: "box:box-3"}}
			}), row.name(spare), hostclaim.ErrPendingChore, "box-3 still owes")
			refused(t, with(func(c *hostclaim.Claim) { c.Op.Journal.Replacements = 2 }), row.name(spare), hostclaim.ErrWrongState, "2 of 2 replacements are used")
			then(t, row.o, row.name(spare))
		})
	}
}

func TestATargetIsReplacedOnlyOnEvidenceAboutIt(t *testing.T) {
	o := drainUpTo(t, "installing")
	with := func(g hostclaim.Gone) hostclaim.Transition {
		return hostclaim.ReplaceTarget("op-2", g, spare, "p-2", phaseAt)
	}
	refused(t, o, with(hostclaim.Gone{}), hostclaim.ErrWrongState, "no evidence that box-2")
	refused(t, o, with(lostAt(t, source, phaseAt)), hostclaim.ErrWrongState, "is about box-1")
	refused(t, o, with(lostAt(t, hostclaim.Member{Box: target.Box, Enrollment: "enr-9"}, phaseAt)), hostclaim.ErrWrongState, "enr-9")
	refused(t, o, with(gone(fencetest.Evidence(t, target.Box, target.Enrollment, "de", phaseAt))), hostclaim.ErrWrongState, "region \"de\"")
	refused(t, o, hostclaim.ReplaceTarget("op-1", lostAt(t, target, phaseAt), spare, "p-2", phaseAt), hostclaim.ErrStaleOp, "")
	refused(t, upTo(t, "serving"), hostclaim.ReplaceTarget("op-1", lostAt(t, target, phaseAt), spare, "p-2", phaseAt), hostclaim.ErrWrongState, "serving")
	o = then(t, o, with(lostAt(t, target, phaseAt)))
	refused(t, o, with(lostAt(t, target, phaseAt)), hostclaim.ErrAlreadyRecorded, "")
	require.Len(t, o.Claim.EvidenceRefs, 1)
}

func TestOfTwoWorkersThatReplaceTheTargetAtOnceOneWins(t *testing.T) {
	s, seen := stored(t, drainUpTo(t, "installing"))
	dead := lostAt(t, target, phaseAt)
	won, err := hostclaim.Update(ctx, s, seen, hostclaim.ReplaceTarget("op-2", dead, spare, "p-2", phaseAt))
	require.NoError(t, err)
	late := hostclaim.ReplaceTarget("op-2", dead, fourth, "p-3", phaseAt)
	_, err = hostclaim.Update(ctx, s, seen, late)
	require.ErrorIs(t, err, hostclaim.ErrConflict)

	found, err := hostclaim.Read(ctx, s, testHost)
	require.NoError(t, err)
	require.Equal(t, won.Claim, found.Claim)
	_, err = hostclaim.Update(ctx, s, found, late)
	require.ErrorIs(t, err, hostclaim.ErrWrongState, "the winner's target is alive: the evidence is not about it")
	require.ErrorContains(t, err, "not box-3")
}

// TestATargetIsAbandonedOnTheMinute: due is when the target counts as making no
// progress, counted from what the claim records.
func TestATargetIsAbandonedOnTheMinute(t *testing.T) {
	install := phaseAt.Add(hostclaim.InstallDeadline(0))
	unready := then(t, drainUpTo(t, "installing"), hostclaim.AbandonTarget("op-2", spare, "p-2", install))
	for name, row := range map[string]struct {
		o   hostclaim.Observed
		due time.Time
	}{
		"not ready in starting":         {drainUpTo(t, "source ready"), relocation.Now.Add(hostclaim.AckDeadline)},
		"not ready in installing":       {unready, install.Add(hostclaim.AckDeadline)},
		"installing":                    {drainUpTo(t, "installing"), install},
		"installed":                     {drainUpTo(t, "installed"), install},
		"probing without an opening":    {drainUpTo(t, "attempt"), phaseAt.Add(hostclaim.ProbeDeadline)},
		"a probe failed without it too": {failedProbe(t, "attempt"), probeFailedAt},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, row.o, hostclaim.AbandonTarget("op-2", fourth, "p-3", row.due.Add(-time.Second)), hostclaim.ErrWrongState, "may make progress until")
			o := then(t, row.o, hostclaim.AbandonTarget("op-2", fourth, "p-3", row.due))
			refused(t, o, hostclaim.AbandonTarget("op-2", fourth, "p-3", row.due), hostclaim.ErrAlreadyRecorded, "")
		})
	}
	large := drainUpTo(t, "installing")
	large.Claim.Op.Journal.Pin.Size = 3e9
	refused(t, large, hostclaim.AbandonTarget("op-2", spare, "p-2", phaseAt.Add(18*time.Minute-time.Second)), hostclaim.ErrWrongState, "until")
	then(t, large, hostclaim.AbandonTarget("op-2", spare, "p-2", phaseAt.Add(18*time.Minute)))
}

func TestALiveTargetThatDoesWhatItIsAskedIsNotAbandoned(t *testing.T) {
	for stage, text := range map[string]string{
		"acknowledged": "owes no progress in relocating starting", "releasing": "owes no progress", "pinned": "owes no progress",
		"opened": "opened \"p-1\": it is left only by its release", "published": "left only by its release",
	} {
		refused(t, drainUpTo(t, stage), hostclaim.AbandonTarget("op-2", spare, "p-2", phaseAt.Add(24*time.Hour)), hostclaim.ErrWrongState, text)
	}
	late := phaseAt.Add(24 * time.Hour)
	refused(t, targetReleased(t), hostclaim.AbandonTarget("op-2", spare, "p-2", late), hostclaim.ErrWrongState, "left only by its release")
	refused(t, drainUpTo(t, "installing"), hostclaim.AbandonTarget("op-1", spare, "p-2", late), hostclaim.ErrStaleOp, "")
	refused(t, drainUpTo(t, "installing"), hostclaim.AbandonTarget("op-2", spare, "p-1", late), hostclaim.ErrWrongState, "not fresh")
	refused(t, drainUpTo(t, "relocated"), hostclaim.AbandonTarget("op-2", spare, "p-2", late), hostclaim.ErrWrongState, "serving")

	// The claim itself proves that a target never wrote, also where it forgot the opening.
	forgot := drainUpTo(t, "opened")
	forgot.Claim.Op.Journal.Prepared, forgot.Claim.Op.Journal.PreparedOpened = "p-9", ""
	refused(t, forgot, hostclaim.AbandonTarget("op-2", spare, "p-2", late), hostclaim.ErrWrongState, "was admitted as session")
}

func TestAnAbandonedTargetPutsAwayWhatItHoldsAndIsNotNamedAgain(t *testing.T) {
	late := phaseAt.Add(24 * time.Hour)
	o := then(t, drainUpTo(t, "installing"), hostclaim.AbandonTarget("op-2", spare, "p-2", late))
	c := o.Claim
	require.Equal(t, hostclaim.Installing, c.Op.Phase)
	require.Equal(t, []any{spare.Box, c.Gen, "p-2"}, []any{c.Op.Exec, c.Holder.Stamp, c.Op.Journal.Prepared})
	require.Equal(t, []string{"p-1"}, c.Op.Journal.Abandoned)
	require.True(t, c.Owes(target.Box, hostclaim.ParkLocal), "it was handed the host")
	require.Empty(t, c.Lost, "nobody says that it is gone")
	require.Empty(t, c.EvidenceRefs)
	require.Equal(t, []string{source.Box, spare.Box}, c.Op.Participants)
	refused(t, o, hostclaim.AbandonTarget("op-2", target, "p-3", late.Add(time.Hour)), hostclaim.ErrWrongState, "was replaced")

	untouched := then(t, drainUpTo(t, "source ready"), hostclaim.AbandonTarget("op-2", spare, "", late)).Claim
	require.False(t, untouched.Owes(target.Box, hostclaim.ParkLocal), "it was only named")
	require.Equal(t, source.Box, untouched.Op.Exec)
	require.Equal(t, hostclaim.Starting, untouched.Op.Phase)

	inherits := then(t, failedProbe(t, "attempt"), hostclaim.AbandonTarget("op-2", spare, "", late)).Claim
	require.Equal(t, hostclaim.Installed, inherits.Op.Phase)
	require.Equal(t, "p-1", inherits.Op.Journal.Prepared)
	require.Equal(t, drainUpTo(t, "released").Claim.Op.Journal.Release, inherits.Op.Journal.Release)
	require.True(t, inherits.Owes(target.Box, hostclaim.ParkLocal))
}

func TestEveryDroppedBuildIsParkedAtCompletionAndTheOpenedOneNever(t *testing.T) {
	o := then(t, drainUpTo(t, "installing"), hostclaim.AbandonTarget("op-2", spare, "p-2", phaseAt.Add(24*time.Hour)), ack(spare))
	a := built
	a.Generation = "p-2"
	o = then(t, o, hostclaim.ToInstalled("op-2", a, phaseAt))
	o = then(t, o, hostclaim.RecordLocalInstall("op-2", installOf(o.Claim)), hostclaim.ToProbing("op-2", phaseAt), hostclaim.BeginProbeAttempt("op-2", 1))
	o = then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Released)))
	o = then(t, o, hostclaim.RecordProbe("op-2", spare.Box, o.Claim.Holder.Session), hostclaim.CompleteRelocation("op-2"))
	require.Equal(t, []string{"p-1"}, deadGenerations(o.Claim))
	for box, owes := range map[string]bool{source.Box: true, target.Box: true, spare.Box: false} {
		require.Equal(t, owes, o.Claim.Owes(box, hostclaim.ParkLocal), box)
	}
	require.Len(t, o.Claim.Obligations, 3, "the target owes once")
}

func TestAThirdReplacementIsRefused(t *testing.T) {
	o := drainUpTo(t, "releasing")
	names := []hostclaim.Member{target, spare, fourth, {Box: "box-5", Enrollment: "enr-5"}}
	for i := range hostclaim.MaxReplacements {
		o = then(t, o, hostclaim.ReplaceTarget("op-2", lostAt(t, names[i], phaseAt), names[i+1], "", phaseAt))
	}
	require.Equal(t, []string{target.Box, spare.Box}, o.Claim.Op.Journal.Replaced)
	refused(t, o, hostclaim.ReplaceTarget("op-2", lostAt(t, fourth, phaseAt), names[3], "", phaseAt), hostclaim.ErrWrongState, "2 of 2")
	refused(t, o, hostclaim.AbandonTarget("op-2", names[3], "", phaseAt.Add(time.Hour)), hostclaim.ErrWrongState, "2 of 2")
}

// TestATargetIsNamedOnlyWhereThereIsNone: an operation that came from a move
// whose region lost its only box.
func TestATargetIsNamedOnlyWhereThereIsNone(t *testing.T) {
	o := upTo(t, "pinning")
	refused(t, o, hostclaim.NameTarget("op-2", spare, phaseAt), hostclaim.ErrWrongState, "box-2 is the target: replace it")
	refused(t, o, hostclaim.NameTarget("op-2", target, phaseAt), hostclaim.ErrAlreadyRecorded, "")
	o.Claim.Op.Intent.Target, o.Claim.Op.Participants, o.Claim.Op.Journal.Acks = hostclaim.Member{}, nil, nil
	require.NoError(t, o.Claim.Validate())
	refused(t, o, hostclaim.NameTarget("op-2", source, phaseAt), hostclaim.ErrWrongState, "is the source")
	refused(t, o, hostclaim.NameTarget("op-1", spare, phaseAt), hostclaim.ErrStaleOp, "")
	refused(t, o, hostclaim.NameTarget("op-2", hostclaim.Member{Box: spare.Box}, phaseAt), hostclaim.ErrWrongState, "enrollment")
	refused(t, o, hostclaim.NameTarget("op-2", hostclaim.Member{}, phaseAt), hostclaim.ErrWrongState, "next")
	refused(t, upTo(t, "starting"), hostclaim.NameTarget("op-2", spare, phaseAt), hostclaim.ErrWrongState, "phase is \"starting\"")
	pinnedOnly := then(t, o, hostclaim.JournalPin("op-2", pinOf(o.Claim)))
	refused(t, pinnedOnly, hostclaim.ToInstalling("op-2", "p-1", phaseAt), hostclaim.ErrWrongState, "no target is named")
	o = then(t, o, hostclaim.NameTarget("op-2", spare, phaseAt))
	require.Equal(t, spare, o.Claim.Op.Target())
	require.Equal(t, phaseAt, o.Claim.Op.Journal.TargetSince)
	require.Equal(t, []string{spare.Box}, o.Claim.Op.Participants)
	require.Equal(t, hostclaim.None, o.Claim.Op.Exec)
	require.Zero(t, o.Claim.Op.Journal.Replacements, "nobody was replaced")
	refused(t, o, hostclaim.NameTarget("op-2", spare, phaseAt), hostclaim.ErrAlreadyRecorded, "")
	then(t, o, ack(spare))
}

// TestAFailoverSurvivesTheDeathOfItsTargetInEveryPhase: each session that was
// cut off is declared exactly once.
func TestAFailoverSurvivesTheDeathOfItsTargetInEveryPhase(t *testing.T) {
	for _, stage := range []string{"starting", "acknowledged", "pinning", "pinned", "installing", "installed", "attempt", "opened"} {
		t.Run(stage, func(t *testing.T) {
			o := then(t, upTo(t, stage), hostclaim.ReplaceTarget("op-2", lostAt(t, target, diedAt), spare, "p-2", diedAt))
			require.Equal(t, hostclaim.Failover, o.Claim.Op.Reason())
			served := carriedOn(t, o)
			require.Equal(t, spare.Box, served.Op.Exec)
			var lost []string
			for _, w := range served.PendingLosses() {
				lost = append(lost, w.Box)
			}
			want := []string{source.Box}
			if stage == "opened" {
				want = append(want, target.Box)
			}
			require.Equal(t, want, lost)
			require.Equal(t, []string{source.Box, target.Box}, served.Lost)
			require.Len(t, served.EvidenceRefs, 2)
		})
	}
}
