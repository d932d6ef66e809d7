package resolution_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/resolution"
)

func TestGolden(t *testing.T) { recordtest.Golden(t, "resolution", decided()) }

func FuzzRecord(f *testing.F) { recordtest.Fuzz(f, decided(), resolution.Record{}) }

func TestKey(t *testing.T) {
	require.Equal(t, "control/resolutions/op-7/2.json", resolution.Key("op-7", 2))
}
