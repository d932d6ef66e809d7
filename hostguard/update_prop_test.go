package hostguard

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/objstore/memstore"
)

// gateWorld is an updater and a participant that share a data directory and
// nothing else. Each runs until one of its disk steps, where it may crash or the
// other may run.
type gateWorld struct {
	t   *rapid.T
	dir string
	x   *Execution
	op  string

	running bool // begin said yes, and the update has not ended
	over    bool // the claim says that the operation is
	acked   bool // the claim holds the acknowledgement
	script  bool // the script runs; there is one at a time
}

func (w *gateWorld) boot() {
	g, err := Open(w.dir, "h.example", tester)
	require.NoError(w.t, err)
	w.x, err = NewExecution(ExecutionConfig{Guard: g, Store: memstore.New(), TTL: lifeLong, Logger: quietLog,
		CleanUp: func(context.Context, string) error { return nil },
		Over:    func(context.Context, string) (bool, error) { return w.over, nil }})
	require.NoError(w.t, err)
	g.disk.before = w.step(w.update)
}

// step lets the other side run before a disk step, or crashes there; then no
// step of the same call follows.
func (w *gateWorld) step(other func()) func(step, path string) error {
	crashed := false
	return func(string, string) error {
		switch n := rapid.IntRange(0, 19).Draw(w.t, "at this step"); {
		case crashed || n == 0:
			crashed = true
			return errCrash
		case n < 6:
			other()
		}
		return nil
	}
}

// update is one run of the package script.
func (w *gateWorld) update() {
	if w.script {
		return
	}
	w.script = true
	defer func() { w.script = false }()
	gate := updateGate{dir: w.dir, disk: disk{before: w.step(func() { w.participate(w.t) })}}
	if w.running && rapid.Bool().Draw(w.t, "end") {
		w.running = false // the script ends the update's work before its marker
		_ = gate.end()
		return
	}
	if err := gate.begin(); err == nil {
		w.running = true
	} else if !errors.Is(err, errCrash) {
		require.ErrorIs(w.t, err, ErrDeferred)
	}
	w.check(w.t)
}

// participate is one pass of the agent.
func (w *gateWorld) participate(t *rapid.T) {
	select {
	case w.x.turn <- struct{}{}: // no pass runs that this one would have to wait for
		<-w.x.turn
	default:
		return
	}
	if w.over {
		_ = w.x.Finish(t.Context(), "")
	} else if w.x.Enter(t.Context(), w.op) == nil {
		w.acked = true
		_ = w.x.Active(t.Context(), w.op)
	}
	w.check(t)
}

func (w *gateWorld) check(t *rapid.T) {
	require.False(t, w.running && w.acked, "an update runs while a participation is acknowledged")
	require.False(t, w.running && w.x.Check(w.op) == nil, "an update runs while a controller is open")
}

func (w *gateWorld) crash(*rapid.T) {
	_ = w.x.Close(context.Background())
	w.boot()
}

// last ends one side, after which the other goes on.
func (w *gateWorld) last(t *rapid.T) {
	if rapid.Bool().Draw(t, "the update goes on") {
		w.over, w.acked = true, false
		for range 3 {
			w.crash(t)
			w.x.g.disk.before = nil
			require.NoError(t, w.x.Finish(t.Context(), ""))
		}
		require.NoError(t, BeginUpdate(w.dir))
		require.NoError(t, EndUpdate(w.dir))
		return
	}
	_ = BeginUpdate(w.dir)
	require.NoError(t, EndUpdate(w.dir))
	w.crash(t)
	w.x.g.disk.before = nil
	require.NoError(t, w.x.Enter(t.Context(), w.op))
}

func TestAnUpdateAndAParticipationAreNeverThereAtOnce(t *testing.T) {
	root := memoryDir(t)
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		w := &gateWorld{t: t, dir: dir, op: "op-1"}
		w.boot()
		defer func() { _ = w.x.Close(context.Background()) }()
		t.Repeat(map[string]func(*rapid.T){
			"update":      func(*rapid.T) { w.update() },
			"participate": w.participate,
			"crash":       w.crash,
			"over":        func(*rapid.T) { w.over, w.acked = true, false },
			"next": func(*rapid.T) {
				if w.over && len(entriesOf(t, dir)) == 0 {
					w.over, w.op = false, w.op+"1"
				}
			},
			"": w.check,
		})
		w.last(t)
	})
}

func entriesOf(t require.TestingT, dir string) []os.DirEntry {
	entries, err := os.ReadDir(filepath.Join(dir, ".hostexec"))
	require.NoError(t, err)
	return entries
}
