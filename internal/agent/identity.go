package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/awscloud/imds"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/proof"
	"github.com/carlosframework/regionha/objstore/storetest"
	"github.com/carlosframework/regionha/objstore/storeurl"
	"github.com/carlosframework/regionha/roster"
)

// prove waits until this machine is proven to be the box, and opens its region's
// data store. Until then the box does nothing: no rows, leases, admissions or
// edges file.
func (a *Agent) prove(ctx context.Context) error {
	a.who = proof.Config{
		Control: a.control, Roster: a.roster, Machine: imds.New(""), Box: a.set.Box, Region: a.set.Region, Log: a.log,
		Waiting: func(why string) { a.notReady(errors.New(why)) },
	}
	box, region, err := proof.Wait(ctx, a.who)
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

// mayAct compares this machine once more with a roster that was just read, at
// the cost of asking the metadata service. [roster.ErrNotSelf] is the roster's
// own word: it holds the box as another machine, or as declared lost or retired,
// and this one must take no new work. Any other error says nothing.
func (a *Agent) mayAct(ctx context.Context, snap roster.Snapshot) error {
	_, _, err := proof.Match(ctx, a.who, snap)
	switch {
	case err == nil:
		a.alerts.Clear(alert.Enrollment, a.self.Box)
	case errors.Is(err, roster.ErrNotSelf):
		a.alerts.Raise(alert.Enrollment, a.self.Box, "this machine may not act as its box any more: it takes no new work", "err", err)
	}
	return err
}
