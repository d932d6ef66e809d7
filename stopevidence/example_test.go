package stopevidence_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/stopevidence"
)

// A box stopped the writer of a host, and cites the receipt in the claim. A
// worker verifies it before it takes the host away from that box.
func Example() {
	ctx, store := context.Background(), memstore.New()
	body, err := record.Encode(stopped())
	if err != nil {
		fmt.Println(err)
		return
	}
	ref := stopevidence.Ref{
		Key:    stopevidence.Key("shop.example", "op-7", "shop-1", 8, stopevidence.Release),
		SHA256: record.Digest(body),
	}
	_, err = stopevidence.Read(ctx, store, ref)
	fmt.Println("not there:", errors.Is(err, objstore.ErrNotFound))

	if _, err := objstore.Create(ctx, store, ref.Key, body); err != nil {
		fmt.Println(err)
		return
	}
	receipt, err := stopevidence.Read(ctx, store, ref)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(receipt.Box(), "stopped session", receipt.Session(), "for", receipt.Obligation())

	ref.SHA256 = record.Digest(nil)
	_, err = stopevidence.Read(ctx, store, ref)
	fmt.Println("other bytes:", errors.Is(err, stopevidence.ErrUnverified))

	// Output:
	// not there: true
	// shop-1 stopped session 8 for relocation-release
	// other bytes: true
}
