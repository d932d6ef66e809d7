package hostclaim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// cost is how many requests of each kind a store was asked.
type cost = map[memstore.Op]int

var (
	noRequest = cost{}
	oneGet    = cost{memstore.OpGet: 1}
	onePut    = cost{memstore.OpPut: 1}
	putAndGet = cost{memstore.OpPut: 1, memstore.OpGet: 1}
)

// costOf counts the requests that a call makes.
func costOf(s *memstore.Store, call func()) cost {
	before := s.Requests()
	call()
	spent := cost{}
	for op, n := range s.Requests() {
		if n > before[op] {
			spent[op] = n - before[op]
		}
	}
	return spent
}

// costStep is a transition on a claim that is in a store, or is not there yet.
type costStep struct {
	name     string
	store    *memstore.Store
	observed hostclaim.Observed
	take     hostclaim.Transition
}

// costSteps are a create of a host that never had a claim, and an admission.
func costSteps(t *testing.T) []costStep {
	o := upTo(t, "serving")
	body, err := record.Encode(o.Claim)
	require.NoError(t, err)
	s := memstore.New()
	info, err := s.Put(t.Context(), hostclaim.Key(o.Host), body, objstore.IfAbsent())
	require.NoError(t, err)
	o.ETag = info.ETag
	return []costStep{
		{"absent", memstore.New(), hostclaim.Observed{Host: o.Host}, firstCreate()},
		{"serving", s, o, anotherSession(o)},
	}
}

func anotherSession(o hostclaim.Observed) hostclaim.Transition {
	w := o.Claim.Holder
	return hostclaim.AdmitWriter(hostclaim.Admission{
		Op: o.Claim.Op.ID, Phase: o.Claim.Op.Phase, Session: w.Session, Generation: w.Generation,
		Box: o.Claim.Op.Exec, NewGeneration: "next",
		Baseline: hostclaim.Position{Generation: w.Generation, TXID: 1, FilesGeneration: w.Generation, FilesSeq: 1},
	})
}

func firstCreate() hostclaim.Transition {
	return hostclaim.BeginCreate(hostclaim.NewHost{
		Incarnation: "inc-1", Account: "demo", App: "notes", Region: "ie",
		RecordKey: "apps/demo/notes/instances/notes.demo.example.json", RecordSHA256: "ab12",
	}, "op-1", "console", time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC), hostclaim.Member{Box: "box-1", Enrollment: "enr-1"})
}

func TestAReadCostsOneGetWhateverItFinds(t *testing.T) {
	for _, s := range costSteps(t) {
		require.Equal(t, oneGet, costOf(s.store, func() {
			seen, err := hostclaim.Read(t.Context(), s.store, s.observed.Host)
			require.NoError(t, err)
			require.Equal(t, s.observed, seen)
		}), s.name)

		s.store.Inject(memstore.Once(memstore.OpGet, "", memstore.Lose))
		require.Equal(t, oneGet, costOf(s.store, func() {
			_, err := hostclaim.Read(t.Context(), s.store, s.observed.Host)
			require.ErrorIs(t, err, memstore.ErrInjected, "a failed read is never an absent claim")
		}), s.name)
	}

	garbage := memstore.New()
	_, err := garbage.Put(t.Context(), hostclaim.Key("notes.demo.example"), []byte("garbage"), objstore.IfAbsent())
	require.NoError(t, err)
	require.Equal(t, oneGet, costOf(garbage, func() {
		_, err := hostclaim.Read(t.Context(), garbage, "notes.demo.example")
		require.ErrorIs(t, err, hostclaim.ErrMalformed)
	}))
	require.Equal(t, noRequest, costOf(garbage, func() {
		_, err := hostclaim.Read(t.Context(), garbage, "Not A Host")
		require.ErrorContains(t, err, "Not A Host")
	}))
}

