package hostguard

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var errCrash = errors.New("crash")

var tester = Identity{Box: "box-1", Enrollment: "e-1", BootID: "boot-1"}

// crashAt returns a hook that ends the process's writing before its nth step,
// and tears what is not synced yet. Once it has crashed nothing is written.
func crashAt(n int) func(step, path string) error {
	return func(step, path string) error {
		if n--; n > 0 {
			return nil
		}
		if step == "sync" {
			_ = os.Truncate(path, 9)
		}
		return errCrash
	}
}

func TestARecordIsSyncedBeforeItHasItsNameAndTheNameAfter(t *testing.T) {
	var steps []string
	d := disk{before: func(step, _ string) error { steps = append(steps, step); return nil }}
	path := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, d.write(path, []byte("a")))
	require.Equal(t, []string{"create", "write", "sync", "close", "rename", "sync directory"}, steps)
	steps = nil
	require.NoError(t, d.remove(path))
	require.Equal(t, []string{"remove", "sync directory"}, steps)
}

// effect is one call that writes a record, and what it needs before.
type effect struct {
	name   string
	before func(ctx context.Context, g *Guard) error
	do     func(ctx context.Context, g *Guard) error
}

func held(stamp uint64, fn func(*Held) error) func(context.Context, *Guard) error {
	return func(ctx context.Context, g *Guard) error { return g.With(ctx, stamp, fn) }
}

func seq(steps ...func(context.Context, *Guard) error) func(context.Context, *Guard) error {
	return func(ctx context.Context, g *Guard) error {
		for _, s := range steps {
			if err := s(ctx, g); err != nil {
				return err
			}
		}
		return nil
	}
}

func effects() []effect {
	activate := func(ctx context.Context, g *Guard) error { return g.Activate(ctx, "i-1", 7) }
	plan := Install{Op: "op-1", Stamp: 7, Prepared: "p-1", FilesManifest: "m", FilesManifestSHA256: "s"}
	begin := held(7, func(h *Held) error { _, err := h.BeginInstall(plan); return err })
	ask := held(7, func(h *Held) error { return h.AskSession("g-1") })
	restored := held(7, func(h *Held) error { return h.RestoredSession("g-1") })
	acknowledge := func(ctx context.Context, g *Guard) error {
		_, err := g.Acknowledge(ctx, "op-1", time.Unix(1, 0))
		return err
	}
	return []effect{
		{"the first activation", seq(), activate},
		{"a later activation", activate, func(ctx context.Context, g *Guard) error { return g.Activate(ctx, "i-1", 8) }},
		{"a fence", activate, func(ctx context.Context, g *Guard) error { return g.BeginFence(ctx, 7, "op-1") }},
		{"an install's begin", activate, begin},
		{"an install's end", seq(activate, begin), held(7, func(h *Held) error { return h.FinishInstall(plan) })},
		{"a session's asking", activate, ask},
		{"a session's restore", seq(activate, ask), restored},
		{"a session's end", seq(activate, ask, restored), held(7, func(h *Held) error { return h.EndSession("g-1", Final{TXID: 9}) })},
		{"an acknowledgement", activate, acknowledge},
		{"a forgetting", seq(activate, acknowledge), func(ctx context.Context, g *Guard) error { return g.Forget(ctx, "op-1") }},
	}
}

// facts is everything that a later process reads, without the write nonces.
type facts struct {
	Active  Installation
	Session Session
	Install installRecord
	Acks    []Participation
}

func gather(t *testing.T, dir string) facts {
	t.Helper()
	g, err := Open(dir, "h.example", tester)
	require.NoError(t, err)
	var f facts
	f.Active, err = g.Active()
	require.NoError(t, err)
	f.Session, _, err = g.Session()
	require.NoError(t, err)
	f.Install, _, err = read[installRecord](g, installFile)
	require.NoError(t, err)
	f.Install.header = header{}
	acks, damaged, err := Participations(dir)
	require.NoError(t, err)
	require.Empty(t, damaged)
	f.Acks = acks
	return f
}

func TestACrashAtAnyStepLeavesTheOldOrTheNewRecord(t *testing.T) {
	for _, e := range effects() {
		t.Run(e.name, func(t *testing.T) {
			dir := t.TempDir()
			prepare := func(dir string) *Guard {
				g, err := Open(dir, "h.example", tester)
				require.NoError(t, err)
				require.NoError(t, e.before(t.Context(), g))
				return g
			}
			g := prepare(dir)
			before := gather(t, dir)
			require.NoError(t, e.do(t.Context(), g))
			after := gather(t, dir)
			require.NotEqual(t, before, after)

			crashes := 0
			for n := 1; ; n++ {
				dir := t.TempDir()
				g := prepare(dir)
				g.disk.before = crashAt(n)
				err := e.do(t.Context(), g)
				if err == nil {
					break
				}
				require.ErrorIs(t, err, errCrash)
				crashes++
				require.Contains(t, []facts{before, after}, gather(t, dir), "crash before step %d", n)

				again, err := Open(dir, "h.example", tester)
				require.NoError(t, err)
				if err := e.do(t.Context(), again); err != nil {
					require.ErrorIs(t, err, ErrSession, "a restore is not repeated")
				}
				require.Equal(t, after, gather(t, dir), "the next pass finishes it")
			}
			require.GreaterOrEqual(t, crashes, 2)
		})
	}
}

const victimDir = "HOSTGUARD_TEST_VICTIM_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		activateForEver(dir)
	}
	os.Exit(m.Run())
}

func activateForEver(dir string) {
	g, err := Open(dir, "h.example", tester)
	at, _ := g.Active()
	for stamp := at.Stamp + 1; err == nil; stamp++ {
		err = g.Activate(context.Background(), "i-1", stamp)
	}
	panic(err)
}

func TestAKilledProcessLeavesAWholeRecordAndNoLock(t *testing.T) {
	dir := t.TempDir()
	g, err := Open(dir, "h.example", tester)
	require.NoError(t, err)
	for range 3 {
		start, err := g.Active()
		require.NoError(t, err)
		victim := exec.Command(os.Args[0])
		victim.Env = append(os.Environ(), victimDir+"="+dir)
		require.NoError(t, victim.Start())
		at := start
		for deadline := time.Now().Add(30 * time.Second); err == nil && at.Stamp < start.Stamp+20 && time.Now().Before(deadline); {
			was := at.Stamp
			at, err = g.Active() // while it is written
			if at.Stamp < was {
				err = errors.Join(err, errors.New("the stamp decreased"))
			}
		}
		killed := victim.Process.Kill()
		_ = victim.Wait()
		require.NoError(t, errors.Join(err, killed))

		at, err = g.Active()
		require.NoError(t, err)
		require.GreaterOrEqual(t, at.Stamp, start.Stamp+20)
		require.NoError(t, g.Activate(t.Context(), "i-1", at.Stamp+1), "the dead hold no lock")
	}
}
