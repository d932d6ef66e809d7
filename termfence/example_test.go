package termfence_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// A worker looks at a box of its region twice: first the box is stopped, which
// proves nothing, then it is terminated.
func Example() {
	ctx, store := context.Background(), memstore.New()
	public, private := roster.GenerateKey()
	instance := func(id string) boxid.Cloud {
		return boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: id}
	}
	snap, err := roster.Create(ctx, store, private, roster.Roster{
		DeploymentBucket: "s3://control",
		Regions:          map[string]roster.Region{"ie": {Account: "123456789012", AWSRegion: "eu-west-1"}},
		Boxes: map[string]roster.Box{
			"shop-1":   {Enrollment: "e-1", Region: "ie", State: roster.Active, Cloud: instance("i-0abc")},
			"worker-1": {Enrollment: "e-2", Region: "ie", State: roster.Active, Cloud: instance("i-0def")},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	box, _ := snap.Box("shop-1")
	worker, _ := snap.Box("worker-1")
	reader := termfence.Reader{Store: store, Roster: roster.Open(store, public, "s3://control")}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	seen := termfence.Observation{Via: termfence.ViaDescribe, Found: true, InstanceID: "i-0abc",
		Account: "123456789012", Region: "eu-west-1", State: "stopped", RequestID: "req-1"}
	_, err = termfence.Verify(box, worker, seen, now)
	fmt.Println(errors.Is(err, termfence.ErrNoProof), err)

	seen.State, seen.RequestID = "terminated", "req-2"
	fence, err := termfence.Verify(box, worker, seen, now.Add(time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	evidence, err := termfence.Publish(ctx, store, reader, fence)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(evidence.Box(), evidence.Region(), evidence.ObservedAt().Format(time.TimeOnly), evidence.Ref().Key)

	// Output:
	// true termfence: box "shop-1": no proof of termination: state "stopped", only "terminated" counts
	// shop-1 ie 03:05:05 control/box-fences/e-1.json
}
