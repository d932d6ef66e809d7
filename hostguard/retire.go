package hostguard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// retired lists what of a host's directory is parked, in this order: the record
// that vouches for an installed copy before the copy itself, and the journals
// that explain a copy after it. What is not named stays: guard.json, guard.lock
// and the logs.
var retired = []string{installFile, "db", "files", "platform", "work", "meta", "env", "warm", "install"}

// Retire parks this box's local copy of the host: it moves everything but the
// guard and the logs into <data>/.parked/<host>_<retirement>/, which it
// returns. A crash or an error leaves each part in one place or the other, and
// the same call again moves the rest; after it, [Guard.Activate] of a newer
// installation starts clean, while guard.json stays so that the stamp never
// goes back.
//
// What must hold, under the host's lock: admission has ended, by whoever's
// fence (or nothing was ever activated), so a retirement that comes late meets
// the newer installation's open admission and is [ErrNotFenced]; and the newest
// session is over, because it never wrote, ended, was abandoned or ran in
// another boot: otherwise [ErrSession]. That nothing runs any more and that the
// claim gives this box no part in the host is the caller's to know.
func (g *Guard) Retire(ctx context.Context, retirement string) (to string, err error) {
	if err := checkName("retirement", retirement, maxOp); err != nil {
		return "", g.errorf("retire: %w", err)
	}
	to = filepath.Join(g.data, ".parked", g.host+"_"+retirement)
	err = g.locked(ctx, "retire", func(s state) error {
		if s.Stamp != 0 && s.Fence == "" {
			return fmt.Errorf("%w: stamp %d", ErrNotFenced, s.Stamp)
		}
		if err := g.sessionOver(); err != nil {
			return err
		}
		return g.park(to)
	})
	if err != nil {
		return "", err
	}
	return to, nil
}

func (g *Guard) sessionOver() error {
	rec, _, err := readSession(g)
	if err != nil {
		return err
	}
	if s := rec.Session; s.Step == Restored && s.BootID == g.me.BootID {
		return fmt.Errorf("%w: session %d of generation %q is restored in this boot: end or abandon it first", ErrSession, s.Number, s.Generation)
	}
	return nil
}

// park moves each part of the host's directory to the same name under to. The
// directory install/ itself stays, empty.
func (g *Guard) park(to string) error {
	if err := makeDir(filepath.Join(to, "install")); err != nil {
		return err
	}
	for _, name := range retired {
		if name != "install" {
			if err := g.move(name, to); err != nil {
				return err
			}
			continue
		}
		entries, err := os.ReadDir(g.path(name))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := g.move(filepath.Join(name, e.Name()), to); err != nil {
				return err
			}
		}
	}
	return nil
}

// move renames one part, durably in both directories. What is not there was
// moved before, or never was. What an interrupted write left may lie there
// twice and is replaced; anything else is moved once.
func (g *Guard) move(name, to string) error {
	from, dest := g.path(name), filepath.Join(to, name)
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := os.Lstat(dest); err == nil && !strings.HasSuffix(name, tmpSuffix) {
		return fmt.Errorf("%s: %w: %s is there", from, fs.ErrExist, dest)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return g.disk.run(from, []step{
		{"rename", func() error { return os.Rename(from, dest) }},
		{"sync destination", func() error { return syncDir(filepath.Dir(dest)) }},
		{"sync directory", func() error { return syncDir(filepath.Dir(from)) }},
	})
}

// RetireInstall is the scoped clean-up after op: it makes the local install of
// a prepared generation that was never opened void, has remove take away what
// it put in place, and forgets it, so that the same plan can be begun again. It
// does nothing where the install journal is absent or another operation's, nor
// where the session journal does not show that the newest session here is older
// than the installation: what lies here may be a live session's. It works under
// the fence too. Repeat it after an error: remove must bear that.
func (g *Guard) RetireInstall(ctx context.Context, op string, remove func(Install) error) error {
	return g.locked(ctx, "retire install", func(state) error {
		rec, found, err := read[installRecord](g, installFile)
		if err != nil || !found || rec.Install.Op != op {
			return err
		}
		last, any, err := readSession(g)
		older := !any || last.Session.Number > 0 && last.Session.Number < rec.Install.Stamp
		if err != nil || !older {
			return err
		}
		if rec.Done {
			rec.header, rec.Done = rec.next(g), false
			if err := g.disk.save(g.path(installFile), rec); err != nil {
				return err
			}
		}
		if err := remove(rec.Install); err != nil {
			return err
		}
		return g.disk.remove(g.path(installFile))
	})
}
