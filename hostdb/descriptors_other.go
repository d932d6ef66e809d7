//go:build !linux

package hostdb

import (
	"errors"
	"fmt"
)

// Descriptors needs /proc and is [errors.ErrUnsupported] here.
func (r *Replicator) Descriptors() ([]Descriptor, error) {
	return nil, fmt.Errorf("descriptors of %s: %w", r.cfg.Path, errors.ErrUnsupported)
}
