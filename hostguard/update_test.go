package hostguard

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnythingInTheWayDefersAnUpdateAndChangesNothing(t *testing.T) {
	record := func(t *testing.T, dir string) *bench {
		b := newBench(t)
		require.NoError(t, b.Enter(t.Context(), "op-1"))
		require.NoError(t, os.Rename(filepath.Join(b.dir, ".hostexec"), filepath.Join(dir, ".hostexec")))
		return b
	}
	file := func(name, body string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, ".hostexec", name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
		}
	}
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"a participation":  func(t *testing.T, dir string) { record(t, dir) },
		"a temporary file": file("h.example.json.tmp", ""),
		"garbage":          file("h.example.json", "?"),
		"a directory":      file("h/x", ""),
		"a dangling link": func(t *testing.T, dir string) {
			file("x", "")(t, dir)
			require.NoError(t, os.Remove(filepath.Join(dir, ".hostexec", "x")))
			require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, ".hostexec", "h.example.json")))
		},
		"a plain file in its place": func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".hostexec"), nil, 0o600))
		},
		"a link in its place": func(t *testing.T, dir string) {
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, ".hostexec")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			prepare(t, dir)
			before := filesOrLinks(t, dir)
			err := BeginUpdate(dir)
			require.ErrorIs(t, err, ErrDeferred)
			require.ErrorContains(t, err, ".hostexec")
			require.NoError(t, os.Remove(filepath.Join(dir, "guard")), "made, and empty")
			require.Equal(t, before, filesOrLinks(t, dir))

			require.NoError(t, os.RemoveAll(filepath.Join(dir, ".hostexec")))
			require.NoError(t, BeginUpdate(dir), "the same update applies once it is gone")
		})
	}
}

func filesOrLinks(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	}))
	return names
}

func TestTheMarkerIsReadableByAnAgentOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, BeginUpdate(dir))
	for name, mode := range map[string]os.FileMode{"guard": 0o755, markerFile: 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
	require.NoError(t, EndUpdate(dir))
	require.NoError(t, EndUpdate(dir))
	require.NoFileExists(t, filepath.Join(dir, markerFile))
	require.NoError(t, EndUpdate(t.TempDir()))
	require.ErrorIs(t, BeginUpdate(filepath.Join(dir, "absent")), ErrDeferred)
}

func TestAMarkerThatCannotBeWrittenDefers(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guard"), nil, 0o600))
	require.ErrorIs(t, BeginUpdate(dir), ErrDeferred)
	b := newBench(t)
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "guard"), nil, 0o600))
	require.ErrorIs(t, b.Enter(t.Context(), "op-1"), ErrUpdating, "nor can it be read")
}

func TestAnUpdateNeverFollowsALinkOutOfTheDataDirectory(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	victim := filepath.Join(outside, "update-begun.json")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "guard")))
	require.ErrorIs(t, BeginUpdate(dir), ErrDeferred)
	raw, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "precious", string(raw))
}

func TestWhileAnUpdateRunsNothingIsAcknowledged(t *testing.T) {
	b := newBench(t)
	require.NoError(t, BeginUpdate(b.dir))
	require.ErrorIs(t, b.Enter(t.Context(), "op-1"), ErrUpdating)
	require.ErrorIs(t, b.Check("op-1"), ErrNoController)
	require.Empty(t, entriesOf(t, b.dir))
	require.NoError(t, BeginUpdate(b.dir), "after a dead script the next takes the marker over")
	require.NoError(t, EndUpdate(b.dir))
	require.NoError(t, b.Enter(t.Context(), "op-1"))
}

func TestAnUpdateThatBeganKeepsItsMarkerUntilItEnds(t *testing.T) {
	b := newBench(t)
	require.NoError(t, BeginUpdate(b.dir))
	require.NoError(t, os.WriteFile(b.g.execPath()+tmpSuffix, nil, 0o600))
	require.ErrorIs(t, BeginUpdate(b.dir), ErrDeferred)
	require.FileExists(t, filepath.Join(b.dir, markerFile))
	require.ErrorIs(t, b.Enter(t.Context(), "op-1"), ErrUpdating)
	require.NoError(t, BeginUpdate(b.dir))
}

func TestAnUpdateThatNeverBeganLetsAnAcknowledgedOperationGoOn(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.Enter(t.Context(), "op-1"))
	require.NoError(t, b.Active(t.Context(), "op-1"))
	require.NoError(t, b.Close(t.Context()))
	dead := updateGate{dir: b.dir, disk: disk{before: crashAt(10)}} // after its marker, before its scan's outcome
	require.ErrorIs(t, dead.begin(), errCrash)
	require.FileExists(t, filepath.Join(b.dir, markerFile))
	b.boot(t, b.store)
	require.NoError(t, b.Enter(t.Context(), "op-1"), "its record stood before that marker")
	require.ErrorIs(t, b.Enter(t.Context(), "op-2"), ErrUpdating)
	require.ErrorIs(t, BeginUpdate(b.dir), ErrDeferred, "op-1 is not over")
	require.NoFileExists(t, filepath.Join(b.dir, markerFile))
	require.NoError(t, b.Finish(t.Context(), ""))
	require.NoError(t, BeginUpdate(b.dir))
}
