package hostclaim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/termfence"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

func storeWith(tb testing.TB, body string) *memstore.Store {
	s := memstore.New()
	_, err := s.Put(ctx, hostclaim.Key(testHost), []byte(body), objstore.IfAbsent())
	require.NoError(tb, err)
	return s
}

func TestACreateIsCompletedByTheSelectedBoxAlone(t *testing.T) {
	o := upTo(t, "creating")
	refused(t, o, hostclaim.CompleteCreate("op-1", spare.Box, spare.Enrollment), hostclaim.ErrWrongState, "was not selected")
	refused(t, o, hostclaim.CompleteCreate("op-1", source.Box, "enr-9"), hostclaim.ErrWrongState, "was not selected")
	refused(t, o, hostclaim.CompleteCreate("op-9", source.Box, source.Enrollment), hostclaim.ErrStaleOp, "op-9")
	refused(t, o, hostclaim.BeginCreate(newHost, "op-1", "console", epoch, source), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.BeginCreate(newHost, "op-8", "console", epoch, source), hostclaim.ErrWrongState, "creating")
	done := then(t, o, hostclaim.CompleteCreate("op-1", source.Box, source.Enrollment))
	require.Equal(t, done.Claim.Gen, done.Claim.Holder.Stamp)
	require.Equal(t, []string{source.Box}, done.Claim.Touched)
	refused(t, done, hostclaim.CompleteCreate("op-1", source.Box, source.Enrollment), hostclaim.ErrAlreadyRecorded, "")
}

func TestACancelledCreateIsNotCompletedAfterwards(t *testing.T) {
	o := then(t, upTo(t, "creating"), hostclaim.CancelCreate("op-1", "late"))
	require.Nil(t, o.Claim.Holder)
	refused(t, o, hostclaim.CompleteCreate("op-1", source.Box, source.Enrollment), hostclaim.ErrStaleOp, "")
	refused(t, o, hostclaim.CancelCreate("op-1", "late"), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.BeginCreate(newHost, "op-3", "console", epoch, source), hostclaim.ErrWrongState, "retired")
	again := newHost
	again.Incarnation = "inc-2"
	then(t, o, hostclaim.BeginCreate(again, "op-3", "console", epoch, source))
}

func TestAFailoverNeedsEvidenceAboutExactlyItsSource(t *testing.T) {
	o := upTo(t, "serving")
	for name, row := range map[string]struct {
		evidence termfence.Evidence
		want     string
	}{
		"none":               {termfence.Evidence{}, "no evidence"},
		"another box":        {fencetest.Evidence(t, target.Box, source.Enrollment, testRegion, epoch), "is about box-2"},
		"another enrollment": {fencetest.Evidence(t, source.Box, "enr-9", testRegion, epoch), "enr-9"},
		"another region":     {fencetest.Evidence(t, source.Box, source.Enrollment, "de", epoch), "region"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, o, hostclaim.StartFailover(relocation, gone(row.evidence)), hostclaim.ErrWrongState, row.want)
		})
	}
}

func TestAFailoverRefusesAnUnfitTarget(t *testing.T) {
	e := sourceGone(t)
	with := func(change func(*hostclaim.Relocation)) hostclaim.Transition {
		r := relocation
		r.Op = "op-5"
		change(&r)
		return hostclaim.StartFailover(r, gone(e))
	}
	o := upTo(t, "serving")
	refused(t, o, with(func(r *hostclaim.Relocation) { r.Target = r.Source }), hostclaim.ErrWrongState, "both box-1")
	refused(t, o, with(func(r *hostclaim.Relocation) { r.Source = spare }), hostclaim.ErrWrongState, "not the executor")
	refused(t, o, with(func(r *hostclaim.Relocation) { r.PinDelay = -time.Second }), hostclaim.ErrWrongState, "pin delay")
	refused(t, upTo(t, "creating"), hostclaim.StartFailover(relocation, gone(e)), hostclaim.ErrWrongState, "creating")

	// After the failover the old box is lost and owes its local copy.
	done := upTo(t, "relocated")
	r := hostclaim.Relocation{Op: "op-6", By: "w", Now: epoch, Source: target, Target: source}
	proof := fencetest.Evidence(t, target.Box, target.Enrollment, testRegion, epoch)
	refused(t, done, hostclaim.StartFailover(r, gone(proof)), hostclaim.ErrWrongState, "is lost")
	done.Claim.Lost = nil
	refused(t, done, hostclaim.StartFailover(r, gone(proof)), hostclaim.ErrPendingChore, "park-local")
}

