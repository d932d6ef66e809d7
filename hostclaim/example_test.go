package hostclaim_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// Two boxes want one host. The claim names one of them, and the other's step is
// refused whatever it believes.
func Example() {
	ctx, store := context.Background(), memstore.New() // or storeurl.Open(ctx, "s3://bucket")
	a := hostclaim.Member{Box: "box-a", Enrollment: "e1"}

	o, err := hostclaim.Read(ctx, store, "notes.example.com")
	if err != nil {
		panic(err) // never "absent": that is o.Claim == nil
	}
	host := hostclaim.NewHost{Incarnation: "i1", Account: "demo", App: "notes", Region: "ie",
		RecordKey: "apps/demo/notes/instances/notes.example.com.json", RecordSHA256: "ab12"}
	o, err = hostclaim.Update(ctx, store, o, hostclaim.Then(
		hostclaim.BeginCreate(host, "op-1", "me", time.Now(), a),
		hostclaim.CompleteCreate("op-1", a.Box, a.Enrollment),
		hostclaim.AdmitWriter(hostclaim.Admission{Op: "op-1", Box: a.Box, NewGeneration: "g1", KeepStamp: true})))
	fmt.Println(err, o.Claim.Op.Exec, "may write", o.Claim.Holder.Generation, "as session", o.Claim.Holder.Session)

	_, err = hostclaim.Update(ctx, store, o, hostclaim.AdmitWriter(hostclaim.Admission{
		Op: "op-1", Box: "box-b", Session: 1, Generation: "g1", NewGeneration: "g2"}))
	fmt.Println(errors.Is(err, hostclaim.ErrWrongState), err)
	// Output:
	// <nil> box-a may write g1 as session 1
	// true hostclaim: notes.example.com: not legal in this state: box-b is not the executor, "box-a" is
}

// Whoever observed an older claim gets a conflict, reads again, and finds what
// was done meanwhile.
func ExampleUpdate() {
	ctx, store := context.Background(), memstore.New()
	a := hostclaim.Member{Box: "box-a", Enrollment: "e1"}
	absent := hostclaim.Observed{Host: "notes.example.com"}
	create := hostclaim.BeginCreate(hostclaim.NewHost{Incarnation: "i1", Account: "demo", App: "notes", Region: "ie",
		RecordKey: "apps/x", RecordSHA256: "ab12"}, "op-1", "me", time.Now(), a)

	_, err := hostclaim.Update(ctx, store, absent, create)
	fmt.Println(err)
	_, err = hostclaim.Update(ctx, store, absent, create)
	fmt.Println(errors.Is(err, hostclaim.ErrConflict))
	now, _ := hostclaim.Read(ctx, store, absent.Host)
	_, err = hostclaim.Update(ctx, store, now, create)
	fmt.Println(errors.Is(err, hostclaim.ErrAlreadyRecorded))
	// Output:
	// <nil>
	// true
	// true
}
