package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// broken is a good store with one fault in its own way.
type broken struct {
	*memstore.Store
	put     func(*memstore.Store, context.Context, string, []byte, objstore.Condition) (objstore.Info, error)
	get     func(*memstore.Store, context.Context, string) (objstore.Object, error)
	reader  func(*memstore.Store, context.Context, string, string, int64) (io.ReadCloser, objstore.Info, error)
	version func(*memstore.Store, context.Context, string, string) (io.ReadCloser, objstore.Info, error)
	infos   func([]objstore.Info) []objstore.Info // of a listing
	history func([]objstore.Info) []objstore.Info // of a listing of versions
}

func (b broken) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	if b.put == nil {
		return b.Store.Put(ctx, key, body, cond)
	}
	return b.put(b.Store, ctx, key, body, cond)
}

func (b broken) PutReader(ctx context.Context, key string, r io.ReadSeeker, size int64, cond objstore.Condition) (objstore.Info, error) {
	body, err := io.ReadAll(io.NewSectionReader(readerAt{r}, 0, size))
	if err != nil {
		return objstore.Info{}, err
	}
	return b.Put(ctx, key, body, cond)
}

// readerAt reads forward only, which is what a SectionReader does here.
type readerAt struct{ io.Reader }

func (r readerAt) ReadAt(p []byte, _ int64) (int, error) { return r.Read(p) }

func (b broken) Get(ctx context.Context, key string) (objstore.Object, error) {
	if b.get == nil {
		return b.Store.Get(ctx, key)
	}
	return b.get(b.Store, ctx, key)
}

func (b broken) GetReader(ctx context.Context, key, ifMatch string, offset int64) (io.ReadCloser, objstore.Info, error) {
	if b.reader == nil {
		return b.Store.GetReader(ctx, key, ifMatch, offset)
	}
	return b.reader(b.Store, ctx, key, ifMatch, offset)
}

func (b broken) GetVersion(ctx context.Context, key, id string) (io.ReadCloser, objstore.Info, error) {
	if b.version == nil {
		return b.Store.GetVersion(ctx, key, id)
	}
	return b.version(b.Store, ctx, key, id)
}

func (b broken) List(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return change(b.Store.List(ctx, prefix), b.infos)
}

func (b broken) ListVersions(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return change(b.Store.ListVersions(ctx, prefix), b.history)
}

func change(seq iter.Seq2[objstore.Info, error], f func([]objstore.Info) []objstore.Info) iter.Seq2[objstore.Info, error] {
	if f == nil {
		return seq
	}
	return func(yield func(objstore.Info, error) bool) {
		var infos []objstore.Info
		for info, err := range seq {
			if err != nil {
				yield(info, err)
				return
			}
			infos = append(infos, info)
		}
		for _, info := range f(infos) {
			if !yield(info, nil) {
				return
			}
		}
	}
}

// always writes whatever the condition.
func always(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	if err := cond.Check(); err != nil {
		return objstore.Info{}, err
	}
	return s.Put(ctx, key, body, objstore.Always())
}

// resurrect creates the absent key of an If-Match write.
func resurrect(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	info, err := s.Put(ctx, key, body, cond)
	if _, getErr := s.Get(ctx, key); errors.Is(err, objstore.ErrConflict) && errors.Is(getErr, objstore.ErrNotFound) {
		return s.Put(ctx, key, body, objstore.IfAbsent())
	}
	return info, err
}

// phantom adds a key that nobody wrote to a listing.
func phantom(infos []objstore.Info) []objstore.Info {
	if len(infos) == 0 {
		return infos
	}
	return append(infos, objstore.Info{Key: infos[len(infos)-1].Key + "~"})
}

// large is more than a store writes in one part.
const large = 16 << 20

// shorten loses the last byte of a large body.
func shorten(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	if len(body) > large {
		body = body[:len(body)-1]
	}
	return s.Put(ctx, key, body, cond)
}

// largeOver writes large bodies over what is there, whatever a condition of
// this kind says.
func largeOver(kind func(objstore.Condition) bool) func(*memstore.Store, context.Context, string, []byte, objstore.Condition) (objstore.Info, error) {
	return func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		if _, err := s.Get(ctx, key); len(body) > large && !errors.Is(err, objstore.ErrNotFound) && kind(cond) {
			cond = objstore.Always()
		}
		return s.Put(ctx, key, body, cond)
	}
}

