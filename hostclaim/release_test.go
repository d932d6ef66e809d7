package hostclaim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

func TestAReleaseIsOfTheExecutorsOwnCurrentSession(t *testing.T) {
	short := hostclaim.Position{Generation: "g-9", TXID: 1, FilesGeneration: "g-1", FilesSeq: 6}
	for name, row := range map[string]struct {
		change func(*hostclaim.Release)
		text   string
	}{
		"another box":        {func(r *hostclaim.Release) { r.Box = target.Box }, "the executor is box-1 as enr-1"},
		"another enrollment": {func(r *hostclaim.Release) { r.Enrollment = target.Enrollment }, "the executor is box-1 as enr-1"},
		"an older session":   {func(r *hostclaim.Release) { r.Session-- }, "the current one is 2"},
		"no session":         {func(r *hostclaim.Release) { r.Session = 0 }, "the current one is 2"},
		"no receipt":         {func(r *hostclaim.Release) { r.Receipt = "" }, "no stop receipt"},
		"no receipt digest":  {func(r *hostclaim.Release) { r.ReceiptSHA256 = "" }, "no stop receipt"},
		"a foreign position": {func(r *hostclaim.Release) { r.Final = short }, "neither in"},
	} {
		t.Run(name, func(t *testing.T) {
			o := drainUpTo(t, "releasing")
			r := releaseOf(t, o.Claim, pinned)
			row.change(&r)
			refused(t, o, hostclaim.JournalRelease("op-2", r), hostclaim.ErrWrongState, row.text)
		})
	}
	c := drainUpTo(t, "released").Claim
	r := releaseOf(t, c, pinned)
	require.Equal(t, &r, c.Op.Journal.Release)
	require.Equal(t, &hostclaim.SessionEnd{Box: source.Box, Session: 2, Final: pinned}, c.Holder.Ended, "whoever admits next may rely on it")
	require.Equal(t, source.Box, c.Op.Exec)
	require.Equal(t, hostclaim.Releasing, c.Op.Phase)
}

func TestAReleaseBelongsToItsPhase(t *testing.T) {
	for stage, text := range map[string]string{
		"starting": "starting", "pinning": "pinning", "installing": "installing", "received": "installed", "opened": "probing",
	} {
		o := drainUpTo(t, stage)
		refused(t, o, hostclaim.JournalRelease("op-2", hostclaim.Release{Box: "box-9"}), hostclaim.ErrWrongState, "nothing is released in relocating "+text)
	}
	o := drainUpTo(t, "released")
	same := releaseOf(t, o.Claim, pinned)
	refused(t, o, hostclaim.JournalRelease("op-2", same), hostclaim.ErrAlreadyRecorded, "")
	other := same
	other.Final.TXID++
	refused(t, o, hostclaim.JournalRelease("op-2", other), hostclaim.ErrWrongState, "another release is journaled")
	refused(t, o, hostclaim.JournalRelease("op-1", same), hostclaim.ErrStaleOp, "")
	refused(t, drainUpTo(t, "relocated"), hostclaim.JournalRelease("op-2", same), hostclaim.ErrWrongState, "serving")
}

func TestAReleaseAgreesWithTheEndThatTheSessionRecorded(t *testing.T) {
	o := drainUpTo(t, "releasing")
	o = then(t, o, hostclaim.EndSession(source.Box, 2, pinned))
	other := pinned
	other.TXID--
	refused(t, o, hostclaim.JournalRelease("op-2", releaseOf(t, o.Claim, other)), hostclaim.ErrWrongState, "ended at")
	then(t, o, hostclaim.JournalRelease("op-2", releaseOf(t, o.Claim, pinned)))
}

// TestAHostWithoutAWriterIsReleasedAtNothing drains a host before anybody was
// ever admitted to it.
func TestAHostWithoutAWriterIsReleasedAtNothing(t *testing.T) {
	o := then(t, upTo(t, "created"), hostclaim.StartRelocation(relocation, hostclaim.Drain), ack(source), ack(target),
		hostclaim.ToReleasing("op-2", phaseAt))
	refused(t, o, hostclaim.JournalRelease("op-2", releaseOf(t, o.Claim, pinned)), hostclaim.ErrWrongState, "no writer was ever admitted")
	o = then(t, o, hostclaim.JournalRelease("op-2", releaseOf(t, o.Claim, hostclaim.Position{})))
	require.Nil(t, o.Claim.Holder.Ended)
	o = then(t, o, hostclaim.PinAfterRelease("op-2", stopOf(t, o.Claim), hostclaim.Member{}, phaseAt))
	p := pinOf(o.Claim)
	p.Position, p.FilesSHA256 = hostclaim.Position{}, ""
	o = then(t, o, hostclaim.JournalPin("op-2", p), hostclaim.ToInstalling("op-2", "p-1", phaseAt))
	empty := built
	empty.SnapshotTXID, empty.SourceFilesSeq = 0, 0
	o = then(t, o, hostclaim.ToInstalled("op-2", empty, phaseAt))
	o = then(t, o, hostclaim.RecordLocalInstall("op-2", installOf(o.Claim)), hostclaim.ToProbing("op-2", phaseAt), hostclaim.BeginProbeAttempt("op-2", 1))
	o = then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Released)))
	require.Nil(t, o.Claim.Holder.Admissions[0].WritesLost)
}

