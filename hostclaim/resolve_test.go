package hostclaim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/resolution"
	"github.com/carlosframework/regionha/resolution/resolutiontest"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

// decidedAt is when operators decide in these tests.
var decidedAt = epoch.Add(24 * time.Hour)

// decision is an operator's who saw the claim as it is.
func decision(o hostclaim.Observed, m hostclaim.Member) resolution.Record {
	return resolution.Record{Host: testHost, Op: o.Claim.Op.ID, N: len(o.Claim.Op.Journal.Resolutions) + 1, Gen: o.Claim.Gen,
		Box: m.Box, Enrollment: m.Enrollment}
}

func resolve(t *testing.T, o hostclaim.Observed, m hostclaim.Member, proof hostclaim.Proof) hostclaim.Transition {
	t.Helper()
	rec := decision(o, m)
	return hostclaim.Resolve("op-2", resolutiontest.Resolution(t, rec), proof, decidedAt)
}

func TestAResolutionIsOfThisStuckOperation(t *testing.T) {
	o := plant(drainUpTo(t, "installing"), hostclaim.InstallOverdue)
	for name, row := range map[string]struct {
		change func(*resolution.Record)
		err    error
		text   string
	}{
		"another host":             {func(r *resolution.Record) { r.Host, r.Confirmation = "other.example", "" }, hostclaim.ErrWrongState, "other.example"},
		"another operation":        {func(r *resolution.Record) { r.Op = "op-1" }, hostclaim.ErrWrongState, "op-1"},
		"made before it was stuck": {func(r *resolution.Record) { r.Gen-- }, hostclaim.ErrWrongState, "stuck since gen"},
		"made of a later claim":    {func(r *resolution.Record) { r.Gen++ }, hostclaim.ErrWrongState, "made at gen"},
		"the source as another":    {func(r *resolution.Record) { r.Box, r.Enrollment = source.Box, "enr-9" }, hostclaim.ErrWrongState, "box-1 is enrolled as enr-1"},
		"the target as another":    {func(r *resolution.Record) { r.Enrollment = "enr-9" }, hostclaim.ErrWrongState, "box-2 is enrolled as enr-2"},
		"no box of ours":           {func(r *resolution.Record) { r.Box = "Box_1" }, hostclaim.ErrWrongState, "Box_1"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := decision(o, target)
			row.change(&rec)
			refused(t, o, hostclaim.Resolve("op-2", resolutiontest.Resolution(t, rec), hostclaim.Proof{}, decidedAt), row.err, row.text)
		})
	}
	refused(t, o, hostclaim.Resolve("op-2", resolution.Resolution{}, hostclaim.Proof{}, decidedAt), hostclaim.ErrWrongState, "the resolution is of \"\"")
	refused(t, o, hostclaim.Resolve("op-1", resolution.Resolution{}, hostclaim.Proof{}, decidedAt), hostclaim.ErrStaleOp, "")
	running := drainUpTo(t, "installing")
	asked := plant(drainUpTo(t, "releasing"), hostclaim.ReleaseOverdue)
	for _, m := range []hostclaim.Member{source, target} {
		m.Enrollment = "enr-9"
		refused(t, asked, resolve(t, asked, m, hostclaim.Proof{}), hostclaim.ErrWrongState, "not enr-9")
	}
	refused(t, running, resolve(t, running, target, hostclaim.Proof{}), hostclaim.ErrWrongState, "is not stuck")
	lost, owing := plant(running, hostclaim.NoSpare), plant(running, hostclaim.NoSpare)
	lost.Claim.Lost = []string{spare.Box}
	refused(t, lost, resolve(t, lost, spare, hostclaim.Proof{}), hostclaim.ErrWrongState, "box-3 is lost")
	owing.Claim.Obligations = []hostclaim.Obligation{{ID: "a", Kind: hostclaim.ParkLocal, Box: spare.Box, Owner: "box:box-3"}}
	refused(t, owing, resolve(t, owing, spare, hostclaim.Proof{}), hostclaim.ErrPendingChore, "box-3 still owes")
}