func TestConsumedEvidenceIsRetainedOnceAndPassesRegionalChores(t *testing.T) {
	o := upTo(t, "serving")
	o.Claim.Obligations = []hostclaim.Obligation{
		{ID: "a", Kind: hostclaim.ParkGeneration, Region: "de", Owner: "box:box-1"},
		{ID: "b", Kind: hostclaim.ParkGeneration, Region: testRegion, Owner: "box:box-3"},
		{ID: "c", Kind: hostclaim.ParkLocal, Box: "box-1", Owner: "box:box-1"},
	}
	o = then(t, o, hostclaim.StartFailover(relocation, gone(sourceGone(t))))
	c := o.Claim
	require.Equal(t, []string{"region:de", "box:box-3", "box:box-1"},
		[]string{c.Obligations[0].Owner, c.Obligations[1].Owner, c.Obligations[2].Owner})
	require.Equal(t, hostclaim.None, c.Op.Exec)
	require.Equal(t, []string{"box-1"}, c.Lost)
	require.Len(t, c.EvidenceRefs, 1)
	require.Equal(t, uint64(2), c.EvidenceRefs[0].Session)
	require.Equal(t, "g-1", c.EvidenceRefs[0].Admission.Generation)
	require.Equal(t, c.LossRefs, []string{c.EvidenceRefs[0].ID})
	refused(t, o, hostclaim.StartFailover(relocation, gone(sourceGone(t))), hostclaim.ErrAlreadyRecorded, "")

	homeless := upTo(t, "serving")
	homeless.Claim.Obligations = []hostclaim.Obligation{{ID: "a", Kind: hostclaim.ParkGeneration, Owner: "box:box-1"}}
	refused(t, homeless, hostclaim.StartFailover(relocation, gone(sourceGone(t))), hostclaim.ErrWrongState, "no region")
}

func TestOnlyTheTargetUnderItsEnrollmentAcknowledges(t *testing.T) {
	o := upTo(t, "starting")
	refused(t, o, hostclaim.PinFailover("op-2", epoch), hostclaim.ErrWrongState, "acknowledged")
	refused(t, o, hostclaim.Acknowledge("op-2", source.Box, source.Enrollment), hostclaim.ErrWrongState, "takes no part")
	refused(t, o, hostclaim.Acknowledge("op-2", target.Box, "enr-9"), hostclaim.ErrWrongState, "not enr-9")
	refused(t, o, hostclaim.Acknowledge("op-3", target.Box, target.Enrollment), hostclaim.ErrStaleOp, "")
	o = upTo(t, "acknowledged")
	refused(t, o, hostclaim.Acknowledge("op-2", target.Box, target.Enrollment), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.Acknowledge("op-2", target.Box, "enr-9"), hostclaim.ErrWrongState, "not enr-9")
}

func TestAPinWaitsForTheWindowOfEveryFence(t *testing.T) {
	o := upTo(t, "pinning")
	at := func(d time.Duration) hostclaim.Transition {
		p := pinOf(o.Claim)
		p.ListedAt = epoch.Add(d)
		return hostclaim.JournalPin("op-2", p)
	}
	refused(t, o, at(time.Second), hostclaim.ErrWrongState, "before")
	then(t, o, at(2*time.Second))
}

