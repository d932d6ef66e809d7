package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/carlosframework/regionha/objstore"
)

var keys = []check{
	{"odd keys", Required, "a file with such a name could not be published, or would overwrite another", oddKeys},
}

// odd are keys that a store must round-trip, under a check's prefix.
func odd(b bench) []string {
	long := b.key("long/")
	for len(long) < objstore.MaxKey {
		long += strings.Repeat("x", min(100, objstore.MaxKey-len(long)-1)) + "/"
	}
	return []string{
		b.key("percent%"), b.key("percent%41"), b.key("percent%%2F"), b.key("plus+plus"), b.key("space space"),
		b.key("hash#hash"), b.key("question?x=y&z"), b.key("Größe"), b.key("日本"), b.key("e\u0301"), b.key("\u00e9"),
		b.key("Upper"), b.key("upper"), b.key("quote'\"<>&;"), b.key("colon:at@equals=comma,dollar$"), b.key("tilde~star*pipe|"),
		b.key("(paren)[bracket]{brace}"), b.key(" leading"), b.key("trailing "), b.key("dots...x"), b.key(".hidden"), b.key("back\\slash"),
		strings.TrimSuffix(long, "/") + "y",
	}
}

func oddKeys(ctx context.Context, b bench) error { return roundTrip(ctx, b, odd(b)) }

// roundTrip writes all keys, and then reads and lists each as itself.
func roundTrip(ctx context.Context, b bench, keys []string) error {
	bodies := map[string][]byte{}
	for _, key := range keys {
		bodies[key] = unique()
		if _, err := b.Put(ctx, key, bodies[key], objstore.IfAbsent()); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
	}
	for _, key := range keys {
		if err := b.holds(ctx, key, bodies[key]); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		infos, err := b.list(ctx, key)
		if err != nil {
			return fmt.Errorf("list %q: %w", key, err)
		}
		if !slices.Contains(keysOf(infos), key) {
			return fmt.Errorf("%q is not in the listing of itself", key)
		}
	}
	slices.Sort(keys)
	infos, err := b.list(ctx, b.dir)
	if err != nil {
		return err
	}
	if got := keysOf(infos); !slices.Equal(got, keys) {
		return fmt.Errorf("the listing shows %q, not %q", got, keys)
	}
	return nil
}
