package stopevidence_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/stopevidence"
)

func TestAPublishedReceiptIsTheOneThatIsRead(t *testing.T) {
	store, rec := memstore.New(), stopped()
	published, err := stopevidence.Publish(t.Context(), store, rec)
	require.NoError(t, err)
	require.Equal(t, stopevidence.Ref{Key: key(rec), SHA256: record.Digest(encode(t, rec))}, published.Ref())
	read, err := stopevidence.Read(t.Context(), store, published.Ref())
	require.NoError(t, err)
	require.Equal(t, read, published)
}

func TestTheStoredReceiptOfOneStopIsTheAnswer(t *testing.T) {
	store := memstore.New()
	first, err := stopevidence.Publish(t.Context(), store, stopped())
	require.NoError(t, err)
	for field, change := range map[string]func(*stopevidence.Record){
		"nothing":            func(*stopevidence.Record) {},
		"boot_id":            func(r *stopevidence.Record) { r.BootID = "another" },
		"controller":         func(r *stopevidence.Record) { r.Controller = "another" },
		"fence":              func(r *stopevidence.Record) { r.Fence = "another" },
		"directory_revision": func(r *stopevidence.Record) { r.DirectoryRevision++ },
		"checks":             func(r *stopevidence.Record) { r.Checks[0].Saw = "another" },
		"evidence_at":        func(r *stopevidence.Record) { r.EvidenceAt = now.Add(time.Hour) },
	} {
		rec := stopped()
		change(&rec)
		again, err := stopevidence.Publish(t.Context(), store, rec)
		require.NoError(t, err, field)
		require.Equal(t, first, again, field)
	}
	require.Len(t, store.Log(), 1)
}

func TestTheReceiptOfAnotherStopUnderTheKeyIsUnverified(t *testing.T) {
	for field, change := range map[string]func(*stopevidence.Record){
		"Enrollment":  func(r *stopevidence.Record) { r.Enrollment = "another" },
		"Incarnation": func(r *stopevidence.Record) { r.Incarnation = "another" },
		"Stamp":       func(r *stopevidence.Record) { r.Stamp++ },
	} {
		store, rec := memstore.New(), stopped()
		change(&rec)
		require.Equal(t, key(stopped()), key(rec), field)
		_, err := stopevidence.Publish(t.Context(), store, rec)
		require.NoError(t, err)
		receipt, err := stopevidence.Publish(t.Context(), store, stopped())
		require.ErrorIs(t, err, stopevidence.ErrUnverified, field)
		require.ErrorContains(t, err, field)
		require.Zero(t, receipt)
	}
}

func TestAStopForAnotherObligationHasItsOwnReceipt(t *testing.T) {
	store, retired := memstore.New(), stopped()
	retired.Obligation = stopevidence.Retirement
	release, err := stopevidence.Publish(t.Context(), store, stopped())
	require.NoError(t, err)
	retirement, err := stopevidence.Publish(t.Context(), store, retired)
	require.NoError(t, err)
	require.NotEqual(t, release.Ref(), retirement.Ref())
}

func TestWhatIsNoReceiptUnderTheKeyIsUnverified(t *testing.T) {
	failed := stopped()
	failed.Checks[0].Passed = false
	for name, body := range map[string][]byte{"garbage": []byte("{}"), "a check that did not pass": encode(t, failed)} {
		store := memstore.New()
		plant(t, store, key(stopped()), body)
		_, err := stopevidence.Publish(t.Context(), store, stopped())
		require.ErrorIs(t, err, stopevidence.ErrUnverified, name)
	}
}

func TestOnlyAStopIsPublished(t *testing.T) {
	for reason, change := range map[string]func(*stopevidence.Record){
		`check "no-holders" did not pass`:     func(r *stopevidence.Record) { r.Checks[1].Passed = false },
		`check "producers-joined" is missing`: func(r *stopevidence.Record) { r.Checks = r.Checks[:3] },
		"stamp is 0":                          func(r *stopevidence.Record) { r.Stamp, r.Session = 0, 0 },
		"host is":                             func(r *stopevidence.Record) { r.Host = "a/b" },
	} {
		store, rec := memstore.New(), stopped()
		change(&rec)
		_, err := stopevidence.Publish(t.Context(), store, rec)
		require.ErrorContains(t, err, reason)
		require.Empty(t, store.Log(), reason)
	}
}

func TestALostRequestOrAnswerIsSettledByAskingAgain(t *testing.T) {
	for _, fault := range []memstore.Fault{memstore.Lose, memstore.LoseAnswer, memstore.Hold, memstore.Replay, memstore.Refuse} {
		store := memstore.New()
		store.Inject(memstore.Once(memstore.OpPut, "control/stop/", fault))
		first, err := stopevidence.Publish(t.Context(), store, stopped())
		if err != nil {
			require.ErrorIs(t, err, objstore.ErrUnknown, "fault %d", fault)
			require.NotErrorIs(t, err, stopevidence.ErrUnverified)
			require.Zero(t, first)
		}
		later := stopped()
		later.EvidenceAt = now.Add(time.Second)
		receipt, err := stopevidence.Publish(t.Context(), store, later)
		require.NoError(t, err, "fault %d", fault)
		for _, held := range store.Held() {
			_, err := held.Deliver()
			require.ErrorIs(t, err, objstore.ErrConflict)
		}
		again, err := stopevidence.Publish(t.Context(), store, stopped())
		require.NoError(t, err)
		require.Equal(t, receipt, again, "fault %d", fault)
		require.Len(t, store.Log(), 1)
	}
}

func TestAFailedReadIsNoAnswer(t *testing.T) {
	store := memstore.New()
	_, err := stopevidence.Publish(t.Context(), store, stopped())
	require.NoError(t, err)
	later := stopped()
	later.EvidenceAt = now.Add(time.Second)
	for skip := range 3 {
		store.Inject(func(r memstore.Request) memstore.Fault {
			if r.Op == memstore.OpGet {
				if skip--; skip < 0 {
					return memstore.Lose
				}
			}
			return memstore.None
		})
		receipt, err := stopevidence.Publish(t.Context(), store, later)
		require.ErrorIs(t, err, memstore.ErrInjected)
		require.NotErrorIs(t, err, stopevidence.ErrUnverified)
		require.Zero(t, receipt)
	}
}

func TestTwoMakersGetOneReceipt(t *testing.T) {
	store := memstore.New()
	var makers sync.WaitGroup
	receipts := make([]stopevidence.Receipt, 16)
	for i := range receipts {
		makers.Go(func() {
			rec := stopped()
			rec.EvidenceAt = now.Add(time.Duration(i))
			receipt, err := stopevidence.Publish(t.Context(), store, rec)
			if err != nil {
				t.Error(err)
			}
			receipts[i] = receipt
		})
	}
	makers.Wait()
	for _, receipt := range receipts {
		require.Equal(t, receipts[0], receipt)
	}
	require.Len(t, store.Log(), 1)
}
