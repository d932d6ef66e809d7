package membership_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/membership"
)

func TestGolden(t *testing.T) {
	recordtest.Golden(t, "own-region", must(t, own(t)))
	recordtest.Golden(t, "other-region", must(t, distant(t)))
}

func FuzzRecord(f *testing.F) {
	recordtest.Fuzz(f, must(f, own(f)), must(f, distant(f)))
}

func TestKeysOfABoxSortByTime(t *testing.T) {
	require.Equal(t, "control/box-memberships/new/2026-01-02T03-04-05.000000006Z.json", membership.Key("new", now))
	require.Less(t, membership.Key("new", now), membership.Key("new", now.Add(1)))
	require.Less(t, membership.Key("new", now.Truncate(1e9)), membership.Key("new", now))
}
