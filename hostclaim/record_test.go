package hostclaim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/record/recordtest"
)

func TestGoldenClaimOfEachStage(t *testing.T) {
	for _, s := range stages(sourceGone(t)) {
		t.Run(s.name, func(t *testing.T) { recordtest.Golden(t, s.name, *upTo(t, s.name).Claim) })
	}
}

// TestGoldenClaimOfEachOtherState is about what a failover without a fault never
// passes through.
func TestGoldenClaimOfEachOtherState(t *testing.T) {
	stuck := then(t, upTo(t, "installing"), hostclaim.MarkStuck("op-2", hostclaim.InstallOverdue, epoch.Add(hostclaim.InstallDeadline(0))))
	deleted := deleting(t)
	release, receipt := stopped(t, deleted.Claim, source, finalOfSource)
	deleted = then(t, deleted, hostclaim.JournalRelease("op-9", release))
	parking := then(t, deleted, hostclaim.ParkAfterRelease("op-9", receipt))
	bound := parking.Claim.Obligations[1]
	free := then(t, complete(t, parking), hostclaim.FreeHost("op-9"))
	for name, o := range map[string]hostclaim.Observed{
		"drain-starting":         drainUpTo(t, "starting"),
		"drain-releasing":        drainUpTo(t, "releasing"),
		"drain-released":         drainUpTo(t, "released"),
		"drain-pinning":          drainUpTo(t, "pinning"),
		"drain-opened":           drainUpTo(t, "opened"),
		"drain-cancelled":        then(t, drainUpTo(t, "starting"), hostclaim.CancelDrain("op-2", epoch.Add(time.Hour))),
		"probe-failed":           failedProbe(t, "opened"),
		"probe-failed-released":  targetReleased(t),
		"replaced":               then(t, upTo(t, "received"), hostclaim.ReplaceTarget("op-2", gone(goneTarget(t)), spare, "", epoch)),
		"stuck":                  stuck,
		"stuck-fenced":           then(t, upTo(t, "installed"), hostclaim.FenceTargetWithoutSpare("op-2", gone(goneTarget(t)), epoch.Add(hostclaim.SpareDeadline))),
		"create-cancelled":       then(t, upTo(t, "creating"), hostclaim.CancelCreate("op-1", "late")),
		"deleting":               deleted,
		"parking":                then(t, parking, hostclaim.BindScope("op-9", bound.ID, scopeOf(bound))),
		"free":                   free,
		"parking-without-holder": then(t, free, hostclaim.BeginSweep("op-11", "worker", []hostclaim.Residue{{Incarnation: "inc-1", Region: "ie"}}, epoch)),
	} {
		t.Run(name, func(t *testing.T) { recordtest.Golden(t, name, *o.Claim) })
	}
}

// brokenRule is a change of a valid claim, as it is at a stage, that Validate
// refuses.
type brokenRule struct {
	stage, name, want string
	breakIt           func(c *hostclaim.Claim)
}