func TestAPinIsOfThisClaimAndItsChain(t *testing.T) {
	o := upTo(t, "pinning")
	with := func(change func(*hostclaim.Pin)) hostclaim.Transition {
		p := pinOf(o.Claim)
		change(&p)
		return hostclaim.JournalPin("op-2", p)
	}
	for name, row := range map[string]struct {
		change func(*hostclaim.Pin)
		want   string
	}{
		"selected against an older claim": {func(p *hostclaim.Pin) { p.Key = hostclaim.PinKey(testHost, "op-2", o.Claim.Gen-1) }, "not selected against"},
		"another generation":              {func(p *hostclaim.Pin) { p.Position.Generation = "g-9" }, "not in the chain"},
		"a generation at nothing":         {func(p *hostclaim.Pin) { p.Position.TXID = 0 }, "is read to"},
		"empty over a writer":             {func(p *hostclaim.Pin) { p.Position.Generation, p.Position.TXID = "", 0 }, "empty baseline"},
		"a TXID of nothing":               {func(p *hostclaim.Pin) { p.Position.Generation = "" }, "no generation"},
		"no files over a writer":          {func(p *hostclaim.Pin) { p.Position.FilesGeneration, p.Position.FilesSeq = "", 0 }, "no files"},
		"a files sequence of nothing":     {func(p *hostclaim.Pin) { p.Position.FilesGeneration = "" }, "no generation"},
		"files of another generation":     {func(p *hostclaim.Pin) { p.Position.FilesGeneration = "g-9" }, "not in the chain"},
		"files without a digest":          {func(p *hostclaim.Pin) { p.FilesSHA256 = "" }, "both or neither"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, o, with(row.change), hostclaim.ErrWrongState, row.want) })
	}
	pinnedClaim := upTo(t, "pinned")
	refused(t, pinnedClaim, hostclaim.JournalPin("op-2", *pinnedClaim.Claim.Op.Journal.Pin), hostclaim.ErrAlreadyRecorded, "")
	refused(t, pinnedClaim, hostclaim.JournalPin("op-2", pinOf(pinnedClaim.Claim)), hostclaim.ErrWrongState, "another pin")
}

func TestAnUnadmittedHostPinsNothing(t *testing.T) {
	o := then(t, upTo(t, "created"), hostclaim.StartFailover(relocation, gone(sourceGone(t))),
		hostclaim.Acknowledge("op-2", target.Box, target.Enrollment), hostclaim.PinFailover("op-2", epoch))
	p := hostclaim.Pin{Key: hostclaim.PinKey(testHost, "op-2", o.Claim.Gen), SHA256: "s", ListedAt: epoch.Add(time.Hour)}
	o = then(t, o, hostclaim.JournalPin("op-2", p), hostclaim.ToInstalling("op-2", "p-1", epoch))
	a := built
	a.SnapshotTXID, a.SourceFilesSeq = 0, 0
	refused(t, o, hostclaim.ToInstalled("op-2", built, epoch), hostclaim.ErrWrongState, "TXID")
	bare := a
	bare.FilesManifestSHA256 = ""
	refused(t, o, hostclaim.ToInstalled("op-2", bare, epoch), hostclaim.ErrWrongState, "files manifest")
	o = then(t, o, hostclaim.ToInstalled("op-2", a, epoch))
	o = then(t, o, hostclaim.RecordLocalInstall("op-2", receiptOf(o.Claim)), hostclaim.ToProbing("op-2", epoch), hostclaim.BeginProbeAttempt("op-2", 1))
	open := opening(o.Claim)
	open.Baseline = hostclaim.Position{}
	o = then(t, o, hostclaim.AdmitWriter(open))
	require.Nil(t, o.Claim.Holder.Admissions[0].WritesLost, "session 0 lost nothing")
}

