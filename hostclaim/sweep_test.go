package hostclaim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

// deadOne is a chore over one generation of a region, or over all that the claim
// does not name.
func deadOne(id, region, generation string) hostclaim.Obligation {
	return hostclaim.Obligation{ID: id, Op: "op-1", Kind: hostclaim.ParkGeneration, Incarnation: "inc-1", Region: region,
		Generation: generation, Owner: "region:" + region}
}

func replicaOf(id, incarnation string) hostclaim.Obligation {
	return hostclaim.Obligation{ID: id, Op: "op-1", Kind: hostclaim.ParkReplica, Incarnation: incarnation, Region: testRegion,
		Owner: "region:" + testRegion}
}

func localOf(id, box string) hostclaim.Obligation {
	return hostclaim.Obligation{ID: id, Op: "op-1", Kind: hostclaim.ParkLocal, Incarnation: "inc-1", Box: box, Region: testRegion,
		Owner: "box:" + box}
}

func boundOf(o hostclaim.Obligation) hostclaim.Obligation {
	p := scopeOf(o)
	o.Park = &p
	return o
}

// owing is a served host with these chores open.
func owing(tb testing.TB, chores ...hostclaim.Obligation) hostclaim.Observed {
	o := upTo(tb, "serving")
	o.Claim.Obligations = chores
	require.NoError(tb, o.Claim.Validate())
	return o
}

func TestABoundSweepHoldsUpNothingButAnotherOfItsRegion(t *testing.T) {
	bound := boundOf(deadOne("first", testRegion, ""))
	second := deadOne("second", testRegion, "")
	o := owing(t, bound, second)
	refused(t, o, hostclaim.BindScope("op-1", "second", scopeOf(second)), hostclaim.ErrWrongState, "comes first")
	for _, other := range []hostclaim.Obligation{deadOne("named", testRegion, "h-1"), deadOne("abroad", "de", ""), replicaOf("replica", "inc-0")} {
		o := owing(t, bound, other)
		then(t, o, hostclaim.BindScope("op-1", other.ID, scopeOf(other)))
	}
}

func TestASweepIsHeldUpByNothingButABoundOneOfItsRegion(t *testing.T) {
	sweep := deadOne("sweep", testRegion, "")
	for _, other := range []hostclaim.Obligation{boundOf(deadOne("named", testRegion, "h-1")), boundOf(deadOne("abroad", "de", "")),
		boundOf(replicaOf("replica", "inc-0")), deadOne("unbound", testRegion, "")} {
		o := owing(t, other, sweep)
		then(t, o, hostclaim.BindScope("op-1", "sweep", scopeOf(sweep)))
	}
}

// TestAnUnboundSweepTakesInWhatDiesNextWhereverItStands: also behind chores of
// another kind or region.
func TestAnUnboundSweepTakesInWhatDiesNextWhereverItStands(t *testing.T) {
	chores := []hostclaim.Obligation{localOf("local", spare.Box), deadOne("abroad", "de", ""), deadOne("sweep", testRegion, "")}
	require.Equal(t, chores, republish(t, owing(t, chores...), "h-0").Claim.Obligations)
}

func TestASweepTakesThePlaceOfNothingButUnboundGenerationsOfItsRegion(t *testing.T) {
	kept := []hostclaim.Obligation{localOf("local", spare.Box), replicaOf("replica", "inc-0"), deadOne("abroad", "de", "h-7"),
		boundOf(deadOne("bound", testRegion, "h-8"))}
	chores := kept
	for _, generation := range numbered("d", 31) {
		chores = append(chores, deadOne(generation, testRegion, generation))
	}
	c := republish(t, owing(t, chores...), "h-0").Claim
	require.Equal(t, kept, c.Obligations[:4])
	require.Len(t, c.Obligations, 5)
	require.Equal(t, []string{hostclaim.ParkGeneration, testRegion, ""}, []string{c.Obligations[4].Kind, c.Obligations[4].Region, c.Obligations[4].Generation})
}

// TestAGenerationThatWasPutAwayIsNotOwedAgain: publishing looks back to the newest
// published generation and no further.
func TestAGenerationThatWasPutAwayIsNotOwedAgain(t *testing.T) {
	o := republish(t, upTo(t, "serving"), "h-0")
	require.Equal(t, []string{"g-1"}, deadGenerations(o.Claim))
	o = republish(t, complete(t, o), "h-1")
	require.Equal(t, []string{"h-0"}, deadGenerations(o.Claim))
}

// TestADestroyedBoxHoldsNothingThoughItOwedNothingYet: its chore would be queued
// as the operation ends.
func TestADestroyedBoxHoldsNothingThoughItOwedNothingYet(t *testing.T) {
	o := then(t, drainUpTo(t, "installing"), hostclaim.ReplaceTarget("op-2", lostAt(t, target, phaseAt), spare, "p-2", phaseAt))
	require.Contains(t, o.Claim.Touched, target.Box)
	require.False(t, o.Claim.Owes(target.Box, hostclaim.ParkLocal))
	require.NotContains(t, then(t, o, discharge(t, target)).Claim.Touched, target.Box)

	o.Claim.Touched = []string{source.Box, spare.Box}
	refused(t, o, discharge(t, target), hostclaim.ErrAlreadyRecorded, "")
	o.Claim.Obligations = []hostclaim.Obligation{localOf("local", target.Box)}
	require.Empty(t, then(t, o, discharge(t, target)).Claim.Obligations)
}