var brokenHolders = []brokenRule{
	{"serving", "version", "v is 2", func(c *hostclaim.Claim) { c.V = 2 }},
	{"serving", "host", "host", func(c *hostclaim.Claim) { c.Host = "Notes.Example" }},
	{"serving", "gen 0", "gen is 0", func(c *hostclaim.Claim) { c.Gen = 0 }},
	{"serving", "no write nonce", "write is", func(c *hostclaim.Claim) { c.Write = "" }},
	{"serving", "too long a name of who began", "op.by is 257 bytes", func(c *hostclaim.Claim) { c.Op.By = strings.Repeat("a", 257) }},
	{"serving", "no holder", "without a holder", func(c *hostclaim.Claim) { c.Holder = nil }},
	{"serving", "free with a holder", "a free host has holder", func(c *hostclaim.Claim) { c.Op.Kind = hostclaim.Free }},
	{"serving", "incarnation", "holder.incarnation", func(c *hostclaim.Claim) { c.Holder.Incarnation = "a/b" }},
	{"serving", "region", "holder.region", func(c *hostclaim.Claim) { c.Holder.Region = "" }},
	{"serving", "location", "holder.location", func(c *hostclaim.Claim) { c.Holder.Location = "instances/other/inc-1" }},
	{"serving", "record key", "holder.record_key", func(c *hostclaim.Claim) { c.Holder.RecordKey = "control/x" }},
	{"serving", "retired incarnation", "is retired", func(c *hostclaim.Claim) { c.RetiredIncarnations = []string{"inc-1"} }},
	{"serving", "stamp over gen", "over gen", func(c *hostclaim.Claim) { c.Holder.Stamp = 99 }},
	{"serving", "session over stamp", "over stamp", func(c *hostclaim.Claim) { c.Holder.Session = 3 }},
	{"created", "writer without session", "a writer is named", func(c *hostclaim.Claim) { c.Holder.Generation = "g" }},
	{"serving", "no admission", "without an admission", func(c *hostclaim.Claim) { c.Holder.Admissions = nil }},
	{"serving", "other writer", "not the newest admission", func(c *hostclaim.Claim) { c.Holder.WriterBox = "box-3" }},
	{"serving", "other end", "holder.ended", func(c *hostclaim.Claim) { c.Holder.Ended = &hostclaim.SessionEnd{Box: "box-1", Session: 1} }},
	{"opened", "admissions out of order", "does not come after", func(c *hostclaim.Claim) { c.Holder.Admissions[0].Session = 99 }},
	{"opened", "one generation twice", "admitted twice", func(c *hostclaim.Claim) { c.Holder.Admissions[0].Generation = "p-1" }},
	{"serving", "mode", "has mode", func(c *hostclaim.Claim) { c.Holder.Admissions[0].Mode = "warm" }},
	{"serving", "coverage", "has coverage", func(c *hostclaim.Claim) { c.Holder.Admissions[0].Coverage = "hope" }},
	{"serving", "admission box", "box", func(c *hostclaim.Claim) { c.Holder.Admissions[0].Box = "a.b" }},
	{"serving", "kind", "op.kind", func(c *hostclaim.Claim) { c.Op.Kind = "resting" }},
	{"serving", "phase", "op.phase", func(c *hostclaim.Claim) { c.Op.Phase = hostclaim.Probing }},
	{"serving", "executor none", "participants", func(c *hostclaim.Claim) { c.Op.Exec, c.Op.ExecEnrollment = hostclaim.None, "" }},
	{"serving", "a box without its enrollment", "op.exec is \"box-1\" as", func(c *hostclaim.Claim) { c.Op.ExecEnrollment = "" }},
	{"serving", "none with an enrollment", "op.exec is \"none\" as", func(c *hostclaim.Claim) { c.Op.Exec = hostclaim.None }},
	{"serving", "an enrollment that is none", "op.exec.enrollment", func(c *hostclaim.Claim) { c.Op.ExecEnrollment = "a/b" }},
	{"serving", "executor not a reference", "label", func(c *hostclaim.Claim) { c.Op.Exec = "a.b"; c.Op.Participants = []string{"a.b"} }},
	{"serving", "op id", "op.id", func(c *hostclaim.Claim) { c.Op.ID = "" }},
}

