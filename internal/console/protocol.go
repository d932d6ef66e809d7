package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carlosframework/regionha/roster"
)

// RequireProtocol refuses acting to every build that speaks an older protocol
// than floor, for ever. It is legal only once every active box was heard of a
// short while ago and speaks it. A floor that stands already costs no write.
func (c *Console) RequireProtocol(ctx context.Context, floor int) error {
	refuse := func(err error, next string) error {
		return &Refusal{What: fmt.Sprintf("protocol %d was not required", floor), Err: err, Next: next}
	}
	v, err := c.view(ctx)
	if err != nil {
		return err
	}
	if older := v.older(floor); len(older) > 0 {
		return refuse(fmt.Errorf("not every box is known to speak it: %s", strings.Join(older, ", ")),
			"install a newer build there, or retire what is gone, and try again")
	}
	active := v.Boxes
	err = c.updateRoster(ctx, func(r *roster.Roster) error {
		for ref, box := range r.Boxes {
			if _, seen := active[ref]; !seen && box.State == roster.Active {
				return fmt.Errorf("%w: box %q was enrolled meanwhile", roster.ErrInvalid, ref)
			}
		}
		if r.ProtocolFloor == floor {
			return errThere
		}
		r.ProtocolFloor = floor
		return nil
	})
	switch {
	case err == nil, errors.Is(err, errThere):
		return nil
	case errors.Is(err, roster.ErrInvalid):
		return refuse(err, "nothing was written; see what is enrolled with: console box list")
	}
	return fmt.Errorf("protocol %d was not required: %w", floor, err)
}

// older says of each active box that may speak an older protocol than floor
// what is known of it.
func (v view) older(floor int) (list []string) {
	for _, ref := range slices.Sorted(maps.Keys(v.Boxes)) {
		if v.Boxes[ref].State != roster.Active {
			continue
		}
		switch b := v.box(ref); {
		case b.silent:
			list = append(list, fmt.Sprintf("%s (%s)", ref, b.Status))
		case b.Protocol < floor:
			list = append(list, fmt.Sprintf("%s speaks %d", ref, b.Protocol))
		}
	}
	return list
}