func TestHandingOverNeedsAPinAndAFreshGeneration(t *testing.T) {
	refused(t, upTo(t, "pinning"), hostclaim.ToInstalling("op-2", "p-1", epoch), hostclaim.ErrWrongState, "nothing is pinned")
	o := upTo(t, "pinned")
	refused(t, o, hostclaim.ToInstalling("op-2", "g-1", epoch), hostclaim.ErrWrongState, "not fresh")
	refused(t, o, hostclaim.ToInstalling("op-2", "a/b", epoch), hostclaim.ErrWrongState, "generation")
	o = then(t, o, hostclaim.ToInstalling("op-2", "p-1", epoch))
	require.Equal(t, o.Claim.Gen, o.Claim.Holder.Stamp)
	require.Equal(t, o.Claim.Gen, o.Claim.Op.Journal.InstallStamp)
	require.Contains(t, o.Claim.Touched, target.Box)
	refused(t, o, hostclaim.ToInstalling("op-2", "p-1", epoch), hostclaim.ErrAlreadyRecorded, "")
}

func TestABuildIsAcceptedOnceAndOnlyOfThePin(t *testing.T) {
	o := upTo(t, "installing")
	for name, row := range map[string]struct {
		change func(*hostclaim.PreparedAuthority)
		want   string
	}{
		"another generation":  {func(a *hostclaim.PreparedAuthority) { a.Generation = "p-2" }, "not \"p-1\""},
		"no install manifest": {func(a *hostclaim.PreparedAuthority) { a.SHA256 = "" }, "install manifest"},
		"another TXID":        {func(a *hostclaim.PreparedAuthority) { a.SnapshotTXID = 40 }, "the pin at 41"},
		"files published":     {func(a *hostclaim.PreparedAuthority) { a.FilesSeq = 6 }, "sequence 0"},
		"another revision":    {func(a *hostclaim.PreparedAuthority) { a.SourceFilesSeq = 5 }, "the pin from 6"},
		"no files manifest":   {func(a *hostclaim.PreparedAuthority) { a.FilesManifestSHA256 = "" }, "no files manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			a := built
			row.change(&a)
			refused(t, o, hostclaim.ToInstalled("op-2", a, epoch), hostclaim.ErrWrongState, row.want)
		})
	}
	o = upTo(t, "installed")
	refused(t, o, hostclaim.ToInstalled("op-2", built, epoch), hostclaim.ErrAlreadyRecorded, "")
	other := built
	other.SHA256 = "ff66"
	refused(t, o, hostclaim.ToInstalled("op-2", other, epoch), hostclaim.ErrWrongState, "another build")
}

func TestALocalInstallIsOfThisInstallationAlone(t *testing.T) {
	o := upTo(t, "installed")
	refused(t, o, hostclaim.ToProbing("op-2", epoch), hostclaim.ErrWrongState, "no receipt")
	for name, row := range map[string]struct {
		change func(*hostclaim.LocalInstall)
		want   string
	}{
		"another box":        {func(l *hostclaim.LocalInstall) { l.Box = spare.Box }, "the executor is"},
		"another enrollment": {func(l *hostclaim.LocalInstall) { l.Enrollment = "enr-9" }, "the executor is"},
		"an older stamp":     {func(l *hostclaim.LocalInstall) { l.InstallStamp-- }, "installation"},
		"another manifest":   {func(l *hostclaim.LocalInstall) { l.SHA256 = "ff66" }, "files manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			l := receiptOf(o.Claim)
			row.change(&l)
			refused(t, o, hostclaim.RecordLocalInstall("op-2", l), hostclaim.ErrWrongState, row.want)
		})
	}
	opened := upTo(t, "opened")
	l := receiptOf(opened.Claim)
	l.FilesManifest = "another"
	refused(t, opened, hostclaim.RecordLocalInstall("op-2", l), hostclaim.ErrWrongState, "not remade")
}

// fresh is a later attempt's admission: a fresh generation from where the
// session before it got to.
func fresh(c *hostclaim.Claim, generation string) hostclaim.Admission {
	a := opening(c)
	a.NewGeneration, a.KeepStamp = generation, false
	a.Baseline = hostclaim.Position{Generation: c.Holder.Generation, TXID: 42, FilesGeneration: c.Holder.Generation, FilesSeq: 1}
	return a
}

