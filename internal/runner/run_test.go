package runner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/record/recordtest"
)

var (
	inCgroup = run{V: 1, Host: "notes.example", Session: 7, BootID: "b1", Cgroup: "/sys/fs/cgroup/box/app-notes.example"}
	inGroup  = run{V: 1, Host: "notes.example", Session: 7, BootID: "b1", PID: 4321, Start: 123456}
)

func TestRunRecordsKeepTheirFormat(t *testing.T) {
	recordtest.Golden(t, "run-cgroup", inCgroup)
	recordtest.Golden(t, "run-group", inGroup)
}

func FuzzRun(f *testing.F) { recordtest.Fuzz(f, inCgroup, inGroup) }

func TestARunRecordThatNamesNothingCertainIsAnError(t *testing.T) {
	for name, change := range map[string]func(*run){
		"version":          func(r *run) { r.V = 2 },
		"no boot":          func(r *run) { r.BootID = "" },
		"nothing named":    func(r *run) { r.PID = 0 },
		"both named":       func(r *run) { r.Cgroup = "/x" },
		"init":             func(r *run) { r.PID = 1 },
		"every process":    func(r *run) { r.PID = -1 },
		"a relative group": func(r *run) { r.PID, r.Cgroup = 0, "x" },
	} {
		t.Run(name, func(t *testing.T) {
			dir, r := t.TempDir(), inGroup
			change(&r)
			require.NoError(t, writeRun(dir, r))
			require.Error(t, KillLeftover(t.Context(), nil, dir))
			require.FileExists(t, dir+"/"+runFile)
		})
	}
	t.Run("unknown field", func(t *testing.T) {
		_, err := record.Decode[run]([]byte("{\"v\":1,\"x\":2}\n"))
		require.ErrorIs(t, err, record.ErrMalformed)
	})
}

func TestBackoffDoublesUpToItsBound(t *testing.T) {
	require.Equal(t, backoffMin, backoff(0, 0))
	require.Equal(t, 2*backoffMin, backoff(1, 0))
	require.Equal(t, backoffMax, backoff(9, 0))
	require.Equal(t, backoffMax, backoff(1000, 0))
	require.Equal(t, backoffMax/2, backoff(1000, 1))
}
