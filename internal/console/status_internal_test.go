package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

// TestEverySentenceOfAFailover walks a host through its life by real
// transitions and says at each step what an operator reads.
func TestEverySentenceOfAFailover(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
	now := start
	box := func(ref string) Box { return Box{Ref: ref, State: roster.Active} }
	o := hostclaim.Observed{Host: "notes.example"}
	step := func(ts ...hostclaim.Transition) {
		t.Helper()
		for _, transition := range ts {
			c, err := o.Next("w", transition)
			require.NoError(t, err)
			o.Claim = c
		}
	}
	says := func(want string) {
		t.Helper()
		require.Equal(t, want, describe(o.Claim, known{box: box}, now).Sentence())
	}
	source, target := hostclaim.Member{Box: "box-1", Enrollment: "e1"}, hostclaim.Member{Box: "box-2", Enrollment: "e2"}
	host := hostclaim.NewHost{Incarnation: "i1", Account: "demo", App: "notes", RecordKey: "apps/demo/notes/instances/notes.example.json", RecordSHA256: "r1", Region: "ie"}

	step(hostclaim.BeginCreate(host, "op-0", "console", start, source), hostclaim.CancelCreate("op-0", "box-1 did not take it within 10m0s"))
	says("not there: its last create was cancelled, box-1 did not take it within 10m0s; create it with: console host create notes.example")
	host.Incarnation = "i2"
	step(hostclaim.BeginCreate(host, "op-1", "console", start, source))
	now = start.Add(90 * time.Second)
	says("being created on box-1 (begun 1m30s ago); waiting for box-1 to take it")
	step(hostclaim.CompleteCreate("op-1", "box-1", "e1"))
	says("created on box-1; waiting for box-1 to start its app for the first time")
	step(hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Box: "box-1", NewGeneration: "g1", KeepStamp: true}))
	says("starting on box-1; waiting for its app to answer; if it takes long, look at its log on box-1")
	step(hostclaim.PublishGeneration("box-1", o.Claim.Holder.Session))
	says("serving on box-1")

	evidence := fencetest.Evidence(t, "box-1", "e1", "ie", now)
	step(hostclaim.StartFailover(hostclaim.Relocation{Op: "op-2", By: "w", Now: now, Source: source, Target: target, PinDelay: 30 * time.Second}, hostclaim.Gone{Evidence: evidence}))
	says("failing over from box-1 to box-2 (starting, begun 0s ago); waiting for box-2 to say that it is ready")
	step(hostclaim.Acknowledge("op-2", "box-2", "e2"))
	says("failing over from box-1 to box-2 (starting, begun 0s ago); waiting for a worker to go on")
	step(hostclaim.PinFailover("op-2", now))
	says("failing over from box-1 to box-2 (pinning for 0s, begun 0s ago); waiting for late writes to arrive, until 2026-03-04 05:08:00Z")
	now = now.Add(31 * time.Second)
	says("failing over from box-1 to box-2 (pinning for 31s, begun 31s ago); waiting for a worker to select the newest data")
	pin := hostclaim.Pin{Key: hostclaim.PinKey("notes.example", "op-2", o.Claim.Gen), SHA256: "d", ListedAt: now, FilesSHA256: "f",
		Position: hostclaim.Position{Generation: "g1", TXID: 7, FilesGeneration: "g1", FilesSeq: 3}}
	step(hostclaim.Then(hostclaim.JournalPin("op-2", pin), hostclaim.ToInstalling("op-2", "p1", now)))
	says("failing over from box-1 to box-2 (installing for 0s, begun 31s ago); waiting for box-2 to build a copy of the data")
	step(hostclaim.ToInstalled("op-2", hostclaim.PreparedAuthority{Generation: "p1", InstallManifest: o.Claim.Holder.Location + "/db/p1/install.json", SHA256: "m",
		SnapshotTXID: 7, SourceFilesSeq: 3, FilesManifestSHA256: "n"}, now))
	says("failing over from box-1 to box-2 (installed for 0s, begun 31s ago); waiting for box-2 to put the files in place")
	stamp := o.Claim.Op.Journal.InstallStamp
	step(hostclaim.RecordLocalInstall("op-2", hostclaim.LocalInstall{Box: "box-2", Enrollment: "e2", InstallStamp: stamp,
		FilesManifest: o.Claim.Holder.Location + "/files/p1/manifest.json", SHA256: "n"}), hostclaim.ToProbing("op-2", now), hostclaim.BeginProbeAttempt("op-2", 1))
	says("failing over from box-1 to box-2 (probing for 0s, begun 31s ago); waiting for the app on box-2 to answer, attempt 1 of 3")
	step(hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-2", Phase: hostclaim.Probing, Session: o.Claim.Holder.Session, Generation: "g1",
		Box: "box-2", NewGeneration: "p1", KeepStamp: true, Baseline: pin.Position}))
	session := o.Claim.Holder.Session
	step(hostclaim.Then(hostclaim.PublishGeneration("box-2", session), hostclaim.RecordProbe("op-2", "box-2", session)))
	says("failing over from box-1 to box-2 (probing for 0s, begun 31s ago); waiting for a worker to go on")
	step(hostclaim.CompleteRelocation("op-2"))
	says("serving on box-2")
	require.Equal(t, []string{"session 4 on box-1: whatever it wrote after transaction 7 of g1"}, losses(o.Claim))
	step(hostclaim.EndSession("box-2", session, hostclaim.Position{Generation: "p1", TXID: 9, FilesGeneration: "p1", FilesSeq: 0}))
	says("stopped cleanly on box-2; waiting for box-2 to start it again")
}

