package hostclaim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

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
