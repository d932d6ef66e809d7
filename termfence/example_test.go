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

// An operator declares a box lost that no cloud reports terminated. It counts
// only once the roster keeps the box from acting.
func ExampleDeclare() {
	ctx, store := context.Background(), memstore.New()
	public, private := roster.GenerateKey()
	_, err := roster.Create(ctx, store, private, roster.Roster{
		DeploymentBucket: "s3://control",
		Regions:          map[string]roster.Region{"ie": {Account: "123456789012", AWSRegion: "eu-west-1"}},
		Boxes:            map[string]roster.Box{"shop-1": {Enrollment: "e-1", Region: "ie", State: roster.Active}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	reader := termfence.Reader{Store: store, Roster: roster.Open(store, public, "s3://control")}
	lost := termfence.Declaration{Box: "shop-1", Enrollment: "e-1", Region: "ie", Who: "Ana Ortiz", Why: "its rack burned",
		Checked: []string{"the data centre confirms it"}, Confirmation: "shop-1", DeclaredAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

	_, err = termfence.Declare(ctx, store, reader, lost)
	fmt.Println(err)

	quarantine := func(r *roster.Roster) error { return r.Quarantine("shop-1") }
	if _, err := roster.Update(ctx, store, private, reader.Roster, quarantine); err != nil {
		fmt.Println(err)
		return
	}
	evidence, err := termfence.Declare(ctx, store, reader, lost)
	fmt.Println(evidence.Box(), evidence.Declared(), evidence.Ref().Key, err)

	// Output:
	// termfence: declare "e-1" lost: evidence not verified: the box is "active", expected "quarantined" or "retired"
	// shop-1 true control/declarations/e-1.json <nil>
}
