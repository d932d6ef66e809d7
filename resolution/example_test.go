package resolution_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/resolution"
)

// An operator lets a stuck operation go on with a new box. A slip of the hand is
// refused before anything is written, and a number holds one decision.
func Example() {
	ctx, store := context.Background(), memstore.New()
	rec := resolution.Record{
		Host: "shop.example", Op: "op-7", N: 1, Gen: 40, Box: "shop-3", Enrollment: "e-shop-3",
		Who: "ada@example.com", Why: "both spares are gone", Confirmation: "shop.exmaple",
		DecidedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	_, err := resolution.Publish(ctx, store, rec)
	fmt.Println(err)

	rec.Confirmation = "shop.example"
	published, err := resolution.Publish(ctx, store, rec)
	if err != nil {
		fmt.Println(err)
		return
	}
	read, err := resolution.Read(ctx, store, published.Ref())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read.Op(), "goes on with", read.Box(), "from gen", read.Gen())

	rec.Box, rec.Enrollment = "shop-4", "e-shop-4"
	_, err = resolution.Publish(ctx, store, rec)
	fmt.Println("taken:", errors.Is(err, objstore.ErrConflict))

	// Output:
	// resolution: publish 1 of "op-7": invalid resolution: confirmation is "shop.exmaple", expected the host's name "shop.example"
	// op-7 goes on with shop-3 from gen 40
	// taken: true
}
