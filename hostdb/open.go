package hostdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/superfly/ltx"

	"github.com/carlosframework/regionha/objstore"
)

// Config says what a replicator replicates, and into which generation.
type Config struct {
	// Path is the database file, absolute. It is there already, unless Empty.
	Path string

	// MetaDir holds the replicator's local state. It is of this generation only:
	// new or empty at first, and kept when the same session opens again.
	MetaDir string

	Generation Generation

	// Base is N of a prepared generation, 0 of a fresh one, whose first upload
	// is then the whole database.
	Base uint64

	// BaseSHA256 is the digest of the database at Base. At the first opening
	// the file must have it; later it is not looked at.
	BaseSHA256 string

	// Empty creates an empty database at Path, where nothing may lie at first.
	// It is for a host that is proven to have no database yet.
	Empty bool

	// Check is called before each write to the store and refuses it by an error.
	Check func() error

	// SyncInterval is how often a change of the database is looked for; 500ms if
	// zero.
	SyncInterval time.Duration

	Logger *slog.Logger // slog.Default() if nil
}

func (c Config) check() error {
	switch {
	case !filepath.IsAbs(c.Path) || strings.ContainsAny(c.Path, "?#%"):
		return fmt.Errorf("config.Path %q: want an absolute path without ?, # and %%", c.Path)
	case c.MetaDir == "":
		return errors.New("config.MetaDir: required")
	case c.Check == nil:
		return errors.New("config.Check: required")
	case c.Base > 0 && c.Empty:
		return errors.New("config.Empty: a prepared generation with a Base has a database")
	}
	return c.Generation.check()
}

func (c Config) session() session {
	return session{V: 1, Location: c.Generation.Location, Generation: c.Generation.ID, Session: c.Generation.Session, Base: c.Base}
}

// Open opens a replicator, before the app is started. The database's first
// state is then in the local meta directory; nothing is in the store until
// [Replicator.Run] or [Replicator.Durable].
//
// The same session may open again, after Close or after a crash of the process,
// with the same MetaDir and the same database, in the same boot of the machine.
// Commits that were made while no replicator was open are found by the WAL's
// salts, and the next upload is then a full image.
//
// [ErrNotFresh]: purge the local files and restore. [ErrFenced]: the generation
// holds what this session did not write. [ErrBroken]: a prepared generation does
// not reach its Base. It costs one listing, and for a Base one GET.
func Open(ctx context.Context, s objstore.Store, cfg Config) (*Replicator, error) {
	r, err := openReplicator(ctx, s, cfg)
	if err != nil {
		return nil, fmt.Errorf("open replicator of %s: %w", cfg.Generation.ID, err)
	}
	return r, nil
}

func openReplicator(ctx context.Context, s objstore.Store, cfg Config) (*Replicator, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	again, err := readMeta(cfg.MetaDir, cfg.session())
	if err != nil {
		return nil, err
	}
	c, err := newClient(ctx, s, cfg)
	if err != nil {
		return nil, err
	}
	r := newReplicator(cfg, c)
	_, local, err := r.db.MaxLTX()
	if err != nil {
		return nil, err
	}
	if err := cfg.checkFiles(again, local); err != nil {
		return nil, err
	}
	if err := c.checkHolds(local); err != nil {
		return nil, err
	}
	if err := markMeta(cfg.MetaDir, cfg.session()); err != nil {
		return nil, err
	}
	if err := r.start(ctx, local); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// checkFiles refuses a database that is not the one that this session is to go
// on from. local is the newest transaction in the meta directory.
func (c Config) checkFiles(again bool, local ltx.TXID) error {
	switch {
	case local == 0 && c.Base > 0:
		return checkDatabase(c.Path, c.BaseSHA256) // also where no digest is given
	case local == 0 && c.Empty && !again:
		return checkVacant(c.Path)
	case local == 0 && c.Empty:
		return nil
	}
	if info, err := os.Lstat(c.Path); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%w: no database file at %s: %w", ErrNotFresh, c.Path, err)
	}
	return nil
}
