package console

import (
	"context"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/storeurl"
)

// openURL opens the store at url, and says under which name the roster knows
// it.
func openURL(ctx context.Context, url string) (objstore.Store, string, error) {
	name, err := storeurl.Name(url)
	if err != nil {
		return nil, "", err
	}
	store, err := storeurl.Open(ctx, url)
	return store, name, err
}