// TestEverySentenceOfADrain walks a host off a live box.
func TestEverySentenceOfADrain(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
	o := hostclaim.Observed{Host: "notes.example"}
	step := func(ts ...hostclaim.Transition) {
		t.Helper()
		for _, transition := range ts {
			c, err := o.Next("w", transition)
			require.NoError(t, err)
			o.Claim = c
		}
	}
	source, target := hostclaim.Member{Box: "box-1", Enrollment: "e1"}, hostclaim.Member{Box: "box-2", Enrollment: "e2"}
	draining := false
	says := func(want string) {
		t.Helper()
		k := known{box: func(ref string) Box {
			return Box{Ref: ref, State: roster.Active, Draining: draining && ref == source.Box}
		}}
		require.Equal(t, want, describe(o.Claim, k, now).Sentence())
	}
	step(hostclaim.BeginCreate(hostclaim.NewHost{Incarnation: "i1", Account: "demo", App: "notes", RecordKey: "apps/r.json", RecordSHA256: "r1", Region: "ie"},
		"op-1", "console", now, source), hostclaim.CompleteCreate("op-1", "box-1", "e1"),
		hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Box: "box-1", NewGeneration: "g1", KeepStamp: true}))
	step(hostclaim.PublishGeneration("box-1", o.Claim.Holder.Session))
	draining = true
	says("serving on box-1, which drains; waiting for a worker to move it")
	step(hostclaim.StartRelocation(hostclaim.Relocation{Op: "op-2", By: "w", Now: now, Source: source, Target: target}, hostclaim.Drain))
	says("moving from box-1 to box-2 (starting, begun 0s ago); waiting for box-1 and box-2 to say that they are ready")
	step(hostclaim.Acknowledge("op-2", "box-1", "e1"))
	says("moving from box-1 to box-2 (starting, begun 0s ago); waiting for box-2 to say that it is ready")
	step(hostclaim.Acknowledge("op-2", "box-2", "e2"))
	now = now.Add(5 * time.Second)
	says("moving from box-1 to box-2 (starting, begun 5s ago); waiting for box-2 to fetch a copy, while box-1 serves on")
	step(hostclaim.ToReleasing("op-2", now))
	now = now.Add(time.Second)
	says("moving from box-1 to box-2 (releasing for 1s, begun 6s ago); waiting for box-1 to stop the app and give it up")

	stuck := now.Add(hostclaim.ReleaseDeadline)
	released := o
	step(hostclaim.MarkStuck("op-2", hostclaim.ReleaseOverdue, stuck))
	now = stuck.Add(time.Minute)
	says("moving from box-1 to box-2 (releasing for 11m1s, begun 11m6s ago); waiting for an operator: it is stuck for 1m, release overdue; " +
		"look at the agents on box-1 and box-2")
	o, now = released, stuck.Add(-hostclaim.ReleaseDeadline)

	holder := o.Claim.Holder
	receipt := stoptest.Receipt(t, stopevidence.Record{Host: o.Host, Op: "op-2", Box: "box-1", Enrollment: "e1",
		Incarnation: "i1", Stamp: holder.Stamp, Session: holder.Session})
	final := hostclaim.Position{Generation: "g1", TXID: 7, FilesGeneration: "g1", FilesSeq: 3}
	step(hostclaim.JournalRelease("op-2", hostclaim.Release{Box: "box-1", Enrollment: "e1", Session: holder.Session, Final: final,
		Receipt: receipt.Ref().Key, ReceiptSHA256: receipt.Ref().SHA256}))
	says("moving from box-1 to box-2 (releasing for 1s, begun 6s ago); waiting for a worker to go on")
	step(hostclaim.PinAfterRelease("op-2", receipt, hostclaim.Member{}, now))
	says("moving from box-1 to box-2 (pinning for 0s, begun 6s ago); waiting for a worker to select the newest data")
}

