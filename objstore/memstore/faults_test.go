package memstore_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

func put(t *testing.T, s *memstore.Store, key, body string) objstore.Info {
	t.Helper()
	info, err := s.Put(t.Context(), key, []byte(body), objstore.Always())
	require.NoError(t, err)
	return info
}

// listing returns the keys and bodies' sizes under prefix, and the error that
// ended it.
func listing(t *testing.T, s *memstore.Store, prefix string) (seen []string, err error) {
	t.Helper()
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			return seen, err
		}
		seen = append(seen, fmt.Sprintf("%s:%d", info.Key, info.Size))
	}
	return seen, nil
}

func TestALostWriteDoesNotApplyAndALostAnswerDoes(t *testing.T) {
	s := memstore.New()
	s.Inject(memstore.Once(memstore.OpPut, "k", memstore.Lose))
	_, err := s.Put(t.Context(), "k", []byte("1"), objstore.IfAbsent())
	require.ErrorIs(t, err, objstore.ErrUnknown)
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.Empty(t, s.Log())

	s.Inject(memstore.Once(memstore.OpPut, "k", memstore.LoseAnswer))
	_, err = s.Put(t.Context(), "k", []byte("1"), objstore.IfAbsent())
	require.ErrorIs(t, err, objstore.ErrUnknown)
	require.Len(t, s.Log(), 1)

	_, err = s.Put(t.Context(), "k", []byte("2"), objstore.IfAbsent())
	require.ErrorIs(t, err, objstore.ErrConflict, "Once is over")
	require.Equal(t, 3, s.Requests()[memstore.OpPut])
}

func TestOnceFailsOneKindOfRequestUnderOnePrefix(t *testing.T) {
	s := memstore.New()
	put(t, s, "k", "1")
	s.Inject(memstore.Once(memstore.OpPut, "k", memstore.Lose))
	_, err := s.Get(t.Context(), "k")
	require.NoError(t, err, "another kind of request")
	put(t, s, "other", "1")
	_, err = s.Put(t.Context(), "k/below", []byte("1"), objstore.IfAbsent())
	require.ErrorIs(t, err, memstore.ErrInjected)
	put(t, s, "k", "2")
}

func TestAHeldWriteLandsUnderItsOwnConditionLater(t *testing.T) {
	s := memstore.New()
	one := put(t, s, "k", "1")
	s.Inject(func(r memstore.Request) memstore.Fault {
		if strings.HasPrefix(string(r.Body), "late") {
			return memstore.Hold
		}
		return memstore.None
	})
	ctx, cancel := context.WithCancel(t.Context())
	for _, body := range []string{"late a", "late b"} {
		_, err := s.Put(ctx, "k", []byte(body), objstore.IfMatch(one.ETag))
		require.ErrorIs(t, err, objstore.ErrUnknown)
	}
	cancel() // its sender dies
	held := s.Held()
	require.Len(t, held, 2)
	require.Equal(t, "late a", string(held[0].Body))
	_, err := held[1].Deliver()
	require.NoError(t, err)
	require.Equal(t, held[:1], s.Held(), "the other one is still out")
	_, err = held[0].Deliver()
	require.ErrorIs(t, err, objstore.ErrConflict)
	require.Empty(t, s.Held())
	_, err = held[1].Deliver()
	require.ErrorIs(t, err, objstore.ErrConflict, "a duplicated packet meets its own write")
}

func TestAReplayedWriteConflictsWithItself(t *testing.T) {
	s := memstore.New()
	s.Inject(memstore.Once(memstore.OpPut, "k", memstore.Replay))
	_, err := s.Put(t.Context(), "k", []byte("1"), objstore.IfAbsent())
	require.ErrorIs(t, err, objstore.ErrConflict)
	require.Len(t, s.Log(), 1)
}

func TestAFailedReadIsNeverNotFound(t *testing.T) {
	s := memstore.New()
	info := put(t, s, "k", "1")
	for _, fault := range []memstore.Fault{memstore.Lose, memstore.LoseAnswer} {
		s.Inject(func(memstore.Request) memstore.Fault { return fault })
		_, err := s.Get(t.Context(), "none")
		require.ErrorIs(t, err, memstore.ErrInjected)
		require.NotErrorIs(t, err, objstore.ErrNotFound)
		_, _, err = s.GetReader(t.Context(), "k", "", 0)
		require.ErrorIs(t, err, memstore.ErrInjected)
		_, _, err = s.GetVersion(t.Context(), "k", info.VersionID)
		require.ErrorIs(t, err, memstore.ErrInjected)
		_, err = listing(t, s, "")
		require.ErrorIs(t, err, memstore.ErrInjected)
	}
}