var brokenOperations = []brokenRule{
	{"creating", "create with executor", "being created", func(c *hostclaim.Claim) { c.Op.Exec, c.Op.ExecEnrollment = "box-1", "enr-1" }},
	{"creating", "create without selection", "op.intent.selected", func(c *hostclaim.Claim) { c.Op.Intent.Selected.Box = "" }},
	{"starting", "unknown phase", "op.phase", func(c *hostclaim.Claim) { c.Op.Phase = "waiting" }},
	{"starting", "executor before the hand-over", "with executor", func(c *hostclaim.Claim) { c.Op.Exec, c.Op.ExecEnrollment = "box-2", "enr-2" }},
	{"installing", "no executor after it", "with executor", func(c *hostclaim.Claim) { c.Op.Exec, c.Op.ExecEnrollment = hostclaim.None, "" }},
	{"installing", "executor in another enrollment", "as \"enr-9\", want \"box-2\"", func(c *hostclaim.Claim) { c.Op.ExecEnrollment = "enr-9" }},
	{"serving", "a journal without an operation", "a journal in serving", func(c *hostclaim.Claim) { c.Op.Journal.Replacements = 1 }},
	{"serving", "an intent without an operation", "an intent in serving", func(c *hostclaim.Claim) { c.Op.Intent.Region = testRegion }},
	{"serving", "an unknown outcome", "op.outcome is \"lucky\"", func(c *hostclaim.Claim) { c.Op.Outcome = "lucky" }},
	{"starting", "an outcome before the end", "op.outcome is \"completed\" in relocating", func(c *hostclaim.Claim) { c.Op.Outcome = hostclaim.Completed }},
	{"installing", "stuck later than now", "since gen 99, at gen", func(c *hostclaim.Claim) {
		c.Op.Journal.Stuck = &hostclaim.Stuck{Reason: hostclaim.InstallOverdue, Gen: 99}
	}},
	{"installing", "stuck for no reason", "stuck is for \"\"", func(c *hostclaim.Claim) { c.Op.Journal.Stuck = &hostclaim.Stuck{Gen: 1} }},
	{"pinned", "a pin of a size below 0", "of -1 bytes", func(c *hostclaim.Claim) { c.Op.Journal.Pin.Size = -1 }},
	{"pinned", "a pin of another operation", "want one under", func(c *hostclaim.Claim) { c.Op.Journal.Pin.Key = hostclaim.PinKey(testHost, "op-9", 7) }},
	{"installed", "prepared files beyond the first", "at sequence 1, want 0", func(c *hostclaim.Claim) { c.Op.Journal.PreparedAuthority.FilesSeq = 1 }},
	{"starting", "no fence", "without the fence", func(c *hostclaim.Claim) { c.Op.Journal.Fences = nil }},
	{"starting", "source not lost", "fenced and not lost", func(c *hostclaim.Claim) { c.Lost = nil }},
	{"starting", "source is target", "source and target", func(c *hostclaim.Claim) { c.Op.Intent.Source = c.Op.Intent.Target }},
	{"starting", "reason", "op.intent.reason", func(c *hostclaim.Claim) { c.Op.Intent.Reason = "whim" }},
	{"starting", "region of the operation", "op.intent.region", func(c *hostclaim.Claim) { c.Op.Intent.Region = "de" }},
	{"starting", "pin delay", "op.intent.pin_delay", func(c *hostclaim.Claim) { c.Op.Intent.PinDelay = -1 }},
	{"starting", "early P", "in starting", func(c *hostclaim.Claim) { c.Op.Journal.Prepared = "p-9" }},
	{"installing", "no pin", "without a pin", func(c *hostclaim.Claim) { c.Op.Journal.Pin = nil }},
	{"installing", "install stamp", "want them in order", func(c *hostclaim.Claim) { c.Op.Journal.InstallStamp = 99 }},
	{"installing", "early authority", "prepared authority", func(c *hostclaim.Claim) { c.Op.Journal.PreparedAuthority = &built }},
	{"installed", "no authority", "prepared authority", func(c *hostclaim.Claim) { c.Op.Journal.PreparedAuthority = nil }},
	{"installing", "early install", "a local install in", func(c *hostclaim.Claim) { c.Op.Journal.LocalInstall = &hostclaim.LocalInstall{} }},
	{"probing", "no receipt", "without a local install", func(c *hostclaim.Claim) { c.Op.Journal.LocalInstall = nil }},
	{"installed", "early attempt", "a probe attempt in", func(c *hostclaim.Claim) { c.Op.Journal.ProbeAttempts = 1 }},
	{"probing", "too many attempts", "probe attempts", func(c *hostclaim.Claim) { c.Op.Journal.ProbeAttempts = 4 }},
	{"relocated", "chore twice", "not unique", func(c *hostclaim.Claim) { c.Obligations = append(c.Obligations, c.Obligations[0]) }},
	{"relocated", "chore kind", "has kind", func(c *hostclaim.Claim) { c.Obligations[0].Kind = "sweep" }},
	{"relocated", "chore owner", "has owner", func(c *hostclaim.Claim) { c.Obligations[0].Owner = "box:" }},
	{"relocated", "chore incarnation", "of incarnation \"../x\"", func(c *hostclaim.Claim) { c.Obligations[0].Incarnation = "../x" }},
	{"relocated", "chore region", "in region \"a/b\"", func(c *hostclaim.Claim) { c.Obligations[0].Region = "a/b" }},
	{"relocated", "lost twice", "lost names", func(c *hostclaim.Claim) { c.Lost = append(c.Lost, c.Lost...) }},
	{"relocated", "evidence without loss", "not in loss_refs", func(c *hostclaim.Claim) { c.LossRefs = nil }},
	{"relocated", "evidence that is none", "neither a fence", func(c *hostclaim.Claim) { c.EvidenceRefs[0].Fence.Key = "control/edges/x" }},
}

// TestValidateRefusesEveryBrokenRule breaks one rule at a time of a valid claim.
func TestValidateRefusesEveryBrokenRule(t *testing.T) {
	for _, row := range slices.Concat(brokenHolders, brokenOperations) {
		t.Run(row.name, func(t *testing.T) {
			o := upTo(t, row.stage)
			row.breakIt(o.Claim)
			err := o.Claim.Validate()
			require.ErrorIs(t, err, hostclaim.ErrMalformed)
			require.ErrorContains(t, err, row.want)
			b, err := record.Encode(o.Claim)
			require.NoError(t, err)
			_, err = hostclaim.Decode(b)
			require.ErrorIs(t, err, hostclaim.ErrMalformed)
		})
	}
}

func TestReadRefusesWhatIsNotThisHostsClaim(t *testing.T) {
	good, err := record.Encode(upTo(t, "serving").Claim)
	require.NoError(t, err)
	for name, body := range map[string]string{
		"unknown field": strings.Replace(string(good), `"v":1`, `"v":1,"x":1`, 1),
		"garbage":       strings.Repeat("x", 1<<20),
		"another host":  strings.ReplaceAll(string(good), testHost, "other.demo.example"),
		"empty":         "",
	} {
		t.Run(name, func(t *testing.T) {
			s := storeWith(t, body)
			_, err := hostclaim.Read(ctx, s, testHost)
			require.ErrorIs(t, err, hostclaim.ErrMalformed)
		})
	}
	_, err = hostclaim.Read(ctx, storeWith(t, string(good)), "Not A Host")
	require.ErrorContains(t, err, "Not A Host")
}