// TestAnUpdateCostsOnePutAndOneGetToSettleIt has a rival's write on the same
// observation out on the network; some rows let it land.
func TestAnUpdateCostsOnePutAndOneGetToSettleIt(t *testing.T) {
	for _, row := range []struct {
		name  string
		put   memstore.Fault // of the write
		get   memstore.Fault // of the look that settles it
		rival bool           // the rival's write lands just before
		cost  cost
		want  error
	}{
		{name: "it lands", cost: onePut},
		{name: "it lands, its answer is lost", put: memstore.LoseAnswer, cost: putAndGet},
		{name: "it lands twice", put: memstore.Replay, cost: putAndGet},
		{name: "it never lands", put: memstore.Lose, cost: putAndGet, want: hostclaim.ErrUnknown},
		{name: "it may still land", put: memstore.Hold, cost: putAndGet, want: hostclaim.ErrUnknown},
		{name: "nobody can look", put: memstore.LoseAnswer, get: memstore.Lose, cost: putAndGet, want: hostclaim.ErrUnknown},
		{name: "it never lands, a rival's does", put: memstore.Lose, rival: true, cost: putAndGet, want: hostclaim.ErrConflict},
		{name: "it may still arrive, a rival's lands", put: memstore.Hold, rival: true, cost: putAndGet, want: hostclaim.ErrConflict},
		{name: "a rival's lands first", rival: true, cost: putAndGet, want: hostclaim.ErrConflict},
		{name: "the store refuses it", put: memstore.Refuse, cost: putAndGet, want: hostclaim.ErrConflict},
	} {
		for _, s := range costSteps(t) {
			t.Run(row.name+"/"+s.name, func(t *testing.T) {
				rival := s.rival(t)
				s.store.Inject(func(r memstore.Request) memstore.Fault {
					if r.Op != memstore.OpPut {
						return row.get
					}
					if row.rival {
						_, err := rival.Deliver()
						require.NoError(t, err)
					}
					return row.put
				})
				var written hostclaim.Observed
				var err error
				require.Equal(t, row.cost, costOf(s.store, func() {
					written, err = hostclaim.Update(t.Context(), s.store, s.observed, s.take)
				}))
				s.store.Inject(nil)
				s.check(t, written, err, row.want)
				if row.rival {
					require.Equal(t, rival.Body, s.newest(t))
				}
			})
		}
	}
}

// rival makes the same step as another worker, and returns its write, which has
// not arrived yet.
func (s costStep) rival(t *testing.T) *memstore.Held {
	s.store.Inject(memstore.Once(memstore.OpPut, "", memstore.Hold))
	_, err := hostclaim.Update(t.Context(), s.store, s.observed, s.take)
	require.ErrorIs(t, err, hostclaim.ErrUnknown)
	return s.store.Held()[0]
}

// check holds an Update that succeeded to what is stored, and one that failed
// to the error wanted.
func (s costStep) check(t *testing.T, written hostclaim.Observed, err, want error) {
	t.Helper()
	if want != nil {
		require.ErrorIs(t, err, want)
		require.Zero(t, written)
		return
	}
	require.NoError(t, err)
	seen, err := hostclaim.Read(t.Context(), s.store, s.observed.Host)
	require.NoError(t, err)
	require.Equal(t, seen, written)
}

func (s costStep) newest(t *testing.T) []byte {
	t.Helper()
	obj, err := s.store.Get(t.Context(), hostclaim.Key(s.observed.Host))
	require.NoError(t, err)
	return obj.Body
}

func TestAnUpdateWhoseCallerHasGoneIsSettledAllTheSame(t *testing.T) {
	for _, s := range costSteps(t) {
		ctx, leave := context.WithCancel(t.Context())
		s.store.Inject(func(r memstore.Request) memstore.Fault {
			if r.Op == memstore.OpPut {
				return memstore.LoseAnswer
			}
			leave()
			return memstore.None
		})
		require.Equal(t, putAndGet, costOf(s.store, func() {
			_, err := hostclaim.Update(ctx, s.store, s.observed, s.take)
			require.NoError(t, err)
		}), s.name)
		require.Error(t, ctx.Err())
	}
}

func TestARefusedTransitionCostsNothing(t *testing.T) {
	both := costSteps(t)
	absent, serving := both[0], both[1]
	w := serving.observed.Claim.Holder
	for _, row := range []struct {
		name string
		step costStep
		take hostclaim.Transition
		want error
	}{
		{"not created", absent, hostclaim.EndSession("box-1", 1, hostclaim.Position{}), hostclaim.ErrWrongState},
		{"created already", serving, firstCreate(), hostclaim.ErrWrongState},
		{"another operation", serving, hostclaim.CompleteCreate("op-9", "box-1", "enr-1"), hostclaim.ErrStaleOp},
		{"recorded already", serving, hostclaim.PublishGeneration(w.WriterBox, w.Session), hostclaim.ErrAlreadyRecorded},
		{"an invalid claim", serving, func(c *hostclaim.Claim) error { c.Op.Exec = ""; return nil }, hostclaim.ErrMalformed},
		{"not a text", serving, func(c *hostclaim.Claim) error { c.Op.By = "\xff"; return nil }, hostclaim.ErrMalformed},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, noRequest, costOf(row.step.store, func() {
				_, err := hostclaim.Update(t.Context(), row.step.store, row.step.observed, row.take)
				require.ErrorIs(t, err, row.want)
			}))
		})
	}
	require.Equal(t, noRequest, costOf(absent.store, func() {
		_, err := hostclaim.Update(t.Context(), absent.store, hostclaim.Observed{Host: strings.ToUpper(absent.observed.Host)}, firstCreate())
		require.ErrorContains(t, err, "NOTES")
	}))
}
