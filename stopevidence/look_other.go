//go:build !linux

package stopevidence

import (
	"context"
	"errors"
	"fmt"
)

func processDescriptors([]string) ([]Descriptor, error) {
	return nil, fmt.Errorf("stopevidence: %w: %w", ErrIncomplete, errors.ErrUnsupported)
}

func look(context.Context, Subject, []Descriptor) ([]Check, error) {
	return nil, fmt.Errorf("stopevidence: %w: %w", ErrIncomplete, errors.ErrUnsupported)
}
