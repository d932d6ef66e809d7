package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/carlosframework/regionha/roster"
)

// Region is what an operator sees of one region.
type Region struct {
	Code string `json:"code"` // placement code, such as ie
	roster.Region
	Boxes int `json:"boxes"` // that are active
}

// Regions lists the regions of the deployment, by placement code.
func (c *Console) Regions(ctx context.Context) ([]Region, error) {
	snap, err := c.Roster.Read(ctx)
	if err != nil {
		return nil, noDeployment(err)
	}
	active := map[string]int{}
	for _, box := range snap.Boxes {
		if box.State == roster.Active {
			active[box.Region]++
		}
	}
	list := []Region{}
	for _, code := range slices.Sorted(maps.Keys(snap.Regions)) {
		list = append(list, Region{Code: code, Region: snap.Regions[code], Boxes: active[code]})
	}
	return list, nil
}

// SetRegion adds a region, or changes the Auto Scaling group of one that is
// there. Its account, cloud region and data store stay what they are for ever:
// boxes and hosts are of them. What is there already costs no write.
func (c *Console) SetRegion(ctx context.Context, code string, want roster.Region) error {
	refuse := func(err error, next string) error {
		return &Refusal{What: fmt.Sprintf("region %q was not set", code), Err: err, Next: next}
	}
	if err := (Deployment{Region: code, Place: want}).check(); err != nil {
		return refuse(err, "correct it and run it again; nothing was written")
	}
	err := c.updateRoster(ctx, func(r *roster.Roster) error {
		held, ok := r.Region(code)
		switch {
		case held == want:
			return errThere
		case ok && (held.Account != want.Account || held.AWSRegion != want.AWSRegion || held.Data != want.Data):
			return fmt.Errorf("%w: it is %s of account %s with data in %s, for ever", roster.ErrInvalid, held.AWSRegion, held.Account, held.Data)
		}
		r.Regions[code] = want
		return nil
	})
	switch {
	case err == nil, errors.Is(err, errThere):
		return nil
	case errors.Is(err, roster.ErrInvalid):
		return refuse(err, "nothing was written; give another region another code, and see what there is with: console region list")
	}
	return fmt.Errorf("region %q was not set: %w", code, noDeployment(err))
}
