package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/termfence"
)

func TestHostsAreSpreadWhereThatIsAskedForAndNotElse(t *testing.T) {
	for _, spread := range []int{0, 2} {
		play(t, 12, []string{"box-1", "box-2", "box-3"}, func(sc *scene) {
			sc.work("worker", func(w *Worker) { w.set.Rebalance = spread })
			time.Sleep(10 * time.Minute)
			on := map[string]int{}
			for n := range 12 {
				o, err := hostclaim.Read(t.Context(), sc.store, hostNamed(n))
				require.NoError(t, err)
				require.Equal(t, hostclaim.Serving, o.Claim.Op.Kind)
				on[o.Claim.Op.Exec]++
				if spread > 0 && o.Claim.Op.Exec != "box-1" {
					require.Equal(t, hostclaim.Completed, o.Claim.Op.Outcome)
				}
			}
			if spread == 0 {
				require.Equal(t, map[string]int{"box-1": 12}, on)
				return
			}
			for _, box := range []string{"box-1", "box-2", "box-3"} {
				require.InDelta(t, 4, on[box], 1, "%v", on)
			}
		})
	}
}

// TestNothingIsSpreadWhileAnythingElseMoves, or waits to.
func TestNothingIsSpreadWhileAnythingElseMoves(t *testing.T) {
	w, _, s := region(t)
	w.set.Rebalance = 1
	crowd(t, s, "box-1", 3)
	for n := range 3 {
		w.read(t.Context(), hostNamed(n))
	}
	for _, ref := range []string{"box-1", "box-2"} {
		publish(t, w, ref)
	}
	w.unplaced.put(host, "no box")
	sweep(t, w)
	w.rebalance(t.Context())
	require.Empty(t, w.moves.to)
}

// TestDisksThatAreDeclaredDestroyedOweNothing: the worker asks once a sweep, and
// discharges the claims.
func TestDisksThatAreDeclaredDestroyedOweNothing(t *testing.T) {
	play(t, 3, []string{"box-1", "box-2", "box-3"}, func(sc *scene) {
		w, asks, _ := sc.work("worker")
		time.Sleep(10 * time.Second)
		sc.end("box-1")
		sc.away(2*time.Minute, "box-1")
		time.Sleep(time.Minute)
		require.Len(t, w.claims.owing("box-1"), 3)
		asks.reset()
		time.Sleep(5 * time.Minute)
		require.LessOrEqual(t, asks.of("GET control/destructions"), 11, "one a sweep")
		_, err := termfence.DeclareDestroyed(t.Context(), sc.store, w.fences, termfence.Destruction{Box: "box-1", Enrollment: "enr-box-1",
			Who: "Ana", Why: "it was sold", How: "shredded", Confirmation: "box-1", DeclaredAt: time.Now().UTC()})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Empty(t, w.claims.owing("box-1"))
		for n := range 3 {
			o, err := hostclaim.Read(t.Context(), sc.store, hostNamed(n))
			require.NoError(t, err)
			require.False(t, o.Claim.Owes("box-1", hostclaim.ParkLocal))
		}
	})
}
