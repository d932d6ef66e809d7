package storetest

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/carlosframework/regionha/objstore"
)

var notes = []check{
	{"a key beside keys below it", Note, "nothing: regionha's keys are prefix-free", beside},
	{"components over 255 bytes", Note, "nothing: regionha's keys have short components", longComponent},
	{"keys with empty and dot components", Note, "nothing: regionha's keys have none", dotKeys},
	{"create-only over a deleted key", Note, "nothing: regionha deletes no key that it creates again", recreate},
	{"no phantom keys while keys are overwritten", Note, "nothing: listings ignore keys that are not their own", phantoms},
	{"foreign files", Note, "nothing: the store leaves files that are not its own alone", foreignFiles},
	{"clock", Note, "workers and agents whose clock is more than 30s from the store's refuse to drive", clock},
}

func beside(ctx context.Context, b bench) error {
	return roundTrip(ctx, b, []string{b.key("a"), b.key("a/b"), b.key("a/b/c"), b.key("a.b"), b.key("a-b"), b.key("ab")})
}

func longComponent(ctx context.Context, b bench) error {
	x := strings.Repeat("x", 300)
	return roundTrip(ctx, b, []string{b.key(x), b.key(x + "/y"), b.key(x + " y"), b.key(strings.Repeat("é", 150))})
}

func dotKeys(ctx context.Context, b bench) error {
	return roundTrip(ctx, b, []string{b.key("a/"), b.key("b//c"), b.key("d/./e"), b.key("f/../g"), b.key(".."), b.key("new\nline"), b.key("tab\t")})
}

func recreate(ctx context.Context, b bench) error {
	v, ok := b.Store.(objstore.Versioned)
	if !ok {
		return errSkip
	}
	key := b.key("k")
	for range 2 {
		info, err := b.put(ctx, key, objstore.IfAbsent())
		if err != nil {
			return err
		}
		if err := v.DeleteVersion(ctx, key, info.VersionID); err != nil {
			return err
		}
	}
	return b.absent(ctx, key)
}

func phantoms(ctx context.Context, b bench) error {
	keys, err := b.churn(ctx)
	if err == nil && len(keys) > 0 {
		err = fmt.Errorf("nobody wrote %q", keys[0])
	}
	return err
}

// foreignFiles asks a store that lives among other files for those.
func foreignFiles(ctx context.Context, b bench) error {
	s, ok := b.Store.(interface {
		Foreign(context.Context) iter.Seq2[string, error]
	})
	if !ok {
		return errSkip
	}
	for path, err := range s.Foreign(ctx) {
		if err != nil {
			return err
		}
		return fmt.Errorf("%s, and maybe more, is not the store's", path)
	}
	return nil
}

func clock(ctx context.Context, b bench) error {
	before := time.Now()
	if _, err := b.put(ctx, b.key("k"), objstore.IfAbsent()); err != nil {
		return err
	}
	o, err := b.Get(ctx, b.key("k"))
	if err != nil {
		return err
	}
	if off := o.ModTime.Sub(before); off.Abs() > clockSlack {
		return fmt.Errorf("the store's clock is %s from this machine's", off.Round(time.Second))
	}
	return nil
}