func TestAResolutionCountsOnceAndGrantsOneReplacement(t *testing.T) {
	o := plant(exhausted(t, "installing"), hostclaim.ReplacementsUsedUp)
	decided := resolve(t, o, spare, hostclaim.Proof{})
	o = then(t, o, decided)
	require.Equal(t, []string{resolution.Key("op-2", 1)}, o.Claim.Op.Journal.Resolutions)
	require.Equal(t, []int{1, 3}, []int{o.Claim.Op.Journal.Granted, o.Claim.Op.Journal.Replacements})
	require.Nil(t, o.Claim.Op.Journal.Stuck)
	refused(t, o, decided, hostclaim.ErrAlreadyRecorded, "")
	refused(t, plant(o, hostclaim.NoSpare), decided, hostclaim.ErrAlreadyRecorded, "")
	dead := lostAt(t, spare, diedAt)
	refused(t, o, hostclaim.ReplaceTarget("op-2", dead, fourth, "p-8", decidedAt), hostclaim.ErrWrongState, "3 of 3 replacements")
	again := plant(o, hostclaim.ReplacementsUsedUp)
	same := then(t, again, resolve(t, again, spare, hostclaim.Proof{}))
	require.Equal(t, []int{2, 3}, []int{same.Claim.Op.Journal.Granted, same.Claim.Op.Journal.Replacements}, "the same box costs none")
	then(t, same, hostclaim.ReplaceTarget("op-2", dead, fourth, "p-8", decidedAt))
}

func TestASourceThatExecutesAndIsNamedServesOnUnderANewStamp(t *testing.T) {
	for stage, phase := range map[string]hostclaim.StuckReason{"starting": hostclaim.NoSpare, "releasing": hostclaim.ReleaseOverdue, "released": hostclaim.NoSpare} {
		t.Run(stage, func(t *testing.T) {
			o := plant(drainUpTo(t, stage), phase)
			o.Claim.Touched = append(o.Claim.Touched, target.Box)
			before := o.Claim
			o = then(t, o, resolve(t, o, source, hostclaim.Proof{}))
			c := o.Claim
			require.Equal(t, hostclaim.Op{Kind: hostclaim.Serving, ID: "op-2", By: "box-9", StartedAt: relocation.Now,
				Exec: source.Box, ExecEnrollment: source.Enrollment, Outcome: hostclaim.Resolved, Participants: []string{source.Box}}, c.Op)
			require.Equal(t, c.Gen, c.Holder.Stamp)
			require.Equal(t, before.Holder.Session, c.Holder.Session)
			require.Equal(t, before.Holder.Ended, c.Holder.Ended)
			require.True(t, c.Owes(target.Box, hostclaim.ParkLocal))
			require.False(t, c.Owes(source.Box, hostclaim.ParkLocal))
			a := readmission(c, "g-2")
			a.KeepStamp = true
			if stage == "released" {
				a.Coverage = hostclaim.CleanReturn
			}
			o = then(t, o, hostclaim.AdmitWriter(a))
			require.Equal(t, stage == "released", len(o.Claim.PendingLosses()) == 0)
		})
	}
}

func TestASourceThatExecutesIsAskedAgain(t *testing.T) {
	for _, next := range []hostclaim.Member{target, spare} {
		for stage, why := range map[string]hostclaim.StuckReason{"starting": hostclaim.NoSpare, "releasing": hostclaim.ReleaseOverdue, "released": hostclaim.NoSpare} {
			o := plant(drainUpTo(t, stage), why)
			before, c := o.Claim, then(t, o, resolve(t, o, next, hostclaim.Proof{})).Claim
			require.Equal(t, before.Op.Phase, c.Op.Phase)
			require.Equal(t, source.Box, c.Op.Exec)
			require.Equal(t, before.Holder, c.Holder)
			require.Equal(t, before.Op.Journal.Release, c.Op.Journal.Release)
			require.Equal(t, decidedAt, c.Op.Journal.PhaseSince, "its deadline begins anew")
			require.Equal(t, decidedAt, c.Op.Journal.TargetSince)
			require.Equal(t, next, c.Op.Target())
			require.Equal(t, []string{source.Box, next.Box}, c.Op.Participants)
			require.Empty(t, c.Obligations)
			require.Equal(t, next.Box, carriedOn(t, hostclaim.Observed{Host: testHost, Claim: c}).Op.Exec)
		}
	}
	dead := then(t, exhausted(t, "releasing"), hostclaim.FenceExhaustedTarget("op-2", lostAt(t, target, diedAt), diedAt))
	refused(t, dead, resolve(t, dead, target, hostclaim.Proof{}), hostclaim.ErrWrongState, "box-2 is lost")
}

