//go:build !linux

package hostdb

import (
	"errors"
	"fmt"
)

func identityOf(path string) (identity, error) {
	return identity{}, fmt.Errorf("identity of %s: %w", path, errors.ErrUnsupported)
}