func TestTheSourceIsLeftOnlyOnTheReceiptBehindItsRelease(t *testing.T) {
	refused(t, drainUpTo(t, "releasing"), hostclaim.PinAfterRelease("op-2", stopOf(t, drainUpTo(t, "releasing").Claim), hostclaim.Member{}, phaseAt),
		hostclaim.ErrWrongState, "box-1 has not released session 2")
	for name, row := range map[string]struct {
		change func(*stopevidence.Record)
		text   string
	}{
		"another host":        {func(r *stopevidence.Record) { r.Host = "other.example" }, "the receipt is of other.example"},
		"another operation":   {func(r *stopevidence.Record) { r.Op = "op-1" }, "op-1"},
		"a retirement":        {func(r *stopevidence.Record) { r.Obligation = stopevidence.Retirement }, "retirement"},
		"another box":         {func(r *stopevidence.Record) { r.Box = target.Box }, "not box-1"},
		"another enrollment":  {func(r *stopevidence.Record) { r.Enrollment = "enr-9" }, "as enr-9"},
		"another incarnation": {func(r *stopevidence.Record) { r.Incarnation = "inc-9" }, "inc-9"},
		"another stamp":       {func(r *stopevidence.Record) { r.Stamp++ }, "stamp 3"},
		"another session":     {func(r *stopevidence.Record) { r.Session-- }, "session 1"},
	} {
		t.Run(name, func(t *testing.T) {
			o := drainUpTo(t, "releasing")
			rec := stopRecord(o.Claim)
			row.change(&rec)
			receipt, release := stoptest.Receipt(t, rec), releaseOf(t, o.Claim, pinned)
			released := then(t, o, hostclaim.JournalRelease("op-2", release))
			pin := hostclaim.PinAfterRelease("op-2", receipt, hostclaim.Member{}, phaseAt)
			refused(t, released, pin, hostclaim.ErrWrongState, "the release cites "+release.Receipt)
			release.Receipt, release.ReceiptSHA256 = receipt.Ref().Key, receipt.Ref().SHA256
			refused(t, then(t, o, hostclaim.JournalRelease("op-2", release)), pin, hostclaim.ErrWrongState, row.text)
		})
	}
	o := drainUpTo(t, "released")
	refused(t, o, hostclaim.PinAfterRelease("op-2", stopevidence.Receipt{}, hostclaim.Member{}, phaseAt), hostclaim.ErrWrongState, "the release cites")
	refused(t, o, hostclaim.PinAfterRelease("op-2", stopOf(t, o.Claim), spare, phaseAt), hostclaim.ErrWrongState, "the target stays")
	refused(t, o, hostclaim.PinAfterRelease("op-1", stopOf(t, o.Claim), hostclaim.Member{}, phaseAt), hostclaim.ErrStaleOp, "")
}

func TestAReleasedSourceExecutesNoMore(t *testing.T) {
	before, c := drainUpTo(t, "released").Claim, drainUpTo(t, "pinning").Claim
	require.Equal(t, hostclaim.None, c.Op.Exec)
	require.Equal(t, hostclaim.Pinning, c.Op.Phase)
	require.Equal(t, phaseAt, c.Op.Journal.PhaseSince)
	require.Equal(t, before.Holder, c.Holder, "stamp and end are kept")
	require.Equal(t, before.Op.Participants, c.Op.Participants)
	require.Equal(t, before.Op.Journal.Acks, c.Op.Journal.Acks)
	require.Equal(t, before.Op.Journal.Release, c.Op.Journal.Release)
	require.Empty(t, c.Lost)
}

