package hostclaim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

// TestAReleaseWhoseReceiptIsOfNoUseIsJournaledAgain: nobody can go on with it,
// so it is overdue like one that never came, and its box cites another receipt
// of the same end.
func TestAReleaseWhoseReceiptIsOfNoUseIsJournaledAgain(t *testing.T) {
	for name, row := range map[string]struct {
		o     hostclaim.Observed
		final hostclaim.Position
		due   time.Time
		leave func(*hostclaim.Claim) hostclaim.Transition
	}{
		"a source": {drainUpTo(t, "releasing"), pinned, phaseAt, func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.PinAfterRelease("op-2", stopOf(t, c), hostclaim.Member{}, decidedAt)
		}},
		"a failed target": {failedProbe(t, "opened"), written, probeFailedAt, func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.PinAfterRelease("op-2", stopOf(t, c), spare, decidedAt)
		}},
		"a deleted host's box": {beingDeleted(t), pinned, phaseAt, func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.ParkAfterRelease("op-2", stopOf(t, c))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			useless := releaseOf(t, row.o.Claim, row.final)
			useless.ReceiptSHA256 = "00"
			o := then(t, row.o, hostclaim.JournalRelease("op-2", useless))
			good := hostclaim.JournalRelease("op-2", releaseOf(t, o.Claim, row.final))
			refused(t, o, good, hostclaim.ErrWrongState, "another release is journaled")
			refused(t, o, row.leave(o.Claim), hostclaim.ErrWrongState, "the release cites")

			due := row.due.Add(hostclaim.ReleaseDeadline)
			refused(t, o, hostclaim.MarkStuck("op-2", hostclaim.ReleaseOverdue, due.Add(-time.Second)), hostclaim.ErrWrongState, "applies from")
			o = then(t, o, hostclaim.MarkStuck("op-2", hostclaim.ReleaseOverdue, due))
			require.Nil(t, o.Claim.Op.Journal.Release)
			require.Equal(t, row.final, o.Claim.Holder.Ended.Final, "the end stays")

			other := row.final
			other.TXID++
			refused(t, o, hostclaim.JournalRelease("op-2", releaseOf(t, o.Claim, other)), hostclaim.ErrWrongState, "ended at")
			o = then(t, o, good)
			require.Nil(t, o.Claim.Op.Journal.Stuck)
			then(t, o, row.leave(o.Claim))
		})
	}
}

// TestASourceWhoseReceiptIsOfNoUseDies: the failover needs no receipt, and the
// release vouches.
func TestASourceWhoseReceiptIsOfNoUseDies(t *testing.T) {
	o := drainUpTo(t, "releasing")
	useless := releaseOf(t, o.Claim, pinned)
	useless.ReceiptSHA256 = "00"
	o = then(t, o, hostclaim.JournalRelease("op-2", useless), fenceSource(t))
	require.Equal(t, hostclaim.Pinning, o.Claim.Op.Phase)
	require.Empty(t, carriedOn(t, o).PendingLosses())

	// Dropped as overdue, the end vouches instead.
	o = then(t, drainUpTo(t, "released"), hostclaim.MarkStuck("op-2", hostclaim.ReleaseOverdue, phaseAt.Add(hostclaim.ReleaseDeadline)), fenceSource(t))
	require.Nil(t, o.Claim.Op.Journal.Stuck)
	require.Nil(t, o.Claim.Op.Journal.Release)
	served := carriedOn(t, o)
	require.Empty(t, served.PendingLosses())
	require.Equal(t, hostclaim.CleanReturn, served.Holder.Admissions[1].Coverage)
}
