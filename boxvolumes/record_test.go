package boxvolumes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/internal/record/recordtest"
)

// full has something in each field.
func full() boxvolumes.Record {
	r := seen(time.Hour, volume("vol-1"), boxvolumes.Volume{ID: "vol-2", Device: "/dev/sdf", Status: "attaching"})
	r.RemovedVolumes = []string{"vol-3"}
	return r
}

func TestGolden(t *testing.T) { recordtest.Golden(t, "volumes", full()) }

func FuzzRecord(f *testing.F) { recordtest.Fuzz(f, full(), boxvolumes.Record{}) }

func TestKey(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 60, time.FixedZone("", 3600))
	require.Equal(t, "control/box-volumes/e-1/2026-01-02T02-04-05.000000060Z.json", boxvolumes.Key("e-1", at))
	require.Equal(t, "control/box-volumes/e-1/2026-01-02T02-04-05.000000000Z.json", boxvolumes.Key("e-1", at.Truncate(time.Second)))
}

func TestKeysSortByTime(t *testing.T) {
	times := rapid.Int64Range(0, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	nanos := rapid.Int64Range(0, 999_999_999)
	rapid.Check(t, func(t *rapid.T) {
		a, b := time.Unix(times.Draw(t, "a"), nanos.Draw(t, "ns")), time.Unix(times.Draw(t, "b"), nanos.Draw(t, "ns"))
		require.Equal(t, a.Before(b), boxvolumes.Key("e-1", a) < boxvolumes.Key("e-1", b))
	})
}
