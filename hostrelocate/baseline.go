package hostrelocate

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/objstore"
)

// Store is a region's data store.
type Store interface {
	objstore.Store
	objstore.Streamer
}

// Baseline is the newest state of a host that the store holds: the database and
// the files, chosen separately.
type Baseline struct {
	Set      hostdb.RecoverySet // Set.Empty: no generation of the chain holds a database
	Files    hostfiles.Pinned   // zero: no generation of the chain holds a manifest
	Position hostclaim.Position
}

// Newest selects the baseline of the next admission or pin from what the claim
// admitted. Whether nothing at all may stand for an empty host is the claim's
// to decide.
//
// It costs the listings of [hostdb.Select] and one GET for each generation up
// to the newest files manifest. Errors: those of hostdb.Select and
// hostfiles.Newest; never a shorter answer.
func Newest(ctx context.Context, data objstore.Store, c *hostclaim.Claim) (Baseline, error) {
	location := c.Holder.Location
	var b Baseline
	var links []hostdb.Link
	for _, l := range c.Chain() {
		links = append(links, hostdb.Link{Generation: l.Generation, StopAt: l.StopAt})
	}
	b.Set = hostdb.RecoverySet{Empty: true}
	if len(links) > 0 {
		set, err := hostdb.Select(ctx, data, location, links)
		switch {
		case err == nil:
			b.Set = set
			b.Position.Generation, b.Position.TXID = set.Generation, set.MaxTXID
		case !errors.Is(err, hostdb.ErrEmpty):
			return Baseline{}, fmt.Errorf("select the database of %s: %w", c.Host, err)
		}
	}
	chain := c.FilesChain()
	if len(chain) == 0 {
		return b, nil
	}
	files, err := hostfiles.Newest(ctx, data, location, chain)
	if errors.Is(err, hostfiles.ErrNoManifest) {
		return b, nil
	}
	if err != nil {
		return Baseline{}, fmt.Errorf("select the files of %s: %w", c.Host, err)
	}
	b.Files = files
	b.Position.FilesSeq = files.Seq
	for _, generation := range chain {
		if files.Key == hostfiles.ManifestKey(location, generation) {
			b.Position.FilesGeneration = generation
		}
	}
	return b, nil
}
