package hostguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var retiredPlan = Install{Op: "op-1", Stamp: 7, Prepared: "p-1", FilesManifest: "m", FilesManifestSHA256: "s"}

// lived is a host's directory after an install, a session and a release.
func lived(t *testing.T, dir string) *Guard {
	t.Helper()
	g, err := Open(dir, "h.example", tester)
	require.NoError(t, err)
	require.NoError(t, g.Activate(t.Context(), "i-1", 7))
	require.NoError(t, g.With(t.Context(), 7, func(h *Held) error {
		_, err := h.BeginInstall(retiredPlan)
		return errors.Join(err, h.FinishInstall(retiredPlan), h.AskSession("g-1"), h.RestoredSession("g-1"))
	}))
	for _, name := range []string{"db/app.db", "files/a/b", "platform/env", "work/w", "meta/g-1/m", "warm/0", "install/db-7/app.db", "log/app.log", "env"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(g.path(name)), 0o700))
		require.NoError(t, os.WriteFile(g.path(name), []byte(name), 0o600))
	}
	return g
}

func ended(t *testing.T, g *Guard) {
	t.Helper()
	require.NoError(t, g.BeginFence(t.Context(), 7, "op-1"))
	require.NoError(t, g.WithFence(t.Context(), 7, "op-1", func(h *Held) error {
		return errors.Join(h.EndSession("g-1", Final{TXID: 9}), h.JournalReleased(Released{Request: ReleaseRequest{
			Op: "op-1", Revision: 1, Stamp: 7, Session: 7, Generation: "g-1", Incarnation: "i-1"}, Final: Final{TXID: 9}}))
	}))
}

func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
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

func TestACopyIsRetiredWholeThroughACrashBetweenAnyTwoRenames(t *testing.T) {
	const crashes = 60
	finished := false
	for n := 1; n <= crashes && !finished; n++ {
		dir := t.TempDir()
		g := lived(t, dir)
		ended(t, g)
		before := filesBelow(t, g.dir)
		g.disk.before = crashAt(n)
		_, err := g.Retire(t.Context(), "chore-1")
		finished = err == nil
		if !finished {
			require.ErrorIs(t, err, errCrash)
		}
		g, err = Open(dir, "h.example", tester)
		require.NoError(t, err)
		to, err := g.Retire(t.Context(), "chore-1")
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, ".parked", "h.example_chore-1"), to)

		stays, parked := filesBelow(t, g.dir), filesBelow(t, to)
		require.Len(t, stays, 3, "guard.json, guard.lock, the log: %v", stays)
		for name, body := range before {
			require.True(t, stays[name] == body || parked[name] == body, name)
		}
		at, err := g.Active()
		require.NoError(t, err)
		require.Equal(t, Installation{Incarnation: "i-1", Stamp: 7, Fence: "op-1"}, at)
		require.ErrorIs(t, g.Activate(t.Context(), "i-1", 6), ErrStale, "the stamp never goes back")

		require.NoError(t, g.Activate(t.Context(), "i-1", 8))
		_, found, err := g.Session()
		require.NoError(t, err)
		require.False(t, found)
		require.ErrorIs(t, g.VerifyInstall(retiredPlan), ErrNoInstall)
		require.NoError(t, g.With(t.Context(), 8, func(h *Held) error { return h.AskSession("g-2") }))
		_, err = g.Retire(t.Context(), "chore-1")
		require.ErrorIs(t, err, ErrNotFenced, "a retirement that comes late")
	}
	require.True(t, finished)
}

func TestTheInstallIsVoidBeforeItsFilesGo(t *testing.T) {
	dir := t.TempDir()
	g := lived(t, dir)
	ended(t, g)
	g.disk.before = func(step, path string) error {
		if path == g.path("db") || path == g.path("files") {
			require.ErrorIs(t, g.VerifyInstall(retiredPlan), ErrNoInstall)
		}
		return nil
	}
	_, err := g.Retire(t.Context(), "chore-1")
	require.NoError(t, err)
}