// TestATargetThatNeverOpenedIsLeftWithoutProof for a spare, the source, or
// itself once more. What it was to build from is chosen afresh.
func TestATargetThatNeverOpenedIsLeftWithoutProof(t *testing.T) {
	for _, next := range []hostclaim.Member{target, spare, source} {
		for _, stage := range []string{"installing", "installed", "attempt"} {
			t.Run(stage+" "+next.Box, func(t *testing.T) {
				o := plant(drainUpTo(t, stage), hostclaim.NoSpare)
				before := o.Claim
				o = then(t, o, resolve(t, o, next, hostclaim.Proof{}))
				c, j := o.Claim, o.Claim.Op.Journal
				require.Equal(t, []any{hostclaim.Pinning, hostclaim.None, ""}, []any{c.Op.Phase, c.Op.Exec, c.Op.ExecEnrollment})
				require.Equal(t, next, c.Op.Target())
				require.Equal(t, before.Holder, c.Holder)
				require.Nil(t, j.Pin)
				require.Nil(t, j.PreparedAuthority)
				require.Nil(t, j.LocalInstall)
				require.Equal(t, []any{"", uint64(0), uint64(0), 0}, []any{j.Prepared, j.PreparedStamp, j.InstallStamp, j.ProbeAttempts})
				require.Equal(t, []string{"p-1"}, j.Abandoned)
				require.Equal(t, before.Op.Journal.Release, j.Release)
				require.Equal(t, next != target, c.Owes(target.Box, hostclaim.ParkLocal))
				served := carriedOn(t, o)
				require.Equal(t, next.Box, served.Op.Exec)
				require.Empty(t, served.PendingLosses(), "the source's release vouches")
				require.False(t, served.Owes(next.Box, hostclaim.ParkLocal))
				require.Contains(t, deadGenerations(served), "p-1", "nobody opened it")
			})
		}
	}
}

func TestATargetThatOpenedIsLeftOnlyWithProof(t *testing.T) {
	failed, released := plant(failedProbe(t, "opened"), hostclaim.NoSpare), plant(targetReleased(t), hostclaim.NoSpare)
	foreign := stopRecord(released.Claim)
	foreign.Session--
	for name, row := range map[string]struct {
		o     hostclaim.Observed
		proof hostclaim.Proof
		text  string
	}{
		"none":                        {released, hostclaim.Proof{}, "left only with its receipt or evidence"},
		"a receipt without a release": {failed, hostclaim.Proof{Receipt: stopOf(t, failed.Claim)}, "has not released"},
		"another receipt":             {released, hostclaim.Proof{Receipt: stoptest.Receipt(t, foreign)}, "the release cites"},
		"a retirement":                {released, hostclaim.Proof{Receipt: retirement(t, released.Claim)}, "the release cites"},
		"the source's fence":          {failed, hostclaim.Proof{Gone: lostAt(t, source, diedAt)}, "is about box-1"},
	} {
		for _, next := range []hostclaim.Member{target, spare, source} {
			t.Run(name+" "+next.Box, func(t *testing.T) {
				refused(t, row.o, resolve(t, row.o, next, row.proof), hostclaim.ErrWrongState, row.text)
			})
		}
	}
	dead := hostclaim.Proof{Gone: lostAt(t, target, diedAt)}
	refused(t, failed, resolve(t, failed, target, dead), hostclaim.ErrWrongState, "box-2 is lost")
}

func retirement(t *testing.T, c *hostclaim.Claim) stopevidence.Receipt {
	t.Helper()
	rec := stopRecord(c)
	rec.Obligation = stopevidence.Retirement
	return stoptest.Receipt(t, rec)
}

func TestATargetThatOpenedIsLeftOnItsReceipt(t *testing.T) {
	for _, next := range []hostclaim.Member{target, spare, source} {
		o := plant(targetReleased(t), hostclaim.NoSpare)
		before := o.Claim
		o = then(t, o, resolve(t, o, next, hostclaim.Proof{Receipt: stopOf(t, o.Claim)}))
		c, j := o.Claim, o.Claim.Op.Journal
		require.Equal(t, hostclaim.Pinning, c.Op.Phase)
		require.Equal(t, hostclaim.None, c.Op.Exec)
		require.Equal(t, before.Holder, c.Holder)
		require.Equal(t, before.Op.Journal.Release, j.Release, "from the newest release")
		require.Nil(t, j.Pin)
		require.Empty(t, j.Prepared)
		require.Empty(t, c.Lost)
		require.Equal(t, next != target, c.Owes(target.Box, hostclaim.ParkLocal))
		served := carriedOn(t, o)
		require.Equal(t, next.Box, served.Op.Exec)
		require.Empty(t, served.PendingLosses())
	}
}

