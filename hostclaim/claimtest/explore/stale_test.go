package explore

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// TestOnlyTheNewestObservationIsWrittenOn is why the search tries each step from
// the newest claim only: once one step was written, no step from the observation
// before it is, whoever makes it.
func TestOnlyTheNewestObservationIsWrittenOn(t *testing.T) {
	x := newExplorer(t, Bounds{Boxes: 3, Faults: 1})
	conflicts := 0
	for s, n := x.root, 0; n < 40; n++ {
		store := memstore.New()
		if s.Claim != nil {
			body, err := record.Encode(s.Claim)
			require.NoError(t, err)
			_, err = store.Put(t.Context(), hostclaim.Key(s.World.Host), body, objstore.IfAbsent())
			require.NoError(t, err)
		}
		observed, err := hostclaim.Read(t.Context(), store, s.World.Host)
		require.NoError(t, err)
		written := false
		for _, m := range moves(s, x.forgeries) {
			if m.step == nil {
				continue
			}
			_, err := hostclaim.Update(t.Context(), store, observed, m.step.Transition)
			require.False(t, written && err == nil, "%s: both %s and another step were written", s, m)
			written = written || err == nil
			if errors.Is(err, hostclaim.ErrConflict) {
				conflicts++
			}
		}
		list := x.successors(s)
		s = list[n%len(list)].state
	}
	require.Greater(t, conflicts, 40)
}
