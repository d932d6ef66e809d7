package objstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

const key = "control/hosts/shop.example.json"

// begin returns a store whose key holds "one".
func begin(t *testing.T) (*memstore.Store, objstore.Info) {
	t.Helper()
	s := memstore.New()
	info, err := s.Put(t.Context(), key, []byte("one"), objstore.IfAbsent())
	require.NoError(t, err)
	return s, info
}

// inject makes one PUT fail so.
func inject(s *memstore.Store, fault memstore.Fault) {
	s.Inject(memstore.Once(memstore.OpPut, key, fault))
}

func holds(t *testing.T, s objstore.Store, body string) {
	t.Helper()
	o, err := s.Get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, body, string(o.Body))
}

func TestAnAnsweredWriteCostsOneRequest(t *testing.T) {
	s, one := begin(t)
	_, err := objstore.PutSettled(t.Context(), s, key, []byte("two"), objstore.IfMatch(one.ETag))
	require.NoError(t, err)
	require.Zero(t, s.Requests()[memstore.OpGet])
}

func TestALostAnswerIsFound(t *testing.T) {
	s, one := begin(t)
	inject(s, memstore.LoseAnswer)
	info, err := objstore.PutSettled(t.Context(), s, key, []byte("two"), objstore.IfMatch(one.ETag))
	require.NoError(t, err)
	require.NotEqual(t, one.ETag, info.ETag)
	holds(t, s, "two")
}

func TestALostRequestIsUnknown(t *testing.T) {
	s, one := begin(t)
	for _, cond := range []objstore.Condition{objstore.IfMatch(one.ETag), objstore.IfAbsent()} {
		fresh := memstore.New()
		if !cond.IsAbsent() {
			fresh = s
		}
		inject(fresh, memstore.Lose)
		_, err := objstore.PutSettled(t.Context(), fresh, key, []byte("two"), cond)
		require.ErrorIs(t, err, objstore.ErrUnknown)
		require.NotErrorIs(t, err, objstore.ErrConflict)
		require.NotErrorIs(t, err, objstore.ErrSuperseded)
	}
}

func TestAConflictWithOurOwnReplayIsSuccess(t *testing.T) {
	s, one := begin(t)
	inject(s, memstore.Replay)
	info, err := objstore.PutSettled(t.Context(), s, key, []byte("two"), objstore.IfMatch(one.ETag))
	require.NoError(t, err)
	holds(t, s, "two")

	s = memstore.New()
	inject(s, memstore.Replay)
	info, err = objstore.PutSettled(t.Context(), s, key, []byte("one"), objstore.IfAbsent())
	require.NoError(t, err)
	require.NotEmpty(t, info.ETag)
}

func TestAConflictStaysOne(t *testing.T) {
	s, one := begin(t)
	two, err := s.Put(t.Context(), key, []byte("two"), objstore.IfMatch(one.ETag))
	require.NoError(t, err)
	_, err = objstore.PutSettled(t.Context(), s, key, []byte("three"), objstore.IfMatch(one.ETag))
	require.ErrorIs(t, err, objstore.ErrConflict)

	inject(s, memstore.Refuse) // S3's 409: the version is still the one that was named
	_, err = objstore.PutSettled(t.Context(), s, key, []byte("three"), objstore.IfMatch(two.ETag))
	require.ErrorIs(t, err, objstore.ErrConflict)
	require.NotErrorIs(t, err, objstore.ErrUnknown)
	holds(t, s, "two")
}

func TestALateWriteIsUnknownUntilItsVersionIsGone(t *testing.T) {
	s, one := begin(t)
	inject(s, memstore.Hold)
	_, err := objstore.PutSettled(t.Context(), s, key, []byte("late"), objstore.IfMatch(one.ETag))
	require.ErrorIs(t, err, objstore.ErrUnknown)

	// Killing it is a write on the version that it named.
	_, err = objstore.PutSettled(t.Context(), s, key, []byte("kill"), objstore.IfMatch(one.ETag))
	require.NoError(t, err)
	_, err = s.Held()[0].Deliver()
	require.ErrorIs(t, err, objstore.ErrConflict)
	holds(t, s, "kill")
}

func TestALateWriteThatLandsIsFoundByTheKill(t *testing.T) {
	s, one := begin(t)
	inject(s, memstore.Hold)
	_, err := objstore.PutSettled(t.Context(), s, key, []byte("late"), objstore.IfMatch(one.ETag))
	require.ErrorIs(t, err, objstore.ErrUnknown)
	_, err = s.Held()[0].Deliver()
	require.NoError(t, err)
	_, err = objstore.PutSettled(t.Context(), s, key, []byte("kill"), objstore.IfMatch(one.ETag))
	require.ErrorIs(t, err, objstore.ErrConflict)
	holds(t, s, "late")
}

