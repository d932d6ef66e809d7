package storetest

import (
	"context"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// liar is a good store that misdescribes what one of its methods did.
type liar struct {
	*memstore.Store
	about string
	lie   func(*objstore.Info)
	body  string // what a reader yields, if not the object
}

func (l liar) say(about string, info objstore.Info) objstore.Info {
	if about == l.about && l.lie != nil {
		l.lie(&info)
	}
	return info
}

func (l liar) read(about string, r io.ReadCloser) io.ReadCloser {
	if about == l.about && l.body != "" && r != nil {
		return io.NopCloser(strings.NewReader(l.body))
	}
	return r
}

func (l liar) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	info, err := l.Store.Put(ctx, key, body, cond)
	return l.say("put", info), err
}

func (l liar) PutReader(ctx context.Context, key string, r io.ReadSeeker, size int64, cond objstore.Condition) (objstore.Info, error) {
	info, err := l.Store.PutReader(ctx, key, r, size, cond)
	return l.say("put reader", info), err
}

func (l liar) Get(ctx context.Context, key string) (objstore.Object, error) {
	o, err := l.Store.Get(ctx, key)
	o.Info = l.say("get", o.Info)
	return o, err
}

func (l liar) GetReader(ctx context.Context, key, ifMatch string, offset int64) (io.ReadCloser, objstore.Info, error) {
	r, info, err := l.Store.GetReader(ctx, key, ifMatch, offset)
	return l.read("get reader", r), l.say("get reader", info), err
}

func (l liar) GetVersion(ctx context.Context, key, id string) (io.ReadCloser, objstore.Info, error) {
	r, info, err := l.Store.GetVersion(ctx, key, id)
	return l.read("get version", r), l.say("get version", info), err
}

func (l liar) CopyVersion(ctx context.Context, src, id, dst string) (objstore.Info, error) {
	info, err := l.Store.CopyVersion(ctx, src, id, dst)
	return l.say("copy", info), err
}

func (l liar) List(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		for info, err := range l.Store.List(ctx, prefix) {
			if !yield(l.say("list", info), err) {
				return
			}
		}
	}
}

// One wrong field is enough, and so is one wrong body.
func TestALieAboutOneFieldIsFound(t *testing.T) {
	fields := map[string]func(*objstore.Info){
		"key":     func(i *objstore.Info) { i.Key += "x" },
		"etag":    func(i *objstore.Info) { i.ETag = `"x"` },
		"version": func(i *objstore.Info) { i.VersionID += "x" },
		"size":    func(i *objstore.Info) { i.Size++ },
		"time":    func(i *objstore.Info) { i.ModTime = time.Time{} },
		"none":    func(i *objstore.Info) { i.VersionID = "" },
		"same":    func(i *objstore.Info) { i.VersionID = "v" },
	}
	for _, c := range []struct{ finds, about, fields string }{
		{"read after write", "get", "key etag version size time"},
		{"list after write", "list", "etag size time"},
		{"reads from an offset", "get reader", "size"},
		{"empty body", "get reader", "size body"},
		{"large body", "put reader", "size"},
		{"large body", "get reader", "etag"},
		{"version list, get and copy", "put", "none same"},
		{"version list, get and copy", "get version", "etag version body"},
		{"version list, get and copy", "copy", "key none"},
	} {
		for field := range strings.FieldsSeq(c.fields) {
			t.Run(c.finds+"/"+c.about+"/"+field, func(t *testing.T) {
				skipLarge(t, c.finds)
				l := liar{Store: memstore.New(), about: c.about, lie: fields[field]}
				if field == "body" {
					l.body = "another body"
				}
				err := checkNamed(t, c.finds).result(t.Context(), bench{Store: l, dir: prefix}).Err
				require.Error(t, err)
				if c.about == "put" {
					require.ErrorContains(t, err, "was given the version id", "the first thing to see of it")
				}
			})
		}
	}
}

// skipLarge spares -short, and so the race detector, the large bodies.
func skipLarge(t *testing.T, check string) {
	if testing.Short() && strings.Contains(check, "large") {
		t.Skip("moves large bodies")
	}
}

func checkNamed(t *testing.T, name string) check {
	t.Helper()
	for _, c := range all() {
		if c.name == name {
			return c
		}
	}
	require.Fail(t, "no such check", name)
	return check{}
}
