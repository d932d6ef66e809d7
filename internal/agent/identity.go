package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/awscloud/imds"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/proof"
	"github.com/carlosframework/regionha/objstore/storetest"
	"github.com/carlosframework/regionha/objstore/storeurl"
)

// prove waits until this machine is proven to be the box, and opens its region's
// data store. Until then the box does nothing: no rows, leases, admissions or
// edges file.
func (a *Agent) prove(ctx context.Context) error {
	box, region, err := proof.Wait(ctx, proof.Config{
		Control: a.control, Roster: a.roster, Machine: imds.New(""), Box: a.set.Box, Region: a.set.Region, Log: a.log,
		Waiting: func(why string) { a.notReady(errors.New(why)) },
	})
	if err != nil {
		return err
	}
	a.self = hostclaim.Member{Box: box.Ref, Enrollment: box.Enrollment}
	if a.data, err = storeurl.Open(ctx, region.Data); err != nil {
		return fmt.Errorf("data store of region %s: %w", a.set.Region, err)
	}
	if err := storetest.Guard(ctx, a.data); err != nil {
		return fmt.Errorf("data store of region %s: %w", a.set.Region, err)
	}
	a.log.Info("this machine is the box", "enrollment", box.Enrollment)
	return nil
}
