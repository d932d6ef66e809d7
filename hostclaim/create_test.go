package hostclaim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

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
	refused(t, upTo(t, "creating"), hostclaim.CancelCreate("op-1", strings.Repeat("a", 257)), hostclaim.ErrWrongState, "257 bytes")
	o := then(t, upTo(t, "creating"), hostclaim.CancelCreate("op-1", "late"))
	require.Nil(t, o.Claim.Holder)
	refused(t, o, hostclaim.CompleteCreate("op-1", source.Box, source.Enrollment), hostclaim.ErrStaleOp, "")
	refused(t, o, hostclaim.CancelCreate("op-1", "late"), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.BeginCreate(newHost, "op-3", "console", epoch, source), hostclaim.ErrWrongState, "retired")
	again := newHost
	again.Incarnation = "inc-2"
	then(t, o, hostclaim.BeginCreate(again, "op-3", "console", epoch, source))
}

// TestACreateWhoseBoxIsGoneIsCancelledAtOnce: nobody waits for its deadline, and
// the box can never be chosen for this host again.
func TestACreateWhoseBoxIsGoneIsCancelledAtOnce(t *testing.T) {
	o := upTo(t, "creating")
	refused(t, o, hostclaim.CancelLostCreate("op-1", hostclaim.Gone{}), hostclaim.ErrWrongState, "no evidence")
	refused(t, o, hostclaim.CancelLostCreate("op-1", gone(goneTarget(t))), hostclaim.ErrWrongState, "is about box-2")
	refused(t, upTo(t, "created"), hostclaim.CancelLostCreate("op-1", gone(sourceGone(t))), hostclaim.ErrWrongState, "serving")
	o = then(t, o, hostclaim.CancelLostCreate("op-1", gone(sourceGone(t))))
	require.Nil(t, o.Claim.Holder)
	require.Equal(t, []string{source.Box}, o.Claim.Lost)
	require.Equal(t, "selected", o.Claim.EvidenceRefs[0].Role)
	refused(t, o, hostclaim.CancelLostCreate("op-1", gone(sourceGone(t))), hostclaim.ErrAlreadyRecorded, "")
	refused(t, o, hostclaim.CompleteCreate("op-1", source.Box, source.Enrollment), hostclaim.ErrStaleOp, "")
	again := newHost
	again.Incarnation = "inc-2"
	refused(t, o, hostclaim.BeginCreate(again, "op-3", "console", epoch, source), hostclaim.ErrWrongState, "is lost")
	then(t, o, hostclaim.BeginCreate(again, "op-3", "console", epoch, target))
}

func TestABeginningIsRecordedOnlyOfThisIncarnationOnThisBox(t *testing.T) {
	o := upTo(t, "creating")
	other := newHost
	other.Incarnation = "inc-2"
	refused(t, o, hostclaim.BeginCreate(other, "op-1", "console", epoch, source), hostclaim.ErrWrongState, "creating")
	refused(t, o, hostclaim.BeginCreate(newHost, "op-1", "console", epoch, spare), hostclaim.ErrWrongState, "creating")
	refused(t, upTo(t, "created"), hostclaim.CompleteCreate("op-1", source.Box, "enr-9"), hostclaim.ErrWrongState, "serving cannot be completed")
}

func TestACancelledCreateIsNotBegunAgain(t *testing.T) {
	o := then(t, upTo(t, "creating"), hostclaim.CancelCreate("op-1", "late"))
	again := newHost
	again.Incarnation = "inc-2"
	refused(t, o, hostclaim.BeginCreate(again, "op-1", "console", epoch, source), hostclaim.ErrWrongState, "create op-1 was cancelled")
}

// TestNoBoxIsNamedLikeNobody: a claim says none where no box executes.
func TestNoBoxIsNamedLikeNobody(t *testing.T) {
	nobody := hostclaim.Member{Box: hostclaim.None, Enrollment: "enr-0"}
	refused(t, hostclaim.Observed{Host: testHost}, hostclaim.BeginCreate(newHost, "op-1", "console", epoch, nobody), hostclaim.ErrMalformed, "none")
	r := relocation
	r.Target = nobody
	refused(t, upTo(t, "serving"), hostclaim.StartRelocation(r, hostclaim.Drain), hostclaim.ErrMalformed, "none")
	dead := lostAt(t, target, diedAt)
	refused(t, drainUpTo(t, "releasing"), hostclaim.ReplaceTarget("op-2", dead, nobody, "", diedAt), hostclaim.ErrWrongState, "none")
}
