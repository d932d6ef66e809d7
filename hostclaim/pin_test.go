package hostclaim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

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

// TestAPinReachesWhatASessionEndedAt also where nothing was released: the
// source stopped cleanly and died, or the target released and died.
func TestAPinReachesWhatASessionEndedAt(t *testing.T) {
	o := then(t, drainUpTo(t, "acknowledged"), hostclaim.EndSession(source.Box, 2, pinned), fenceSource(t), hostclaim.PinFailover("op-2", diedAt))
	p := pinOf(o.Claim)
	p.ListedAt = decidedAt
	short := p
	short.Position.TXID--
	refused(t, o, hostclaim.JournalPin("op-2", short), hostclaim.ErrWrongState, "does not reach what session 2 of box-1 ended at")
	then(t, o, hostclaim.JournalPin("op-2", p))

	o = then(t, targetReleased(t), hostclaim.ReplaceTarget("op-2", lostAt(t, target, diedAt), spare, "", diedAt))
	require.NotNil(t, o.Claim.Op.Journal.Release, "its own release stands")
	p = pinOf(o.Claim)
	p.ListedAt, p.Position = decidedAt, written
	short = p
	short.Position.FilesSeq--
	refused(t, o, hostclaim.JournalPin("op-2", short), hostclaim.ErrWrongState, "of box-2 ended at")
	o = then(t, o, hostclaim.JournalPin("op-2", p))
	require.Empty(t, carriedOn(t, o).PendingLosses(), "its release covers the next opening")
}
