package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostrelocate"
)

// restoreDatabase purges the local database and puts the session's baseline in
// its place. A failed purge refuses the start.
func (h *host) restoreDatabase(ctx context.Context, c *hostclaim.Claim) (hostdb.Config, error) {
	for _, dir := range []string{filepath.Dir(h.database()), filepath.Join(h.dir(), "meta")} {
		if err := os.RemoveAll(dir); err != nil {
			return hostdb.Config{}, fmt.Errorf("purge: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(h.database()), 0o700); err != nil {
		return hostdb.Config{}, err
	}
	cfg := hostdb.Config{
		Path: h.database(), MetaDir: h.meta(c.Holder.Generation), Logger: h.log,
		Generation: hostdb.Generation{Location: c.Holder.Location, ID: c.Holder.Generation, Session: c.Holder.Session},
	}
	if opensPrepared(c) {
		return h.placePrepared(ctx, c, cfg)
	}
	b, err := h.chosen(ctx, c)
	if err != nil {
		return cfg, err
	}
	cfg.Empty = b.Set.Empty
	if !cfg.Empty {
		_, err = hostdb.Restore(ctx, h.agent.data, b.Set, h.database(), nil)
	}
	return cfg, err
}

// chosen is the baseline of the current admission. A process that did not make
// the admission selects again: the newest generation holds nothing yet, so the
// answer is the same.
func (h *host) chosen(ctx context.Context, c *hostclaim.Claim) (hostrelocate.Baseline, error) {
	if h.baseline != nil {
		return *h.baseline, nil
	}
	b, err := hostrelocate.Newest(ctx, h.agent.data, c)
	if err != nil {
		return hostrelocate.Baseline{}, err
	}
	h.baseline = &b
	return b, nil
}

// placePrepared opens the database that this installation built, or restores it
// from the prepared generation.
func (h *host) placePrepared(ctx context.Context, c *hostclaim.Claim, cfg hostdb.Config) (hostdb.Config, error) {
	j := c.Op.Journal
	p, err := hostdb.ReadPrepared(ctx, h.agent.data, c.Holder.Location, j.Prepared, j.PreparedAuthority.SHA256)
	if err != nil {
		return cfg, err
	}
	cfg.Base, cfg.BaseSHA256, cfg.Empty = p.SnapshotTXID, p.DatabaseSHA256, p.SnapshotTXID == 0
	if cfg.Empty {
		return cfg, nil
	}
	if placed, err := p.Place(h.staged(j.InstallStamp), h.database()); placed || err != nil {
		return cfg, err
	}
	return cfg, p.Restore(ctx, h.agent.data, h.database(), nil)
}

// restoreFiles puts the files of the baseline in place where the local ones are
// not this box's own live state, and says which manifest the session's own
// begins as a copy of; nil for the prepared generation, whose files were
// installed.
func (h *host) restoreFiles(ctx context.Context, c *hostclaim.Claim) (*hostfiles.Pinned, error) {
	if opensPrepared(c) {
		return nil, nil
	}
	b, err := h.chosen(ctx, c)
	if err != nil {
		return nil, err
	}
	_, statErr := os.Lstat(h.filesDir())
	switch {
	case statErr == nil || b.Files.Key == "":
		return &b.Files, nil
	case !errors.Is(statErr, os.ErrNotExist):
		return nil, statErr
	}
	return &b.Files, hostfiles.Restore(ctx, h.agent.data, b.Files.ManifestRef, h.filesDir(), h.platform())
}