func TestTheStateOfTheBoxChangesTheSentence(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
	creating := &hostclaim.Claim{Host: "a.example", Op: hostclaim.Op{Kind: hostclaim.Creating, StartedAt: now,
		Intent: hostclaim.Intent{Selected: hostclaim.Member{Box: "box-1"}}}}
	serving := &hostclaim.Claim{Host: "a.example", Holder: &hostclaim.Holder{Region: "ie"}, Op: hostclaim.Op{Kind: hostclaim.Serving, Exec: "box-1"}}
	moving := &hostclaim.Claim{Host: "a.example", Holder: &hostclaim.Holder{Region: "ie"}, Op: hostclaim.Op{Kind: hostclaim.Relocating,
		Phase: hostclaim.Installing, StartedAt: now, Intent: hostclaim.Intent{Reason: hostclaim.Failover,
			Source: hostclaim.Member{Box: "box-0"}, Target: hostclaim.Member{Box: "box-1"}}}}
	gone := Box{Ref: "box-1", State: roster.Active, TerminatedAt: now, Status: "gone"}
	silent := Box{Ref: "box-1", State: roster.Active, silent: true, Status: "silent: last heard of at T", Instance: "i-1"}
	for _, row := range []struct {
		name  string
		claim *hostclaim.Claim
		box   Box
		after time.Duration
		want  string
	}{
		{"creating, gone", creating, gone, 0, "box-1 is gone: create it again after 2026-03-04 05:16:00Z"},
		{"creating, silent", creating, silent, 0, "look at the agent on box-1, silent: last heard of at T"},
		{"creating, overdue", creating, Box{State: roster.Active}, CreateDeadline + 1, "it is overdue: create it again, which cancels this one"},
		{"serving, gone", serving, gone, 0, "down: the machine of box-1 was terminated at 2026-03-04 05:06:00Z"},
		{"serving, silent", serving, silent, 0, "a silent machine may still write; look at box-1 (i-1)"},
		{"serving, declared lost", serving, Box{State: roster.Quarantined, DeclaredAt: now}, 0,
			"on box-1, which was declared lost at 2026-03-04 05:06:00Z; waiting for a worker of region ie to start the failover"},
		{"serving, quarantined", serving, Box{State: roster.Quarantined}, 0,
			"takes no part and is not declared lost yet; waiting for that declaration; run console box declare-lost box-1 again"},
		{"moving, target gone", moving, gone, 0, "look at box-1, gone"},
		{"moving, target silent", moving, silent, 0, "look at box-1, silent"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := describe(row.claim, known{box: func(string) Box { return row.box }}, now.Add(row.after)).Sentence()
			require.Contains(t, got, row.want)
		})
	}
}