func TestAnUnknownWriteOverAVersionThatIsGoneIsSuperseded(t *testing.T) {
	s, one := begin(t)
	s.Inject(func(r memstore.Request) memstore.Fault {
		if string(r.Body) != "mine" {
			return memstore.None
		}
		_, err := s.Put(t.Context(), key, []byte("other"), objstore.IfMatch(one.ETag))
		require.NoError(t, err)
		return memstore.Lose
	})
	_, err := objstore.PutSettled(t.Context(), s, key, []byte("mine"), objstore.IfMatch(one.ETag))
	require.ErrorIs(t, err, objstore.ErrSuperseded)
	require.NotErrorIs(t, err, objstore.ErrUnknown)
	require.NotErrorIs(t, err, objstore.ErrConflict)
}

func TestAWriteThatLandedAndWasOverwrittenIsSuperseded(t *testing.T) {
	s, one := begin(t)
	overwrite := deaf{Store: s, after: func() {
		o, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		_, err = s.Put(t.Context(), key, []byte("other"), objstore.IfMatch(o.ETag))
		require.NoError(t, err)
	}}
	_, err := objstore.PutSettled(t.Context(), overwrite, key, []byte("mine"), objstore.IfMatch(one.ETag))
	require.ErrorIs(t, err, objstore.ErrSuperseded)
}

// deaf carries out a write, lets something happen, and loses the answer.
type deaf struct {
	objstore.Store
	after func()
}

func (d deaf) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	_, _ = d.Store.Put(ctx, key, body, cond)
	d.after()
	return objstore.Info{}, errors.New("connection reset")
}

func TestAFailedLookIsUnknown(t *testing.T) {
	for _, fault := range []memstore.Fault{memstore.LoseAnswer, memstore.Refuse, memstore.Replay} {
		s, one := begin(t)
		s.Inject(func(r memstore.Request) memstore.Fault {
			if r.Op == memstore.OpGet {
				return memstore.Lose
			}
			return fault
		})
		_, err := objstore.PutSettled(t.Context(), s, key, []byte("two"), objstore.IfMatch(one.ETag))
		require.ErrorIs(t, err, objstore.ErrUnknown)
		require.NotErrorIs(t, err, objstore.ErrConflict)
		require.NotErrorIs(t, err, objstore.ErrNotFound)
	}
}

func TestTheLookOutlivesTheCaller(t *testing.T) {
	s, one := begin(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := objstore.PutSettled(ctx, deaf{Store: s, after: cancel}, key, []byte("two"), objstore.IfMatch(one.ETag))
	require.NoError(t, err, "the caller's deadline is the commonest unknown, and the write had applied")
	require.Error(t, ctx.Err())
}

func TestAnIfMatchWriteOfARemovedKeyIsSuperseded(t *testing.T) {
	s, one := begin(t)
	s.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op != memstore.OpPut {
			return memstore.None
		}
		require.NoError(t, s.DeleteVersion(t.Context(), key, one.VersionID))
		return memstore.Lose
	})
	_, err := objstore.PutSettled(t.Context(), s, key, []byte("two"), objstore.IfMatch(one.ETag))
	require.ErrorIs(t, err, objstore.ErrSuperseded)
}

func TestOnlyAConditionCanBeSettled(t *testing.T) {
	s := memstore.New()
	for _, cond := range []objstore.Condition{{}, objstore.Always()} {
		_, err := objstore.PutSettled(t.Context(), s, key, []byte("x"), cond)
		require.ErrorIs(t, err, objstore.ErrBadCondition)
	}
	_, err := objstore.PutSettled(t.Context(), s, "", []byte("x"), objstore.IfAbsent())
	require.ErrorIs(t, err, objstore.ErrBadKey)
	_, err = objstore.PutSettled(t.Context(), s, key, []byte("x"), objstore.IfMatch(""))
	require.ErrorIs(t, err, objstore.ErrBadCondition)
	require.Empty(t, s.Requests())
}

func TestCreateTwiceIsOneRecord(t *testing.T) {
	s := memstore.New()
	first, err := objstore.Create(t.Context(), s, key, []byte("fact"))
	require.NoError(t, err)
	again, err := objstore.Create(t.Context(), s, key, []byte("fact"))
	require.NoError(t, err)
	require.Equal(t, first, again)
	_, err = objstore.Create(t.Context(), s, key, []byte("other"))
	require.ErrorIs(t, err, objstore.ErrConflict)
	require.Len(t, s.Log(), 1)
}

func TestCreateWithALostAnswerOverOtherBytesIsAConflict(t *testing.T) {
	s, _ := begin(t)
	inject(s, memstore.LoseAnswer)
	_, err := objstore.Create(t.Context(), s, key, []byte("other"))
	require.ErrorIs(t, err, objstore.ErrConflict)
	require.NotErrorIs(t, err, objstore.ErrSuperseded)
}

func TestCreateRefusedWhileNothingIsThereIsUnknown(t *testing.T) {
	s := memstore.New()
	inject(s, memstore.Refuse)
	_, err := objstore.Create(t.Context(), s, key, []byte("fact"))
	require.ErrorIs(t, err, objstore.ErrUnknown)
	require.NotErrorIs(t, err, objstore.ErrConflict)
	_, err = objstore.Create(t.Context(), s, key, []byte("fact"))
	require.NoError(t, err)
}
