package hostclaim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

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

func deadGenerations(c *hostclaim.Claim) (dead []string) {
	for _, o := range c.Obligations {
		if o.Kind == hostclaim.ParkGeneration {
			dead = append(dead, o.Generation)
		}
	}
	return dead
}

// TestNothingIsPublishedAfterItsSessionEnded: nobody runs it, and what it was
// restored from must not be parked for it.
func TestNothingIsPublishedAfterItsSessionEnded(t *testing.T) {
	o := upTo(t, "serving")
	o = then(t, o, hostclaim.AdmitWriter(readmission(o.Claim, "g-2")))
	session := o.Claim.Holder.Session
	ended := then(t, o, hostclaim.EndSession(source.Box, session, pinned))
	refused(t, ended, hostclaim.PublishGeneration(source.Box, session), hostclaim.ErrWrongState, "has ended")
	both := then(t, o, hostclaim.PublishGeneration(source.Box, session))
	both = then(t, both, hostclaim.EndSession(source.Box, session, hostclaim.Position{Generation: "g-2", TXID: 1, FilesGeneration: "g-2"}))
	refused(t, both, hostclaim.PublishGeneration(source.Box, session), hostclaim.ErrAlreadyRecorded, "")
}