func TestACopyIsRetiredOnlyOnceItsSessionIsOver(t *testing.T) {
	dir := t.TempDir()
	g := lived(t, dir)
	before := filesBelow(t, dir)
	_, err := g.Retire(t.Context(), "chore-1")
	require.ErrorIs(t, err, ErrNotFenced)
	require.Equal(t, before, filesBelow(t, dir))
	require.NoError(t, g.BeginFence(t.Context(), 7, "chore-1"))
	_, err = g.Retire(t.Context(), "chore-1")
	require.ErrorIs(t, err, ErrSession)
	_, err = g.Retire(t.Context(), "../x")
	require.Error(t, err)

	fenced := func(fn func(*Held) error) error { return g.WithFence(t.Context(), 7, "chore-1", fn) }
	require.ErrorIs(t, fenced(func(h *Held) error { return h.AbandonSession("g-2") }), ErrSession)
	for range 2 {
		require.NoError(t, fenced(func(h *Held) error { return h.AbandonSession("g-1") }))
	}
	require.ErrorIs(t, fenced(func(h *Held) error { return h.Flushable("g-1") }), ErrSession)
	require.ErrorIs(t, fenced(func(h *Held) error { return h.EndSession("g-1", Final{}) }), ErrSession)
	require.ErrorIs(t, fenced(func(h *Held) error { return h.AskSession("g-1") }), ErrSession)
	_, err = g.Retire(t.Context(), "chore-1")
	require.NoError(t, err)
}

func TestASessionOfAnotherBootIsOver(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, lived(t, dir).BeginFence(t.Context(), 7, "chore-1"))
	g, err := Open(dir, "h.example", Identity{Box: tester.Box, Enrollment: tester.Enrollment, BootID: "boot-2"})
	require.NoError(t, err)
	_, err = g.Retire(t.Context(), "chore-1")
	require.NoError(t, err)
}

// installed is a host's directory after an install that nobody opened.
func installed(t *testing.T) *Guard {
	t.Helper()
	g, err := Open(t.TempDir(), "h.example", tester)
	require.NoError(t, err)
	require.NoError(t, g.Activate(t.Context(), "i-1", 7))
	require.NoError(t, g.With(t.Context(), 7, func(h *Held) error {
		_, err := h.BeginInstall(retiredPlan)
		return errors.Join(err, h.FinishInstall(retiredPlan))
	}))
	return g
}

func TestAnUnopenedInstallIsVoidedRemovedAndForgotten(t *testing.T) {
	g := installed(t)
	none := func(Install) error { t.Error("removed"); return nil }
	require.NoError(t, g.RetireInstall(t.Context(), "op-2", none))
	require.NoError(t, g.VerifyInstall(retiredPlan))

	boom := errors.New("boom")
	require.ErrorIs(t, g.RetireInstall(t.Context(), "op-1", func(i Install) error {
		require.Equal(t, retiredPlan, i)
		return boom
	}), boom)
	require.ErrorIs(t, g.VerifyInstall(retiredPlan), ErrNoInstall, "it is void before anything is removed")
	require.NoError(t, g.BeginFence(t.Context(), 7, "op-9"))
	require.NoError(t, g.RetireInstall(t.Context(), "op-1", func(Install) error { return nil }))
	require.NoFileExists(t, g.path(installFile))
	require.NoError(t, g.RetireInstall(t.Context(), "op-1", none))
}

func TestAnInstallAboveAnOlderSessionIsRetired(t *testing.T) {
	g, err := Open(t.TempDir(), "h.example", tester)
	require.NoError(t, err)
	require.NoError(t, g.Activate(t.Context(), "i-1", 5))
	require.NoError(t, g.With(t.Context(), 5, func(h *Held) error {
		return errors.Join(h.AskSession("g-1"), h.RestoredSession("g-1"), h.EndSession("g-1", Final{TXID: 9}))
	}))
	require.NoError(t, g.Activate(t.Context(), "i-1", 7))
	require.NoError(t, g.With(t.Context(), 7, func(h *Held) error {
		_, err := h.BeginInstall(retiredPlan)
		return err
	}))
	removed := false
	require.NoError(t, g.RetireInstall(t.Context(), "op-1", func(Install) error { removed = true; return nil }))
	require.True(t, removed)
}

// What lies here is the files of whatever session came after the install, the
// second attempt's of a fresh generation too.
func TestAnInstallUnderASessionIsNotRetired(t *testing.T) {
	for name, steps := range map[string][]func(*Held) error{
		"opened":         {ask("p-1"), restored("p-1")},
		"asked for":      {ask("p-1")},
		"second attempt": {ask("g-2"), restored("g-2")},
		"second, asked":  {ask("g-2")},
	} {
		t.Run(name, func(t *testing.T) {
			g := installed(t)
			for _, step := range steps {
				require.NoError(t, g.With(t.Context(), 7, step))
			}
			require.NoError(t, g.RetireInstall(t.Context(), "op-1", func(Install) error { t.Error("removed"); return nil }))
			require.NoError(t, g.VerifyInstall(retiredPlan))
		})
	}
}

func ask(generation string) func(*Held) error {
	return func(h *Held) error { return h.AskSession(generation) }
}

func restored(generation string) func(*Held) error {
	return func(h *Held) error { return h.RestoredSession(generation) }
}
