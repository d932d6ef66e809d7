package hostclaim_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

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

func TestAnInstallDeadlineIsBounded(t *testing.T) {
	week := 15*time.Minute + 10_000*time.Minute
	for size, want := range map[int64]time.Duration{0: 15 * time.Minute, 999_999_999: 15 * time.Minute, 1e9: 16 * time.Minute,
		10_000e9: week, 10_001e9: week, 3e17: week, math.MaxInt64: week} {
		require.Equal(t, want, hostclaim.InstallDeadline(size), size)
	}
}