func TestTheFirstAttemptOpensPAndNoOther(t *testing.T) {
	o := upTo(t, "attempt")
	for name, row := range map[string]struct {
		change func(*hostclaim.Admission)
		want   string
	}{
		"another generation": {func(a *hostclaim.Admission) { a.NewGeneration = "g-9" }, "opens \"p-1\""},
		"a new stamp":        {func(a *hostclaim.Admission) { a.KeepStamp = false }, "keeps the installation's stamp"},
		"another baseline":   {func(a *hostclaim.Admission) { a.Baseline.TXID = 40 }, "was built from"},
		"another box":        {func(a *hostclaim.Admission) { a.Box = spare.Box }, "not the executor"},
		"an older session":   {func(a *hostclaim.Admission) { a.Session = 1 }, "observed 1"},
		"an older phase":     {func(a *hostclaim.Admission) { a.Phase = hostclaim.Installed }, "observed \"installed\""},
		"clean return":       {func(a *hostclaim.Admission) { a.Coverage = hostclaim.CleanReturn }, "did not record its end"},
		"released":           {func(a *hostclaim.Admission) { a.Coverage = hostclaim.Released }, "no release is journaled"},
	} {
		t.Run(name, func(t *testing.T) {
			a := opening(o.Claim)
			row.change(&a)
			refused(t, o, hostclaim.AdmitWriter(a), hostclaim.ErrWrongState, row.want)
		})
	}
	refused(t, upTo(t, "probing"), hostclaim.AdmitWriter(opening(upTo(t, "probing").Claim)), hostclaim.ErrWrongState, "begin the next one")
}

func TestAFailoverDeclaresItsPredecessor(t *testing.T) {
	o := upTo(t, "opened")
	r := o.Claim.Holder.Admissions[1]
	require.Equal(t, &hostclaim.WritesLost{ID: r.WritesLost.ID, Box: "box-1", Session: 2, Generation: "g-1", RemoteMaxTXID: 41}, r.WritesLost)
	require.Equal(t, r.Session, o.Claim.Holder.Stamp)
	require.Equal(t, "p-1", o.Claim.Op.Journal.PreparedOpened)
	again := opening(o.Claim)
	refused(t, o, hostclaim.AdmitWriter(again), hostclaim.ErrAlreadyRecorded, "")
}

func TestALaterAttemptNeverReopensP(t *testing.T) {
	o := upTo(t, "opened")
	refused(t, o, hostclaim.AdmitWriter(fresh(o.Claim, "g-2")), hostclaim.ErrWrongState, "begin the next one")
	o = then(t, o, hostclaim.BeginProbeAttempt("op-2", 2))
	o = then(t, o, hostclaim.AdmitWriter(fresh(o.Claim, "g-2")))
	require.Equal(t, o.Claim.Gen, o.Claim.Holder.Session, "a later attempt has a new stamp")
	o = then(t, o, hostclaim.BeginProbeAttempt("op-2", 3))
	third := fresh(o.Claim, "p-1")
	refused(t, o, hostclaim.AdmitWriter(third), hostclaim.ErrWrongState, "not fresh")

	// With its admission trimmed away it stays opened, and no install is remade.
	o.Claim.Holder.Admissions = o.Claim.Holder.Admissions[2:]
	refused(t, o, hostclaim.AdmitWriter(third), hostclaim.ErrWrongState, "not fresh")
	l := receiptOf(o.Claim)
	l.FilesManifest = "another"
	refused(t, o, hostclaim.RecordLocalInstall("op-2", l), hostclaim.ErrWrongState, "not remade")

	o = then(t, o, hostclaim.AdmitWriter(fresh(o.Claim, "g-3")))
	refused(t, o, hostclaim.BeginProbeAttempt("op-2", 4), hostclaim.ErrWrongState, "at most 3")
	refused(t, o, hostclaim.BeginProbeAttempt("op-2", 3), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.BeginProbeAttempt("op-2", 1), hostclaim.ErrWrongState, "attempt 1 after 3")
}