func TestATargetThatOpenedIsLeftOnEvidenceThatItIsGone(t *testing.T) {
	for _, proof := range []hostclaim.Proof{{Gone: lostAt(t, target, diedAt)}, {Gone: declared(t, target)}} {
		for _, next := range []hostclaim.Member{spare, source} {
			o := plant(failedProbe(t, "opened"), hostclaim.ReleaseOverdue)
			o = then(t, o, resolve(t, o, next, proof))
			require.Equal(t, hostclaim.Pinning, o.Claim.Op.Phase)
			require.Equal(t, []string{target.Box}, o.Claim.Lost)
			require.Equal(t, "target", o.Claim.EvidenceRefs[0].Role)
			require.Equal(t, diedAt.Add(relocation.PinDelay), o.Claim.Op.PinFrom())
			served := carriedOn(t, o)
			require.Equal(t, next.Box, served.Op.Exec)
			require.Equal(t, target.Box, served.PendingLosses()[0].Box)
			require.True(t, served.Owes(target.Box, hostclaim.ParkLocal))
		}
	}
}

// TestWhatWasKeptOfADeadTargetIsChosenAfresh: fenced into stuck, an operation
// that an operator decides about goes on from the release.
func TestWhatWasKeptOfADeadTargetIsChosenAfresh(t *testing.T) {
	for stage, touched := range map[string]bool{"pinning": false, "pinned": false, "installing": true, "installed": true, "attempt": true, "opened": true} {
		for _, next := range []hostclaim.Member{spare, source} {
			t.Run(stage+" "+next.Box, func(t *testing.T) {
				o := then(t, exhausted(t, stage), hostclaim.FenceExhaustedTarget("op-2", lostAt(t, target, diedAt), diedAt))
				o = then(t, o, resolve(t, o, next, hostclaim.Proof{}))
				require.Equal(t, []any{hostclaim.Pinning, hostclaim.None}, []any{o.Claim.Op.Phase, o.Claim.Op.Exec})
				require.Nil(t, o.Claim.Op.Journal.Pin)
				require.Empty(t, o.Claim.Op.Journal.Prepared)
				require.Equal(t, touched && stage != "opened", slices.Contains(o.Claim.Op.Journal.Abandoned, "p-1"))
				require.Len(t, o.Claim.EvidenceRefs, 1)
				served := carriedOn(t, o)
				require.Equal(t, next.Box, served.Op.Exec)
				require.Equal(t, stage == "opened", len(served.PendingLosses()) == 1)
				require.Equal(t, touched, served.Owes(target.Box, hostclaim.ParkLocal))
			})
		}
	}
}

func TestAFailoverWhoseTargetDiedWithNobodyToFollowIsGoneOnWith(t *testing.T) {
	for _, stage := range []string{"starting", "acknowledged", "pinned", "installed", "opened"} {
		o := then(t, upTo(t, stage), hostclaim.FenceTargetWithoutSpare("op-2", lostAt(t, target, diedAt), diedAt.Add(hostclaim.SpareDeadline)))
		require.Equal(t, hostclaim.Pinning, o.Claim.Op.Phase, stage)
		refused(t, o, resolve(t, o, source, hostclaim.Proof{}), hostclaim.ErrWrongState, "box-1 is lost")
		o = then(t, o, resolve(t, o, spare, hostclaim.Proof{}))
		require.Equal(t, spare.Box, carriedOn(t, o).Op.Exec, stage)
	}
}

// TestAPinThatIsNotCoveredIsGivenUpByAnOperator, who accepts what the store
// holds, or that it holds nothing.
func TestAPinThatIsNotCoveredIsGivenUpByAnOperator(t *testing.T) {
	stuck := then(t, drainUpTo(t, "pinning"), hostclaim.MarkStuck("op-2", hostclaim.PinUncovered, phaseAt))
	short, empty := pinOf(stuck.Claim), pinOf(stuck.Claim)
	short.Position.TXID, empty.Position, empty.FilesSHA256 = 7, hostclaim.Position{}, ""
	for name, row := range map[string]struct {
		accept bool
		pin    hostclaim.Pin
		text   string
	}{
		"what is there":          {false, short, ""},
		"nothing, not accepted":  {false, empty, "an empty baseline needs"},
		"nothing, but accepted":  {true, empty, ""},
		"less, though accepting": {true, short, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rec := decision(stuck, target)
			rec.AcceptEmpty = row.accept
			o := then(t, stuck, hostclaim.Resolve("op-2", resolutiontest.Resolution(t, rec), hostclaim.Proof{}, decidedAt))
			require.Nil(t, o.Claim.Op.Journal.Release, "it does not hold what it says")
			require.Equal(t, hostclaim.Pinning, o.Claim.Op.Phase)
			row.pin.Key = hostclaim.PinKey(testHost, "op-2", o.Claim.Gen)
			if row.text != "" {
				refused(t, o, hostclaim.JournalPin("op-2", row.pin), hostclaim.ErrWrongState, row.text)
				return
			}
			served := carriedOn(t, then(t, o, hostclaim.JournalPin("op-2", row.pin)))
			require.Equal(t, hostclaim.WritesLost{ID: served.PendingLosses()[0].ID, Box: source.Box, Session: 2, Generation: "g-1",
				RemoteMaxTXID: row.pin.Position.TXID}, served.PendingLosses()[0])
		})
	}
}

