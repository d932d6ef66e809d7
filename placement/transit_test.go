package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNamesThatAreNoLongerInTransitAreForgotten(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	with := []Published{{Edges: Edges{Box: "box-1", Hosts: map[string]Host{"a": {Role: RoleHome}}}}}
	m := Fold(nil, Fold(with, nil, now), now)
	require.Len(t, m.transit, 1)
	require.Len(t, Fold(nil, m, now.Add(TransitFor)).transit, 1)
	require.Empty(t, Fold(nil, m, now.Add(TransitFor+1)).transit)
	require.Empty(t, Fold(with, Fold(with, nil, now), now).transit)
}