// faulty are the ways to be broken, each with a check that must find it.
var faulty = map[string]struct {
	broken
	finds string
}{
	"create-only is ignored": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		if cond.IsAbsent() {
			cond = objstore.Always()
		}
		return s.Put(ctx, key, body, cond)
	}}, "create-only"},
	"if-match is ignored": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		if _, match := cond.ETag(); match {
			return always(s, ctx, key, body, cond)
		}
		return s.Put(ctx, key, body, cond)
	}}, "if-match"},
	"if-match creates": {broken{put: resurrect}, "if-match on an absent key"},
	"checked and then written": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		o, err := s.Get(ctx, key)
		etag, match := cond.ETag()
		if cond.IsAbsent() && err == nil || match && (err != nil || o.ETag != etag) {
			return objstore.Info{}, objstore.ErrConflict
		}
		runtime.Gosched()
		return always(s, ctx, key, body, cond)
	}}, "create-only race"},
	"bad keys are taken": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		return s.Put(ctx, "k"+strings.ToValidUTF8(strings.Trim(key, "\x00"), ""), body, cond)
	}}, "refused input"},
	"if-match of an unknown ETag applies": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		if cond == objstore.IfMatch(`"00000000000000000000000000000000"`) {
			cond = objstore.Always()
		}
		return s.Put(ctx, key, body, cond)
	}}, "if-match"},
	"a refused write applies": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		info, err := s.Put(ctx, key, body, cond)
		if errors.Is(err, objstore.ErrConflict) {
			_, _ = s.Put(ctx, key, body, objstore.Always())
		}
		return info, err
	}}, "if-match on an absent key"},
	"conditions hold for a while": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		if len(s.Log()) > 2 {
			return always(s, ctx, key, body, cond)
		}
		return s.Put(ctx, key, body, cond)
	}}, "if-match race"},
	"an answered write is lost": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		if _, match := cond.ETag(); match && len(s.Log())%10 == 0 {
			o, err := s.Get(ctx, key)
			return o.Info, err
		}
		return s.Put(ctx, key, body, cond)
	}}, "compare-and-swap counter"},
	"nothing can be overwritten": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		if cond == objstore.Always() {
			return objstore.Info{}, objstore.ErrUnknown
		}
		return s.Put(ctx, key, body, cond)
	}}, "listing while keys are overwritten"},
	"a listing invents a key":      {broken{infos: phantom}, "odd keys"},
	"a deleted key is resurrected": {broken{put: resurrect}, "if-match on a deleted key"},
	"versions are of any key": {broken{version: func(s *memstore.Store, ctx context.Context, _, id string) (io.ReadCloser, objstore.Info, error) {
		for _, w := range s.Log() {
			if w.VersionID == id {
				return s.GetVersion(ctx, w.Key, id)
			}
		}
		return nil, objstore.Info{}, objstore.ErrNotFound
	}}, "version list, get and copy"},
	"reads ignore the ETag that they want": {broken{reader: func(s *memstore.Store, ctx context.Context, key, _ string, offset int64) (io.ReadCloser, objstore.Info, error) {
		return s.GetReader(ctx, key, "", offset)
	}}, "reads from an offset"},
	"long keys are taken": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		return s.Put(ctx, key[:min(len(key), objstore.MaxKey)], body, cond)
	}}, "refused input"},
	"long keys are refused": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		if len(key) == objstore.MaxKey {
			return objstore.Info{}, objstore.ErrBadKey
		}
		return s.Put(ctx, key, body, cond)
	}}, "odd keys"},
	"reads are stale": {broken{get: func(s *memstore.Store, ctx context.Context, key string) (objstore.Object, error) {
		o, err := s.Get(ctx, key)
		for info, verr := range s.ListVersions(ctx, key) {
			if verr != nil || info.Key != key || info.VersionID == o.VersionID {
				continue
			}
			r, info, verr := s.GetVersion(ctx, key, info.VersionID)
			if verr != nil {
				return o, verr
			}
			body, verr := io.ReadAll(r)
			return objstore.Object{Info: info, Body: body}, verr
		}
		return o, err
	}}, "read after write"},
	"failures read as absent": {broken{get: func(s *memstore.Store, ctx context.Context, key string) (objstore.Object, error) {
		o, err := s.Get(ctx, key)
		if err != nil {
			err = objstore.ErrNotFound
		}
		return o, err
	}}, "cancelled context"},
	"everything is there": {broken{get: func(s *memstore.Store, ctx context.Context, key string) (objstore.Object, error) {
		o, err := s.Get(ctx, key)
		if errors.Is(err, objstore.ErrNotFound) {
			err = nil
		}
		return o, err
	}}, "not found"},
	"a listing lags":              {broken{infos: func(infos []objstore.Info) []objstore.Info { return infos[:max(0, len(infos)-1)] }}, "list after write"},
	"a listing ends after a page": {broken{infos: func(infos []objstore.Info) []objstore.Info { return infos[:min(1000, len(infos))] }}, "listing order and paging"},
	"a listing is in path order": {broken{infos: func(infos []objstore.Info) []objstore.Info {
		slices.SortFunc(infos, func(a, b objstore.Info) int {
			return slices.Compare(strings.Split(a.Key, "/"), strings.Split(b.Key, "/"))
		})
		return infos
	}}, "listing order and paging"},
	"a listing repeats itself": {broken{infos: func(infos []objstore.Info) []objstore.Info { return append(infos, infos...) }}, "listing while keys are overwritten"},
	"case is folded": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		return s.Put(ctx, strings.ToLower(key), body, cond)
	}}, "odd keys"},
	"bodies lose a trailing zero":    {broken{put: shorten}, "large body"},
	"parts lose a trailing zero":     {broken{put: shorten}, "conditions on large bodies"},
	"a large body overwrites others": {broken{put: largeOver(func(objstore.Condition) bool { return true })}, "conditions on large bodies"},
	"a large body takes a stale ETag": {broken{put: largeOver(func(cond objstore.Condition) bool {
		_, match := cond.ETag()
		return match
	})}, "conditions on large bodies"},
	"of large bodies all win": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		if len(body) > large {
			cond = objstore.Always()
		}
		return s.Put(ctx, key, body, cond)
	}}, "create-only race of large bodies"},
	"the largest body is too large": {broken{get: func(s *memstore.Store, ctx context.Context, key string) (objstore.Object, error) {
		o, err := s.Get(ctx, key)
		if len(o.Body) == objstore.MaxGet {
			err = objstore.ErrTooLarge
		}
		return o, err
	}}, "large body"},
	"large bodies ignore conditions": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		if len(body) > large {
			return always(s, ctx, key, body, cond)
		}
		return s.Put(ctx, key, body, cond)
	}}, "conditions on large bodies"},
	"versions are listed oldest first": {broken{history: func(infos []objstore.Info) []objstore.Info { slices.Reverse(infos); return infos }}, "version list, get and copy"},
	"a deleted version is listed": {broken{history: func(infos []objstore.Info) []objstore.Info {
		if len(infos) == 3 {
			return append([]objstore.Info{{Key: infos[0].Key, VersionID: "gone"}}, infos...)
		}
		return infos
	}}, "deleting exactly one version"},
	"an absent key is said to be a conflict for a record": {broken{put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
		if o, err := s.Get(ctx, key); err == nil && bytes.Equal(o.Body, body) {
			return objstore.Info{}, context.DeadlineExceeded
		}
		return s.Put(ctx, key, append(body, ' '), cond)
	}}, "immutable records"},
}