func TestThatNothingIsLeftIsAcceptedForTheWholeOperation(t *testing.T) {
	o := then(t, drainUpTo(t, "pinning"), hostclaim.MarkStuck("op-2", hostclaim.PinUncovered, phaseAt))
	rec := decision(o, target)
	rec.AcceptEmpty = true
	o = then(t, o, hostclaim.Resolve("op-2", resolutiontest.Resolution(t, rec), hostclaim.Proof{}, decidedAt))
	p := pinOf(o.Claim)
	p.Position, p.FilesSHA256 = hostclaim.Position{}, ""
	o = then(t, o, hostclaim.JournalPin("op-2", p), hostclaim.ToInstalling("op-2", "p-1", decidedAt))
	o = plant(o, hostclaim.InstallOverdue)
	o = then(t, o, resolve(t, o, target, hostclaim.Proof{}))
	require.Equal(t, target.Box, carriedOn(t, o).Op.Exec, "a later decision does not take it back")
}

func TestADeletionIsGoneOnWithByItsExecutorAlone(t *testing.T) {
	o := then(t, beingDeleted(t), hostclaim.MarkStuck("op-2", hostclaim.ReleaseOverdue, phaseAt.Add(hostclaim.ReleaseDeadline)))
	refused(t, o, resolve(t, o, spare, hostclaim.Proof{}), hostclaim.ErrWrongState, "is deleted on box-1")
	refused(t, o, resolve(t, o, hostclaim.Member{Box: source.Box, Enrollment: "enr-9"}, hostclaim.Proof{}), hostclaim.ErrWrongState, "is deleted on box-1")
	before := o.Claim
	o = then(t, o, resolve(t, o, source, hostclaim.Proof{}))
	require.Nil(t, o.Claim.Op.Journal.Stuck)
	require.Equal(t, before.Holder, o.Claim.Holder)
	require.Equal(t, []any{hostclaim.Deleting, source.Box}, []any{o.Claim.Op.Kind, o.Claim.Op.Exec})
	overdue := hostclaim.MarkStuck("op-2", hostclaim.ReleaseOverdue, decidedAt.Add(hostclaim.ReleaseDeadline-time.Second))
	refused(t, o, overdue, hostclaim.ErrWrongState, "applies from")
	o = then(t, o, hostclaim.JournalRelease("op-2", releaseOf(t, o.Claim, pinned)))
	then(t, o, hostclaim.ParkAfterRelease("op-2", stopOf(t, o.Claim)))
}

// TestEveryStuckStateOfATwoBoxRegionHasAWayOut with the two boxes that there
// are: the one that lives, or both.
func TestEveryStuckStateOfATwoBoxRegionHasAWayOut(t *testing.T) {
	dead := hostclaim.Proof{Gone: declared(t, target)}
	for why, rows := range reasons(t) {
		for name, row := range rows {
			if row.o.Claim.Op.Target() != target || row.o.Claim.IsLost(source.Box) {
				continue
			}
			t.Run(string(why)+": "+name, func(t *testing.T) {
				now := row.due
				if now.IsZero() {
					now = phaseAt
				}
				stuck := then(t, row.o, hostclaim.MarkStuck("op-2", why, now))
				for _, next := range []hostclaim.Member{source, target} {
					o, proof := stuck, hostclaim.Proof{}
					if j := o.Claim.Op.Journal; j.Prepared != "" && j.Prepared == j.PreparedOpened {
						if j.Release == nil {
							o = then(t, o, hostclaim.JournalRelease("op-2", releaseOf(t, o.Claim, written)))
						}
						proof.Receipt = stopOf(t, o.Claim)
					}
					if o.Claim.Op.Journal.Stuck != nil {
						require.Equal(t, next.Box, carriedOn(t, then(t, o, resolve(t, o, next, proof))).Op.Exec)
					}
				}
				if j := stuck.Claim.Op.Journal; j.Prepared != "" && j.Prepared == j.PreparedOpened {
					require.Equal(t, source.Box, carriedOn(t, then(t, stuck, resolve(t, stuck, source, dead))).Op.Exec)
				}
			})
		}
	}
}
