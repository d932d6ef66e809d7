package hostguard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostguard"
)

const host = "notes.demo.example"

var me = hostguard.Identity{Box: "box-1", Enrollment: "e-1", BootID: "boot-1"}

func open(t *testing.T, dir string, me hostguard.Identity) *hostguard.Guard {
	t.Helper()
	g, err := hostguard.Open(dir, host, me)
	require.NoError(t, err)
	return g
}

// active opens a guard in a fresh directory with one active installation.
func active(t *testing.T, stamp uint64) (*hostguard.Guard, string) {
	t.Helper()
	dir := t.TempDir()
	g := open(t, dir, me)
	require.NoError(t, g.Activate(t.Context(), "i-1", stamp))
	return g, dir
}

func nothing(*hostguard.Held) error { return nil }

// never is a step that must not run.
func never(t *testing.T) func(*hostguard.Held) error {
	return func(*hostguard.Held) error {
		t.Error("the step ran")
		return nil
	}
}

func TestTheActiveStampOnlyGrows(t *testing.T) {
	g, _ := active(t, 7)
	require.ErrorIs(t, g.Activate(t.Context(), "i-1", 6), hostguard.ErrStale)
	require.ErrorIs(t, g.Activate(t.Context(), "i-2", 7), hostguard.ErrStale, "one stamp is one installation")
	require.Error(t, g.Activate(t.Context(), "i-1", 0))
	require.Error(t, g.Activate(t.Context(), "", 8))
	require.NoError(t, g.Activate(t.Context(), "i-1", 7))
	require.NoError(t, g.Activate(t.Context(), "i-2", 8))
	at, err := g.Active()
	require.NoError(t, err)
	require.Equal(t, hostguard.Installation{Incarnation: "i-2", Stamp: 8}, at)
}

func TestAStepRunsOnlyUnderItsOwnInstallation(t *testing.T) {
	g, _ := active(t, 7)
	require.NoError(t, g.With(t.Context(), 7, func(h *hostguard.Held) error {
		require.Equal(t, uint64(7), h.Installation().Stamp)
		return nil
	}))
	for _, stamp := range []uint64{0, 6, 8} {
		require.ErrorIs(t, g.With(t.Context(), stamp, never(t)), hostguard.ErrStale)
		require.ErrorIs(t, g.BeginFence(t.Context(), stamp, "op-1"), hostguard.ErrStale)
		_, err := g.AdmissionFenced(stamp)
		require.ErrorIs(t, err, hostguard.ErrStale)
	}
	boom := errors.New("boom")
	require.Equal(t, boom, g.With(t.Context(), 7, func(*hostguard.Held) error { return boom }))
}

func TestNothingIsActiveInAFreshDirectory(t *testing.T) {
	g := open(t, t.TempDir(), me)
	at, err := g.Active()
	require.NoError(t, err)
	require.Zero(t, at)
	require.ErrorIs(t, g.With(t.Context(), 0, never(t)), hostguard.ErrStale)
}

func TestAFenceEndsAdmissionUntilANewerInstallation(t *testing.T) {
	g, dir := active(t, 7)
	require.ErrorIs(t, g.WithFence(t.Context(), 7, "op-1", never(t)), hostguard.ErrNotFenced)
	require.ErrorIs(t, g.WithFence(t.Context(), 7, "", never(t)), hostguard.ErrNotFenced)
	require.NoError(t, g.BeginFence(t.Context(), 7, "op-1"))

	again := open(t, dir, me) // after a crash
	fenced, err := again.AdmissionFenced(7)
	require.NoError(t, err)
	require.True(t, fenced)
	require.ErrorIs(t, again.With(t.Context(), 7, never(t)), hostguard.ErrFenced)
	require.NoError(t, again.Activate(t.Context(), "i-1", 7), "the active one again changes nothing")
	require.ErrorIs(t, again.With(t.Context(), 7, never(t)), hostguard.ErrFenced)
	require.ErrorIs(t, again.WithFence(t.Context(), 7, "op-2", never(t)), hostguard.ErrNotFenced)
	require.NoError(t, again.WithFence(t.Context(), 7, "op-1", nothing))

	require.NoError(t, again.Activate(t.Context(), "i-1", 8))
	fenced, err = again.AdmissionFenced(8)
	require.NoError(t, err)
	require.False(t, fenced)
	require.NoError(t, again.With(t.Context(), 8, nothing))
}

func TestAFenceWaitsForTheStepThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, dir := active(t, 7)
		inside, leave := make(chan struct{}), make(chan struct{})
		step := make(chan error)
		go func() {
			step <- g.With(t.Context(), 7, func(*hostguard.Held) error {
				close(inside)
				<-leave
				return nil
			})
		}()
		<-inside
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, open(t, dir, me).BeginFence(ctx, 7, "op-1"), context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start), "a wait for the lock ends with its context")
		require.ErrorIs(t, g.BeginFence(ctx, 7, "op-1"), context.DeadlineExceeded)
		fenced, err := g.AdmissionFenced(7) // needs no lock
		require.NoError(t, err)
		require.False(t, fenced)

		close(leave)
		require.NoError(t, <-step)
		require.NoError(t, g.BeginFence(t.Context(), 7, "op-1"))
	})
}

func TestStepsOfOneHostNeverOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, dir := active(t, 7)
		guards := []*hostguard.Guard{g, open(t, dir, me), open(t, dir, me)}
		var running atomic.Int32
		var steps [3]int // one for each guard's steps, plain memory
		done := make(chan error)
		for i := range 9 {
			go func() {
				done <- guards[i%3].With(t.Context(), 7, func(*hostguard.Held) error {
					defer running.Add(-1)
					steps[i%3]++
					if n := running.Add(1); n != 1 {
						return fmt.Errorf("%d steps at once", n)
					}
					time.Sleep(time.Second)
					return nil
				})
			}()
		}
		for range 9 {
			require.NoError(t, <-done)
		}
		require.Equal(t, [3]int{3, 3, 3}, steps)
	})
}

func TestAHeldLockIsUselessAfterItsStep(t *testing.T) {
	g, _ := active(t, 7)
	var kept *hostguard.Held
	require.NoError(t, g.With(t.Context(), 7, func(h *hostguard.Held) error { kept = h; return nil }))
	require.ErrorIs(t, kept.AskSession("g-1"), hostguard.ErrStale)
	_, err := kept.BeginInstall(plan(7))
	require.ErrorIs(t, err, hostguard.ErrStale)
}

func TestStateOfAnotherEnrollmentIsHeld(t *testing.T) {
	for _, other := range []hostguard.Identity{
		{Box: "box-2", Enrollment: "e-1", BootID: "boot-1"},
		{Box: "box-1", Enrollment: "e-2", BootID: "boot-1"},
	} {
		g, dir := active(t, 7)
		require.NoError(t, g.With(t.Context(), 7, func(h *hostguard.Held) error { return h.AskSession("g-1") }))
		before := tree(t, dir)
		_, err := hostguard.Open(dir, host, other)
		require.ErrorIs(t, err, hostguard.ErrForeign)
		require.ErrorContains(t, err, `box "box-1", enrollment "e-1"`, "the error says whose it is")
		require.Equal(t, before, tree(t, dir))
	}
}

func TestStateThatBecomesAnothersUnderAnOpenGuardIsHeld(t *testing.T) {
	g, dir := active(t, 7)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "hosts")))
	other := open(t, dir, hostguard.Identity{Box: "box-2", Enrollment: "e-2", BootID: "boot-1"})
	require.NoError(t, other.Activate(t.Context(), "i-1", 7))
	before := tree(t, dir)
	require.ErrorIs(t, g.Activate(t.Context(), "i-1", 8), hostguard.ErrForeign)
	require.ErrorIs(t, g.With(t.Context(), 7, never(t)), hostguard.ErrForeign)
	_, err := g.AdmissionFenced(7)
	require.ErrorIs(t, err, hostguard.ErrForeign)
	require.Equal(t, before, tree(t, dir))
}

func TestADamagedGuardIsNeverAnAbsentOne(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"cut short": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 20)) },
		"empty":     func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) },
		"another host": func(t *testing.T, path string) {
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(raw), host, "shop.demo.example", 1)), 0o600))
		},
		"another version": func(t *testing.T, path string) {
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(raw), `"v":1`, `"v":2`, 1)), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, dir := active(t, 7)
			spoil(t, filepath.Join(dir, "hosts", host, "guard.json"))
			before := tree(t, dir)
			_, err := hostguard.Open(dir, host, me)
			require.ErrorIs(t, err, hostguard.ErrMalformed)
			require.ErrorIs(t, g.Activate(t.Context(), "i-1", 8), hostguard.ErrMalformed)
			require.Equal(t, before, tree(t, dir))
		})
	}
}

func TestAnUnreadableGuardIsNeverAnAbsentOne(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "hosts", host, "guard.json"), 0o700))
	_, err := hostguard.Open(dir, host, me)
	require.Error(t, err)
}

func TestANameThatIsNoPlainFileNameIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, bad := range []string{"", "..", ".a", "a/b", "a_b", "a b", "ä", strings.Repeat("a", 201)} {
		_, err := hostguard.Open(dir, bad, me)
		require.Error(t, err, bad)
	}
	for _, bad := range []hostguard.Identity{{Box: "a.b", Enrollment: "e", BootID: "b"}, {Box: "a", BootID: "b"}, {Box: "a", Enrollment: "e"}} {
		_, err := hostguard.Open(dir, host, bad)
		require.Error(t, err, bad)
	}
	require.Empty(t, tree(t, dir))
	g, _ := active(t, 7)
	require.Error(t, g.BeginFence(t.Context(), 7, "../x"))
	_, err := g.Acknowledge(t.Context(), "a/b", time.Now())
	require.Error(t, err)
	require.Error(t, g.Forget(t.Context(), "../guard"))
}

func TestRecordsAreForTheirOwnerOnly(t *testing.T) {
	g, dir := active(t, 7)
	require.NoError(t, g.With(t.Context(), 7, func(h *hostguard.Held) error { return h.AskSession("g-1") }))
	_, err := g.Acknowledge(t.Context(), "op-1", time.Now())
	require.NoError(t, err)
	for path := range tree(t, dir) {
		info, err := os.Stat(filepath.Join(dir, path))
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, path)
	}
}

func TestOneAgentHasADataDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	lock, err := hostguard.LockDataDir(dir)
	require.NoError(t, err)
	_, err = hostguard.LockDataDir(dir)
	require.ErrorIs(t, err, hostguard.ErrLocked)
	require.ErrorContains(t, err, dir)
	require.NoError(t, lock.Close())
	lock, err = hostguard.LockDataDir(dir)
	require.NoError(t, err)
	require.NoError(t, lock.Close())
}

// tree is every file under dir with its content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(raw)
		return err
	}))
	return files
}