func TestCompletionNeedsAProbeOfTheCurrentSession(t *testing.T) {
	o := upTo(t, "opened")
	refused(t, o, hostclaim.CompleteRelocation("op-2"), hostclaim.ErrWrongState, "no passing probe")
	refused(t, o, hostclaim.RecordProbe("op-2", source.Box, 2), hostclaim.ErrWrongState, "not the current one")
	refused(t, o, hostclaim.RecordProbe("op-2", target.Box, 2), hostclaim.ErrWrongState, "not the current one")
	o = then(t, o, hostclaim.RecordProbe("op-2", target.Box, o.Claim.Holder.Session), hostclaim.BeginProbeAttempt("op-2", 2))
	o = then(t, o, hostclaim.AdmitWriter(fresh(o.Claim, "g-2")))
	refused(t, o, hostclaim.CompleteRelocation("op-2"), hostclaim.ErrWrongState, "no passing probe")

	ended := upTo(t, "opened")
	ended = then(t, ended, hostclaim.EndSession(target.Box, ended.Claim.Holder.Session,
		hostclaim.Position{Generation: "p-1", TXID: 41, FilesGeneration: "p-1", FilesSeq: 1}))
	refused(t, ended, hostclaim.RecordProbe("op-2", target.Box, ended.Claim.Holder.Session), hostclaim.ErrWrongState, "has ended")
}

func TestCompletionLeavesTheOldHomeItsChores(t *testing.T) {
	c := upTo(t, "relocated").Claim
	require.Equal(t, hostclaim.Serving, c.Op.Kind)
	require.Equal(t, target.Box, c.Op.Exec)
	require.True(t, c.Owes(source.Box, hostclaim.ParkLocal))
	require.False(t, c.Owes(target.Box, hostclaim.ParkLocal))
	require.Equal(t, hostclaim.Journal{}, c.Op.Journal)
	require.Equal(t, []string{"g-1"}, deadGenerations(c))
	require.NotEmpty(t, c.LossRefs)
	refused(t, upTo(t, "relocated"), hostclaim.CompleteRelocation("op-2"), hostclaim.ErrAlreadyRecorded, "")
}

func deadGenerations(c *hostclaim.Claim) (dead []string) {
	for _, o := range c.Obligations {
		if o.Kind == hostclaim.ParkGeneration {
			dead = append(dead, o.Generation)
		}
	}
	return dead
}

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

func TestASessionEndsOnceAtItsOwnPosition(t *testing.T) {
	o := upTo(t, "serving")
	final := hostclaim.Position{Generation: "g-1", TXID: 9, FilesGeneration: "g-1", FilesSeq: 3}
	for name, row := range map[string]struct {
		box     string
		session uint64
		final   hostclaim.Position
		want    string
	}{
		"another box":        {target.Box, 2, final, "not the current one"},
		"another session":    {source.Box, 1, final, "not the current one"},
		"foreign generation": {source.Box, 2, hostclaim.Position{Generation: "g-9", TXID: 1}, "neither in"},
		"foreign files":      {source.Box, 2, hostclaim.Position{Generation: "g-1", FilesGeneration: "g-9"}, "neither in"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, o, hostclaim.EndSession(row.box, row.session, row.final), hostclaim.ErrWrongState, row.want)
		})
	}
	o = then(t, o, hostclaim.EndSession(source.Box, 2, final))
	refused(t, o, hostclaim.EndSession(source.Box, 2, final), hostclaim.ErrAlreadyRecorded, "")
	other := final
	other.TXID = 10
	refused(t, o, hostclaim.EndSession(source.Box, 2, other), hostclaim.ErrWrongState, "ended at")
	refused(t, upTo(t, "starting"), hostclaim.EndSession(source.Box, 2, final), hostclaim.ErrWrongState, "no session of")
}

