package hostclaim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
	"github.com/carlosframework/regionha/termfence"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

var (
	source = hostclaim.Member{Box: "box-1", Enrollment: "enr-1"}
	target = hostclaim.Member{Box: "box-2", Enrollment: "enr-2"}
	spare  = hostclaim.Member{Box: "box-3", Enrollment: "enr-3"}

	newHost = hostclaim.NewHost{Incarnation: "inc-1", Account: "demo", App: "notes", RecordSHA256: "aa11", Region: testRegion,
		RecordKey: "apps/demo/notes/instances/notes.demo.example.json"}
	relocation = hostclaim.Relocation{Op: "op-2", By: "box-9", Now: epoch.Add(time.Minute), Source: source, Target: target,
		DirectoryRevision: 7, PinDelay: 2 * time.Second}
	pinned = hostclaim.Position{Generation: "g-1", TXID: 41, FilesGeneration: "g-1", FilesSeq: 6}
	built  = hostclaim.PreparedAuthority{Generation: "p-1", InstallManifest: "instances/i/db/p-1/install.json", SHA256: "bb22",
		SnapshotTXID: 41, SourceFilesSeq: 6, FilesManifestSHA256: "cc33"}
)

// stage is one step of the whole path from nothing to a served failover.
type stage struct {
	name string
	step func(c *hostclaim.Claim) hostclaim.Transition
}

func always(t hostclaim.Transition) func(*hostclaim.Claim) hostclaim.Transition {
	return func(*hostclaim.Claim) hostclaim.Transition { return t }
}

func stages(e termfence.Evidence) []stage {
	return []stage{
		{"creating", always(hostclaim.BeginCreate(newHost, "op-1", "console", epoch, source))},
		{"created", always(hostclaim.CompleteCreate("op-1", source.Box, source.Enrollment))},
		{"admitted", always(hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Box: source.Box, NewGeneration: "g-1", KeepStamp: true}))},
		{"serving", always(hostclaim.PublishGeneration(source.Box, 2))},
		{"starting", always(hostclaim.StartFailover(relocation, gone(e)))},
		{"acknowledged", always(hostclaim.Acknowledge("op-2", target.Box, target.Enrollment))},
		{"pinning", always(hostclaim.PinFailover("op-2", epoch))},
		{"pinned", func(c *hostclaim.Claim) hostclaim.Transition { return hostclaim.JournalPin("op-2", pinOf(c)) }},
		{"installing", always(hostclaim.ToInstalling("op-2", "p-1", epoch))},
		{"installed", always(hostclaim.ToInstalled("op-2", built, epoch))},
		{"received", func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.RecordLocalInstall("op-2", receiptOf(c))
		}},
		{"probing", always(hostclaim.ToProbing("op-2", epoch.Add(2*time.Minute)))},
		{"attempt", always(hostclaim.BeginProbeAttempt("op-2", 1))},
		{"opened", func(c *hostclaim.Claim) hostclaim.Transition { return hostclaim.AdmitWriter(opening(c)) }},
		{"published", func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.PublishGeneration(target.Box, c.Holder.Session)
		}},
		{"probed", func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.RecordProbe("op-2", target.Box, c.Holder.Session)
		}},
		{"relocated", always(hostclaim.CompleteRelocation("op-2"))},
	}
}

func pinOf(c *hostclaim.Claim) hostclaim.Pin {
	return hostclaim.Pin{Key: hostclaim.PinKey(testHost, c.Op.ID, c.Gen), SHA256: "dd44", FilesSHA256: "ee55",
		ListedAt: epoch.Add(3 * time.Second), Position: pinned}
}

func receiptOf(c *hostclaim.Claim) hostclaim.LocalInstall {
	return hostclaim.LocalInstall{Box: target.Box, Enrollment: target.Enrollment, InstallStamp: c.Op.Journal.InstallStamp,
		FilesManifest: "instances/i/files/p-1/manifest.json", SHA256: "cc33"}
}

