package hostguard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/carlosframework/regionha/internal/record"
)

// An update of the agent's executable and this box's part in operations exclude
// each other with no lock between them: each writes its own intent durably
// first, and then looks for the other's. The updater's is markerFile, a
// participant's is its host's record under .hostexec/.

const (
	markerDir  = "guard"
	markerFile = markerDir + "/update-begun.json"
)

// updateMarker is guard/update-begun.json.
type updateMarker struct {
	V     int       `json:"v"`
	Write string    `json:"write"`
	At    time.Time `json:"at"`

	// Begun: nobody took part when this marker already stood, so the update
	// runs. Until it ends, nothing but EndUpdate removes the marker.
	Begun bool `json:"begun"`
}

// BeginUpdate is nil if the agent's executable under dataDir may be replaced
// now; from then on, until [EndUpdate], no host of this box is entered in an
// operation. It may run as root or as the agent's user, one updater at a time.
// After a script that died, begin again: the marker is taken over.
//
// It is [ErrDeferred], with what stands in the way, where anything at all lies
// in .hostexec/, or that cannot be told, or the marker cannot be written. Then
// nothing has changed: the marker is gone again, unless an earlier update that
// began is still to be finished.
func BeginUpdate(dataDir string) error { return updateGate{dir: dataDir}.begin() }

// EndUpdate removes the marker, durably: the update is finished, recovered, or
// was never begun. One that is not there is removed.
func EndUpdate(dataDir string) error { return updateGate{dir: dataDir}.end() }

// updateGate is the updater's half. It stays inside the data directory whatever
// links lie there: it may run as root, and the directory is the agent's.
type updateGate struct {
	dir  string
	disk disk
}

func (u updateGate) begin() error {
	root, err := os.OpenRoot(u.dir)
	if err != nil {
		return deferred(err)
	}
	defer root.Close()
	if begun, err := begun(root); begun || err != nil {
		return deferred(errors.Join(err, vacant(root)))
	}
	if err := u.mark(root, false); err != nil {
		return errors.Join(deferred(err), u.unmark(root))
	}
	if err := vacant(root); err != nil {
		return errors.Join(deferred(err), u.unmark(root))
	}
	if err := u.mark(root, true); err != nil {
		return errors.Join(deferred(err), u.unmark(root))
	}
	return nil
}

func (u updateGate) end() error {
	root, err := os.OpenRoot(u.dir)
	if err == nil {
		defer root.Close()
		err = u.unmark(root)
	}
	if err != nil {
		return fmt.Errorf("hostguard: end of the update: %w", err)
	}
	return nil
}

func deferred(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("hostguard: %w: %w", ErrDeferred, err)
}

// begun reports whether a marker stands whose update may have begun: every one
// but one that surely has not. An error means that nobody knows of any marker.
func begun(root *os.Root) (bool, error) {
	raw, err := root.ReadFile(markerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("the marker of an earlier update cannot be read: %w", err)
	}
	m, err := record.Decode[updateMarker](raw)
	return err != nil || m.V != version || m.Begun, nil
}

// mark writes the marker so that an agent of another user can see it, whatever
// the umask of who writes it.
func (u updateGate) mark(root *os.Root, begun bool) error {
	body, err := record.Encode(updateMarker{V: version, Write: record.Nonce(), At: time.Now().UTC(), Begun: begun})
	if err != nil {
		return err
	}
	const tmp = markerFile + tmpSuffix
	var f *os.File
	return u.disk.run(filepath.Join(u.dir, tmp), []step{
		{"make directory", func() error { return makeReadableDir(root, markerDir) }},
		{"discard", func() error { return removeIn(root, tmp) }},
		{"create", func() (err error) {
			f, err = root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			return err
		}},
		{"write", func() error { return closeOnError(f, func() error { _, err := f.Write(body); return err }) }},
		{"mode", func() error { return closeOnError(f, func() error { return f.Chmod(0o644) }) }},
		{"sync", func() error { return closeOnError(f, f.Sync) }},
		{"close", func() error { return f.Close() }},
		{"rename", func() error { return root.Rename(tmp, markerFile) }},
		{"sync directory", func() error { return syncIn(root, markerDir) }},
	})
}

// unmark removes the marker, if there is one.
func (u updateGate) unmark(root *os.Root) error {
	if _, err := root.Lstat(markerDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return u.disk.run(filepath.Join(u.dir, markerFile), []step{
		{"discard", func() error { return removeIn(root, markerFile+tmpSuffix) }},
		{"remove", func() error { return removeIn(root, markerFile) }},
		{"sync directory", func() error { return syncIn(root, markerDir) }},
	})
}

// vacant is nil only if .hostexec/ is surely absent or empty.
func vacant(root *os.Root) error {
	const dir = ".hostexec"
	info, err := root.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("whether this box takes part in an operation cannot be told: %w", err)
	case !info.IsDir():
		return fmt.Errorf("whether this box takes part in an operation cannot be told: %s is %s, not a directory", dir, info.Mode().Type())
	}
	entries, err := fs.ReadDir(root.FS(), dir)
	switch {
	case err != nil:
		return fmt.Errorf("whether this box takes part in an operation cannot be told: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("%s/%s (of %d): %s", dir, entries[0].Name(), len(entries), occupant(root, path.Join(dir, entries[0].Name())))
	}
	return nil
}

// occupant says what an entry of .hostexec/ is, for a person.
func occupant(root *os.Root, name string) string {
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return "no record of a participation, but it may stand for one"
	}
	raw, err := root.ReadFile(name)
	if err != nil {
		return "it cannot be read: " + err.Error()
	}
	rec, err := record.Decode[execRecord](raw)
	if err != nil {
		return "it is not a whole record: " + err.Error()
	}
	return fmt.Sprintf("%s takes part in operation %s, %s", rec.Host, rec.Op, rec.State)
}

// updating is the participant's half: nil only if there surely is no marker.
func (g *Guard) updating() error {
	_, err := os.Lstat(filepath.Join(g.data, markerFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w, or may be: %w", ErrUpdating, err)
	}
	return fmt.Errorf("%w: %s is there", ErrUpdating, markerFile)
}

func makeReadableDir(root *os.Root, dir string) error {
	err := root.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = root.Chmod(dir, 0o755)
	}
	if err == nil {
		err = syncIn(root, ".")
	}
	return err
}

func syncIn(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func removeIn(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