// TestASessionThatWroteNothingEndsAtItsBaseline: an agent that died before its
// restore leaves nothing, and the host may begin empty again.
func TestASessionThatWroteNothingEndsAtItsBaseline(t *testing.T) {
	o := upTo(t, "admitted")
	again := hostclaim.Admission{Op: "op-1", Session: 2, Generation: "g-1", Box: source.Box, NewGeneration: "g-2"}
	refused(t, o, hostclaim.AdmitWriter(again), hostclaim.ErrWrongState, "empty baseline")
	o = then(t, o, hostclaim.EndSession(source.Box, 2, hostclaim.Position{}))
	again.Coverage = hostclaim.CleanReturn
	then(t, o, hostclaim.AdmitWriter(again))
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

func TestPublishingNeedsTheCurrentSessionAndRetiresTheRun(t *testing.T) {
	o := upTo(t, "serving")
	refused(t, o, hostclaim.PublishGeneration(source.Box, 2), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.PublishGeneration(target.Box, 2), hostclaim.ErrWrongState, "not the current one")
	refused(t, upTo(t, "starting"), hostclaim.PublishGeneration(source.Box, 2), hostclaim.ErrWrongState, "not the current one")
	base := hostclaim.Position{Generation: "g-1", TXID: 9, FilesGeneration: "g-1", FilesSeq: 3}
	for _, g := range []string{"g-2", "g-3"} {
		o = then(t, o, hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Session: o.Claim.Holder.Session,
			Generation: o.Claim.Holder.Generation, Box: source.Box, NewGeneration: g, Baseline: base}))
	}
	o = then(t, o, hostclaim.PublishGeneration(source.Box, o.Claim.Holder.Session))
	require.ElementsMatch(t, []string{"g-1", "g-2"}, deadGenerations(o.Claim))
	require.Equal(t, []hostclaim.Link{{Generation: "g-3"}}, o.Claim.Chain())
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

func TestThenPassesOverWhatIsRecorded(t *testing.T) {
	o := upTo(t, "acknowledged")
	both := hostclaim.Then(hostclaim.Acknowledge("op-2", target.Box, target.Enrollment), hostclaim.PinFailover("op-2", epoch))
	o = then(t, o, both)
	require.Equal(t, hostclaim.Pinning, o.Claim.Op.Phase)
	refused(t, upTo(t, "acknowledged"), hostclaim.Then(hostclaim.Acknowledge("op-2", target.Box, target.Enrollment)), hostclaim.ErrAlreadyRecorded, "")
	refused(t, upTo(t, "starting"), hostclaim.Then(both, hostclaim.ToInstalling("op-2", "p-1", epoch)), hostclaim.ErrWrongState, "nothing is pinned")
}

func TestATransitionMayNotRewriteWhatUpdateOwns(t *testing.T) {
	o := upTo(t, "relocated")
	for name, tr := range map[string]hostclaim.Transition{
		"host":    func(c *hostclaim.Claim) error { c.Host = "other.example"; return nil },
		"gen":     func(c *hostclaim.Claim) error { c.Gen += 5; return nil },
		"write":   func(c *hostclaim.Claim) error { c.Write = "mine"; return nil },
		"lost":    func(c *hostclaim.Claim) error { c.Lost = nil; return nil },
		"invalid": func(c *hostclaim.Claim) error { c.Op.Exec = "a.b"; return nil },
		"stamp": func(c *hostclaim.Claim) error {
			c.Holder.Stamp, c.Holder.Session = 1, 1
			c.Holder.Admissions = c.Holder.Admissions[1:]
			c.Holder.Admissions[0].Session = 1
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := o.Next("nonce", tr)
			require.ErrorIs(t, err, hostclaim.ErrMalformed)
		})
	}
}
