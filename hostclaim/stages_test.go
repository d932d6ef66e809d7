package hostclaim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
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
		{"starting", always(hostclaim.StartFailover(relocation, e))},
		{"acknowledged", always(hostclaim.Acknowledge("op-2", target.Box, target.Enrollment))},
		{"pinning", always(hostclaim.PinFailover("op-2"))},
		{"pinned", func(c *hostclaim.Claim) hostclaim.Transition { return hostclaim.JournalPin("op-2", pinOf(c)) }},
		{"installing", always(hostclaim.ToInstalling("op-2", "p-1"))},
		{"installed", always(hostclaim.ToInstalled("op-2", built))},
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
