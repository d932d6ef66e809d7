package roster_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

// A console changes the roster; a box reads it and asks whether it is the one
// that is enrolled under its reference.
func Example() {
	ctx, store := context.Background(), memstore.New()
	public, private := roster.GenerateKey()
	vm := boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: "i-0abc"}

	_, err := roster.Create(ctx, store, private, roster.Roster{
		DeploymentBucket: "s3://control",
		Regions:          map[string]roster.Region{"ie": {Account: "123456789012", AWSRegion: "eu-west-1", Data: "s3://data-ie"}},
		Boxes: map[string]roster.Box{"shop-1": {Enrollment: "e-1", Region: "ie", State: roster.Active, Cloud: vm,
			EnrolledAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	dir := roster.Open(store, public, "s3://control")
	snap, err := dir.Read(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	box, err := snap.Self("shop-1", vm)
	fmt.Println(box.Ref, box.Region, box.State, err)

	clone := vm
	clone.InstanceID = "i-0def"
	_, err = snap.Self("shop-1", clone)
	fmt.Println(errors.Is(err, roster.ErrNotSelf), err)

	_, err = roster.Update(ctx, store, private, dir, func(r *roster.Roster) error {
		delete(r.Boxes, "shop-1")
		return nil
	})
	fmt.Println(errors.Is(err, roster.ErrInvalid), err)

	// Output:
	// shop-1 ie active <nil>
	// true roster: box "shop-1": this machine is not that box: instance "i-0def", the entry's is "i-0abc"
	// true roster: update: invalid roster: box "shop-1": enrollment "e-1" becomes ""; a reference has one, for ever
}
