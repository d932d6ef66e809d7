package hostdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/objstore"
)

// Built reports whether generation p is a prepared one whose build is complete:
// whether its install manifest is there. It verifies nothing. It costs one GET.
func Built(ctx context.Context, s objstore.Store, location, p string) (bool, error) {
	err := checkNames(location, p)
	if err == nil {
		_, err = s.Get(ctx, installKey(location, p))
	}
	if errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("is %s built: %w", p, err)
	}
	return true, nil
}
