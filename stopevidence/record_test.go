package stopevidence_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/stopevidence"
)

func TestGolden(t *testing.T) { recordtest.Golden(t, "receipt", stopped()) }

func FuzzRecord(f *testing.F) { recordtest.Fuzz(f, stopped(), stopevidence.Record{}) }

func TestKey(t *testing.T) {
	require.Equal(t, "control/stop/shop.example/op-7/shop-1-8-relocation-release.json", key(stopped()))
	require.Equal(t, "control/stop/h/o/b-0-retirement.json", stopevidence.Key("h", "o", "b", 0, stopevidence.Retirement))
}