func opening(c *hostclaim.Claim) hostclaim.Admission {
	return hostclaim.Admission{Op: c.Op.ID, Phase: c.Op.Phase, Session: c.Holder.Session, Generation: c.Holder.Generation,
		Box: target.Box, NewGeneration: "p-1", KeepStamp: true, Baseline: pinned}
}

func sourceGone(tb testing.TB) termfence.Evidence {
	return fencetest.Evidence(tb, source.Box, source.Enrollment, testRegion, epoch)
}

func gone(e termfence.Evidence) hostclaim.Gone { return hostclaim.Gone{Evidence: e} }

// upTo builds the claim as it is after the named stage.
func upTo(tb testing.TB, name string) hostclaim.Observed {
	tb.Helper()
	o := hostclaim.Observed{Host: testHost}
	for _, s := range stages(sourceGone(tb)) {
		c, err := o.Next("nonce", s.step(o.Claim))
		require.NoError(tb, err, s.name)
		o.Claim = c
		if s.name == name {
			return o
		}
	}
	tb.Fatalf("no stage %q", name)
	return o
}

// then applies further steps.
func then(tb testing.TB, o hostclaim.Observed, ts ...hostclaim.Transition) hostclaim.Observed {
	tb.Helper()
	for _, t := range ts {
		c, err := o.Next("nonce", t)
		require.NoError(tb, err)
		o.Claim = c
	}
	return o
}

func refused(tb testing.TB, o hostclaim.Observed, t hostclaim.Transition, want error, text string) {
	tb.Helper()
	_, err := o.Next("nonce", t)
	require.ErrorIs(tb, err, want)
	require.ErrorContains(tb, err, text)
}

// phaseAt is when a drain entered the phase that it is in. It started at
// relocation.Now, a minute before.
var phaseAt = epoch.Add(2 * time.Minute)

// drainStages is the path of a drain from a serving host to a served one. The
// opening is covered by the source's release.
func drainStages(tb testing.TB) []stage {
	return []stage{
		{"starting", always(hostclaim.StartRelocation(relocation, hostclaim.Drain))},
		{"source ready", always(hostclaim.Acknowledge("op-2", source.Box, source.Enrollment))},
		{"acknowledged", always(hostclaim.Acknowledge("op-2", target.Box, target.Enrollment))},
		{"releasing", always(hostclaim.ToReleasing("op-2", phaseAt))},
		{"released", func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.JournalRelease("op-2", releaseOf(tb, c, pinned))
		}},
		{"pinning", func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.PinAfterRelease("op-2", stopOf(tb, c), hostclaim.Member{}, phaseAt)
		}},
		{"pinned", func(c *hostclaim.Claim) hostclaim.Transition { return hostclaim.JournalPin("op-2", pinOf(c)) }},
		{"installing", always(hostclaim.ToInstalling("op-2", "p-1", phaseAt))},
		{"installed", always(hostclaim.ToInstalled("op-2", built, phaseAt))},
		{"received", func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.RecordLocalInstall("op-2", installOf(c))
		}},
		{"probing", always(hostclaim.ToProbing("op-2", phaseAt))},
		{"attempt", always(hostclaim.BeginProbeAttempt("op-2", 1))},
		{"opened", func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.AdmitWriter(openingOf(c, hostclaim.Released))
		}},
		{"published", func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.PublishGeneration(target.Box, c.Holder.Session)
		}},
		{"probed", func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.RecordProbe("op-2", target.Box, c.Holder.Session)
		}},
		{"relocated", always(hostclaim.CompleteRelocation("op-2"))},
	}
}

// drainUpTo builds the claim as it is after the named stage of a drain.
func drainUpTo(tb testing.TB, name string) hostclaim.Observed {
	tb.Helper()
	o := upTo(tb, "serving")
	for _, s := range drainStages(tb) {
		o = then(tb, o, s.step(o.Claim))
		if s.name == name {
			return o
		}
	}
	tb.Fatalf("no stage %q", name)
	return o
}

// probeFailedAt is when the target of a drain ran out of time.
var probeFailedAt = phaseAt.Add(hostclaim.ProbeDeadline)