func TestAPinReachesWhatWasReleasedEachHalfByItself(t *testing.T) {
	o := drainUpTo(t, "pinning")
	with := func(change func(*hostclaim.Position)) hostclaim.Transition {
		p := pinOf(o.Claim)
		change(&p.Position)
		return hostclaim.JournalPin("op-2", p)
	}
	refused(t, o, with(func(p *hostclaim.Position) { p.TXID-- }), hostclaim.ErrWrongState, "does not reach what session 2 of box-1 ended at")
	refused(t, o, with(func(p *hostclaim.Position) { p.FilesSeq-- }), hostclaim.ErrWrongState, "does not reach what session 2 of box-1 ended at")
	then(t, o, with(func(p *hostclaim.Position) { p.TXID++; p.FilesSeq++ }))
	sized := pinOf(o.Claim)
	sized.Size = -1
	refused(t, o, hostclaim.JournalPin("op-2", sized), hostclaim.ErrWrongState, "size is -1")
	c := drainUpTo(t, "pinned").Claim
	require.Equal(t, pinned, c.Op.Journal.Pin.Position)
	require.Equal(t, hostclaim.None, c.Op.Exec)
}

// TestALostAnswerIsSettledByLookingAgain: the step that was made is found as
// recorded, also where the operation has moved on.
func TestALostAnswerIsSettledByLookingAgain(t *testing.T) {
	o := drainUpTo(t, "released")
	pin := hostclaim.PinAfterRelease("op-2", stopOf(t, o.Claim), hostclaim.Member{}, phaseAt)
	moved := then(t, o, pin)
	refused(t, moved, pin, hostclaim.ErrAlreadyRecorded, "")
	refused(t, moved, hostclaim.JournalRelease("op-2", releaseOf(t, o.Claim, pinned)), hostclaim.ErrAlreadyRecorded, "")
	o = targetReleased(t)
	pin = hostclaim.PinAfterRelease("op-2", stopOf(t, o.Claim), spare, phaseAt)
	refused(t, then(t, o, pin), pin, hostclaim.ErrAlreadyRecorded, "")
	refused(t, upTo(t, "pinning"), hostclaim.PinFailover("op-2", epoch), hostclaim.ErrAlreadyRecorded, "")

	zoned := pinOf(moved.Claim)
	zoned.ListedAt = zoned.ListedAt.In(time.FixedZone("", 3600))
	_, found := stored(t, then(t, moved, hostclaim.JournalPin("op-2", zoned)))
	refused(t, found, hostclaim.JournalPin("op-2", zoned), hostclaim.ErrAlreadyRecorded, "")
}

// TestAPinOfASessionThatWroteNothingIsItsBaseline: a session that ended before
// its first upload is reached by exactly what it was restored from.
func TestAPinOfASessionThatWroteNothingIsItsBaseline(t *testing.T) {
	o := drainUpTo(t, "releasing")
	o = then(t, o, hostclaim.AdmitWriter(readmission(o.Claim, "g-2")))
	nothing := hostclaim.Position{Generation: "g-2", FilesGeneration: "g-2"}
	o = then(t, o, hostclaim.JournalRelease("op-2", releaseOf(t, o.Claim, nothing)))
	o = then(t, o, hostclaim.PinAfterRelease("op-2", stopOf(t, o.Claim), hostclaim.Member{}, phaseAt))
	short := pinOf(o.Claim)
	short.Position.FilesSeq--
	refused(t, o, hostclaim.JournalPin("op-2", short), hostclaim.ErrWrongState, "does not reach")
	then(t, o, hostclaim.JournalPin("op-2", pinOf(o.Claim)))
}

func TestADrainWithoutAFailureDeclaresNothing(t *testing.T) {
	for _, coverage := range []hostclaim.Coverage{hostclaim.Released, hostclaim.CleanReturn} {
		o := drainUpTo(t, "attempt")
		o = then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, coverage)))
		h, r := o.Claim.Holder, o.Claim.Holder.Admissions[1]
		require.Equal(t, coverage, r.Coverage)
		require.Nil(t, r.WritesLost)
		require.Nil(t, h.Ended)
		require.Equal(t, o.Claim.Op.Journal.InstallStamp, h.Session, "the opening keeps the installation's stamp")
		require.Equal(t, "p-1", o.Claim.Op.Journal.PreparedOpened)
	}
	c := drainUpTo(t, "relocated").Claim
	require.Empty(t, c.PendingLosses())
	require.Empty(t, c.EvidenceRefs)
	require.Equal(t, target.Box, c.Op.Exec)
	require.True(t, c.Owes(source.Box, hostclaim.ParkLocal))
}

func TestReleasedIsRefusedWhereThePredecessorDiffersInOneThing(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*hostclaim.Release)
		text   string
	}{
		"only in session":    {func(r *hostclaim.Release) { r.Session-- }, "session 1 of \"g-1\" on box-1, the predecessor is 2"},
		"only in box":        {func(r *hostclaim.Release) { r.Box = spare.Box }, "on box-3, the predecessor is 2 of \"g-1\" on box-1"},
		"only in generation": {func(r *hostclaim.Release) { r.Generation = "g-9" }, "of \"g-9\" on box-1, the predecessor is 2 of \"g-1\""},
		"in its position":    {func(r *hostclaim.Release) { r.Final.TXID++ }, "does not reach the release"},
	} {
		t.Run(name, func(t *testing.T) {
			o := drainUpTo(t, "attempt")
			row.change(o.Claim.Op.Journal.Release)
			refused(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Released)), hostclaim.ErrWrongState, row.text)
		})
	}
}