func TestAStaleListingMissesOnlyTheNewestWrite(t *testing.T) {
	s := memstore.New()
	put(t, s, "a/1", "1")
	put(t, s, "a/2", "2")
	put(t, s, "a/2", "22")
	put(t, s, "b/1", "1")
	stale := func(r memstore.Request) memstore.Fault { return memstore.Stale }
	s.Inject(stale)
	seen, err := listing(t, s, "a/")
	require.NoError(t, err)
	require.Equal(t, []string{"a/1:1", "a/2:1"}, seen)
	seen, err = listing(t, s, "b/")
	require.NoError(t, err)
	require.Empty(t, seen)
	s.Inject(nil)
	seen, err = listing(t, s, "")
	require.NoError(t, err)
	require.Equal(t, []string{"a/1:1", "a/2:2", "b/1:1"}, seen)
}

func TestATornListingIsAnErrorAfterAPart(t *testing.T) {
	s := memstore.New()
	for i := range 1500 {
		put(t, s, fmt.Sprintf("k/%04d", i), "x")
	}
	pages := 0
	s.Inject(func(r memstore.Request) memstore.Fault {
		if pages++; pages == 2 {
			return memstore.Torn
		}
		return memstore.None
	})
	seen, err := listing(t, s, "k/")
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.Len(t, seen, 1250)
	require.Equal(t, 2, s.Requests()[memstore.OpList])
}

func TestTheLogHasEveryAppliedWriteInOrder(t *testing.T) {
	s := memstore.New()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	s.Now = func() time.Time { return at }
	one := put(t, s, "a", "1")
	two, err := s.Put(t.Context(), "a", []byte("2"), objstore.IfMatch(one.ETag))
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "a", []byte("3"), objstore.IfMatch(one.ETag))
	require.ErrorIs(t, err, objstore.ErrConflict)
	copied, err := s.CopyVersion(t.Context(), "a", one.VersionID, "b")
	require.NoError(t, err)
	require.NoError(t, s.DeleteVersion(t.Context(), "a", one.VersionID))
	log := s.Log()
	require.Len(t, log, 3)
	require.Equal(t, []objstore.Info{one, two, copied}, []objstore.Info{log[0].Info, log[1].Info, log[2].Info})
	require.Equal(t, []uint64{1, 2, 3}, []uint64{log[0].Seq, log[1].Seq, log[2].Seq})
	require.Equal(t, record.Digest([]byte("2")), log[1].SHA256)
	require.Equal(t, objstore.IfMatch(one.ETag), log[1].Cond)
	require.Equal(t, at, log[1].ModTime)
}

func TestBodiesAreTheCallersOwn(t *testing.T) {
	s := memstore.New()
	body := []byte("one")
	info, err := s.Put(t.Context(), "k", body, objstore.IfAbsent())
	require.NoError(t, err)
	body[0] = 'X'
	o, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	o.Body[1] = 'X'
	r, _, err := s.GetVersion(t.Context(), "k", info.VersionID)
	require.NoError(t, err)
	stored, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "one", string(stored))
}

func TestABodyOfAnotherSizeIsNotWritten(t *testing.T) {
	s := memstore.New()
	for _, size := range []int64{2, 4} {
		_, err := s.PutReader(t.Context(), "k", strings.NewReader("one"), size, objstore.IfAbsent())
		require.ErrorIs(t, err, objstore.ErrUnknown)
	}
	require.Empty(t, s.Log())
}

func TestLosingTheAnswerOfADeletionOrCopy(t *testing.T) {
	s := memstore.New()
	info := put(t, s, "k", "1")
	s.Inject(func(memstore.Request) memstore.Fault { return memstore.LoseAnswer })
	_, err := s.CopyVersion(t.Context(), "k", info.VersionID, "copy")
	require.ErrorIs(t, err, objstore.ErrUnknown)
	require.ErrorIs(t, s.DeleteVersion(t.Context(), "k", info.VersionID), objstore.ErrUnknown)
	s.Inject(nil)
	seen, err := listing(t, s, "")
	require.NoError(t, err)
	require.Equal(t, []string{"copy:1"}, seen)
}

func TestAForgetfulStoreKeepsTheNewestOnly(t *testing.T) {
	s := memstore.New()
	s.Forget = true
	for _, body := range []string{"1", "2"} {
		_, err := s.Put(t.Context(), "k", []byte(body), objstore.Always())
		require.NoError(t, err)
	}
	got, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "2", string(got.Body))
	var versions int
	for _, err := range s.ListVersions(t.Context(), "") {
		require.NoError(t, err)
		versions++
	}
	require.Equal(t, 1, versions)
	require.Empty(t, s.Log())
}
