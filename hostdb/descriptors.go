package hostdb

import (
	"fmt"

	"github.com/carlosframework/regionha/stopevidence"
)

// Descriptors returns the descriptors by which this replicator holds the
// database, its -wal and its -shm right now. No other code of the process may
// hold any, so they are all that the process has. They change while Run runs.
// Elsewhere than on Linux it is [errors.ErrUnsupported].
func (r *Replicator) Descriptors() ([]stopevidence.Descriptor, error) {
	held, err := stopevidence.ProcessDescriptors(r.cfg.Path, r.cfg.Path+"-wal", r.cfg.Path+"-shm")
	if err != nil {
		return nil, fmt.Errorf("descriptors of %s: %w", r.cfg.Path, err)
	}
	return held, nil
}
