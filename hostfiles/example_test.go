package hostfiles_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/objstore/dirstore"
)

// One session publishes its files; another machine prepares a generation from
// the pin, installs it, and opens it as the next session.
func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "hostfiles-example-")
	defer os.RemoveAll(dir)
	store, err := dirstore.Open(filepath.Join(dir, "store"))
	if err != nil {
		fmt.Println(err)
		return
	}
	location := "instances/notes.example/inc1"
	ie1, ie2 := filepath.Join(dir, "ie-1"), filepath.Join(dir, "ie-2")

	first := hostfiles.Target{Location: location, Generation: "g1", Session: 1, Stamp: 1}
	_, _ = hostfiles.AdmitCopy(ctx, store, hostfiles.ManifestRef{}, first) // evidenced: no files yet
	key, _ := hostfiles.EnsureInstanceKey(ctx, store, first, filepath.Join(ie1, "platform"))
	_ = os.MkdirAll(filepath.Join(ie1, "files"), 0o700)
	p, err := hostfiles.New(ctx, store, hostfiles.Config{
		Root: filepath.Join(ie1, "files"), Platform: filepath.Join(ie1, "platform"), Target: first})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = os.WriteFile(filepath.Join(ie1, "files", "upload.txt"), []byte("hello"), 0o644)
	seq, err := p.Flush(ctx)
	fmt.Println("published", seq, err)
	_ = p.Close()

	pinned, _ := hostfiles.Newest(ctx, store, location, []string{"g1"})
	prepared, _ := hostfiles.WritePrepared(ctx, store, pinned.Bytes,
		hostfiles.Target{Location: location, Generation: "p2", Stamp: 5})
	err = hostfiles.Restore(ctx, store, prepared, filepath.Join(ie2, "files"), filepath.Join(ie2, "platform"))
	fmt.Println("installed", err)
	second := hostfiles.Target{Location: location, Generation: "p2", Session: 5, Stamp: 5}
	opened, err := hostfiles.OpenPrepared(ctx, store, prepared, second)
	fmt.Println("opened at", opened.Seq, err)

	body, _ := os.ReadFile(filepath.Join(ie2, "files", "upload.txt"))
	again, _ := hostfiles.EnsureInstanceKey(ctx, store, second, filepath.Join(ie2, "platform"))
	fmt.Println(string(body), string(again) == string(key))
	// Output:
	// published 4 <nil>
	// installed <nil>
	// opened at 1 <nil>
	// hello true
}