func TestOnlyTheOneOpeningIsCoveredByARelease(t *testing.T) {
	failover := upTo(t, "attempt")
	refused(t, failover, hostclaim.AdmitWriter(openingOf(failover.Claim, hostclaim.Released)), hostclaim.ErrWrongState, "no release is journaled")
	declared := then(t, failover, hostclaim.AdmitWriter(openingOf(failover.Claim, hostclaim.Uncovered))).Claim.Holder.Admissions[1].WritesLost
	require.Equal(t, []any{source.Box, uint64(2), "g-1"}, []any{declared.Box, declared.Session, declared.Generation})

	serving, second := upTo(t, "serving"), then(t, drainUpTo(t, "opened"), hostclaim.BeginProbeAttempt("op-2", 2))
	again := readmission(serving.Claim, "g-2")
	again.Coverage = hostclaim.Released
	refused(t, serving, hostclaim.AdmitWriter(again), hostclaim.ErrWrongState, "only the opening")
	again = fresh(second.Claim, "g-2")
	again.Coverage = hostclaim.Released
	refused(t, second, hostclaim.AdmitWriter(again), hostclaim.ErrWrongState, "only the opening")
	again.Coverage = hostclaim.Sealed
	refused(t, second, hostclaim.AdmitWriter(again), hostclaim.ErrWrongState, "no move's seal")
}

// TestACleanReturnOpensAFailoverWhoseSourceHadEnded: the source stopped cleanly
// and died before it could release.
func TestACleanReturnOpensAFailoverWhoseSourceHadEnded(t *testing.T) {
	serving := then(t, upTo(t, "serving"), hostclaim.EndSession(source.Box, 2, pinned))
	uncovered := false // the store lost what the session ended at, and an operator goes on without
	walk := func(at hostclaim.Position) hostclaim.Observed {
		o := serving
		for _, s := range stages(sourceGone(t))[4:13] {
			step := s.step(o.Claim)
			if s.name == "pinned" {
				p := pinOf(o.Claim)
				p.Position = at
				if uncovered {
					refused(t, o, hostclaim.JournalPin("op-2", p), hostclaim.ErrWrongState, "does not reach what session 2 of box-1 ended at")
					o = then(t, o, hostclaim.MarkStuck("op-2", hostclaim.PinUncovered, phaseAt))
					o = then(t, o, resolve(t, o, target, hostclaim.Proof{}))
					p.Key = pinOf(o.Claim).Key
				}
				step = hostclaim.JournalPin("op-2", p)
			}
			if s.name == "installed" {
				a := built
				a.SnapshotTXID = at.TXID
				step = hostclaim.ToInstalled("op-2", a, epoch)
			}
			o = then(t, o, step)
		}
		return o
	}
	o := walk(pinned)
	o = then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.CleanReturn)))
	require.Nil(t, o.Claim.Holder.Admissions[1].WritesLost)

	short := pinned
	short.TXID--
	uncovered = true
	o = walk(short)
	refused(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.CleanReturn)), hostclaim.ErrWrongState, "did not record its end")
	o = then(t, o, hostclaim.AdmitWriter(openingOf(o.Claim, hostclaim.Uncovered)))
	require.Equal(t, uint64(40), o.Claim.Holder.Admissions[1].WritesLost.RemoteMaxTXID)
}

func TestALateEndOfAnEarlierSessionChangesNothing(t *testing.T) {
	woken := upTo(t, "serving")
	woken = then(t, woken, hostclaim.AdmitWriter(readmission(woken.Claim, "g-2")))
	for name, o := range map[string]hostclaim.Observed{
		"after a wake": woken, "after a drain": drainUpTo(t, "opened"), "after a failover": upTo(t, "opened"),
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, o, hostclaim.EndSession(source.Box, 2, pinned), hostclaim.ErrWrongState, "not the current one")
		})
	}
	for _, stage := range []string{"pinning", "installing", "received", "attempt"} {
		o := drainUpTo(t, stage)
		refused(t, o, hostclaim.EndSession(source.Box, 2, pinned), hostclaim.ErrAlreadyRecorded, "")
		o.Claim.Holder.Ended = nil
		refused(t, o, hostclaim.EndSession(source.Box, 2, pinned), hostclaim.ErrWrongState, "no session of box-1")
	}
}