// failedProbe is a drain whose live target missed its probe deadline, as it was
// at the named stage.
func failedProbe(tb testing.TB, stage string) hostclaim.Observed {
	tb.Helper()
	return then(tb, drainUpTo(tb, stage), hostclaim.ToProbeFailed("op-2", probeFailedAt))
}

// written is where the target's own session got to before its probe failed.
var written = hostclaim.Position{Generation: "p-1", TXID: 43, FilesGeneration: "p-1", FilesSeq: 2}

// targetReleased is a drain whose target released its session after its probe
// failed.
func targetReleased(tb testing.TB) hostclaim.Observed {
	tb.Helper()
	o := failedProbe(tb, "opened")
	return then(tb, o, hostclaim.JournalRelease("op-2", releaseOf(tb, o.Claim, written)))
}

// stopOf is the stop receipt of the executor's current session.
func stopOf(tb testing.TB, c *hostclaim.Claim) stopevidence.Receipt {
	tb.Helper()
	return stoptest.Receipt(tb, stopRecord(c))
}

func stopRecord(c *hostclaim.Claim) stopevidence.Record {
	m := executor(c)
	return stopevidence.Record{Host: c.Host, Op: c.Op.ID, Box: m.Box, Enrollment: m.Enrollment,
		Incarnation: c.Holder.Incarnation, Stamp: c.Holder.Stamp, Session: c.Holder.Session}
}

// releaseOf is the executor's release of its current session.
func releaseOf(tb testing.TB, c *hostclaim.Claim, final hostclaim.Position) hostclaim.Release {
	tb.Helper()
	m, ref := executor(c), stopOf(tb, c).Ref()
	return hostclaim.Release{Box: m.Box, Enrollment: m.Enrollment, Session: c.Holder.Session, Generation: c.Holder.Generation,
		Final: final, Receipt: ref.Key, ReceiptSHA256: ref.SHA256}
}

func executor(c *hostclaim.Claim) hostclaim.Member {
	if t := c.Op.Target(); t.Box == c.Op.Exec {
		return t
	}
	return c.Op.Intent.Source
}

// installOf is the local install of the current target.
func installOf(c *hostclaim.Claim) hostclaim.LocalInstall {
	l := receiptOf(c)
	l.Box, l.Enrollment = c.Op.Target().Box, c.Op.Target().Enrollment
	return l
}

// openingOf is the first admission of the current target.
func openingOf(c *hostclaim.Claim, coverage hostclaim.Coverage) hostclaim.Admission {
	a := opening(c)
	a.Box, a.NewGeneration, a.Baseline, a.Coverage = c.Op.Target().Box, c.Op.Journal.Prepared, c.Op.Journal.Pin.Position, coverage
	return a
}

// readmission is a further admission of the source, from where it last was.
func readmission(c *hostclaim.Claim, generation string) hostclaim.Admission {
	return hostclaim.Admission{Op: c.Op.ID, Phase: c.Op.Phase, Session: c.Holder.Session, Generation: c.Holder.Generation,
		Box: source.Box, NewGeneration: generation, Baseline: pinned}
}

// lostAt proves that a box of these tests was gone at a time.
func lostAt(tb testing.TB, m hostclaim.Member, at time.Time) hostclaim.Gone {
	tb.Helper()
	return gone(fencetest.Evidence(tb, m.Box, m.Enrollment, testRegion, at))
}

func ack(m hostclaim.Member) hostclaim.Transition {
	return hostclaim.Acknowledge("op-2", m.Box, m.Enrollment)
}

// stored puts a claim on a store as it is, and observes it there.
func stored(tb testing.TB, o hostclaim.Observed) (*memstore.Store, hostclaim.Observed) {
	tb.Helper()
	body, err := record.Encode(o.Claim)
	require.NoError(tb, err)
	s := storeWith(tb, string(body))
	found, err := hostclaim.Read(ctx, s, testHost)
	require.NoError(tb, err)
	return s, found
}