func TestEachFaultIsFoundByItsCheck(t *testing.T) {
	for name, f := range faulty {
		t.Run(name, func(t *testing.T) {
			f.broken.Store = memstore.New()
			skipLarge(t, f.finds)
			r := checkNamed(t, f.finds).result(t.Context(), bench{Store: f.broken, dir: prefix, rounds: raceRounds})
			require.Error(t, r.Err)
			require.Equal(t, Required, r.Need)
			require.NotEmpty(t, r.Why)
		})
	}
}

func TestGuard(t *testing.T) {
	s := memstore.New()
	require.NoError(t, Guard(t.Context(), s))
	total := 0
	for _, n := range s.Requests() {
		total += n
	}
	require.LessOrEqual(t, total, 8)
	for info, err := range s.ListVersions(t.Context(), "") {
		require.NoError(t, err)
		require.Fail(t, "left behind", info.Key)
	}

	for _, name := range []string{"create-only is ignored", "if-match is ignored"} {
		unfit := faulty[name].broken
		unfit.Store = memstore.New()
		err := Guard(t.Context(), unfit)
		require.ErrorIs(t, err, ErrUnfit, name)
		require.ErrorContains(t, err, "two boxes could both hold a claim")
	}
}

func TestGuardOnAStoreThatDoesNotAnswerSaysNothingOfItsFitness(t *testing.T) {
	var n atomic.Int32
	for after := range int32(5) {
		s := memstore.New()
		n.Store(0)
		s.Inject(func(memstore.Request) memstore.Fault {
			if n.Add(1) > after {
				return memstore.Lose
			}
			return memstore.None
		})
		err := Guard(t.Context(), s)
		require.ErrorIs(t, err, memstore.ErrInjected)
		require.NotErrorIs(t, err, ErrUnfit)
	}
}
