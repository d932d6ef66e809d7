package boxvolumes_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

func TestReadJudgesWhatIsStored(t *testing.T) {
	s := memstore.New()
	store(t, s, life()...)
	v, err := boxvolumes.Read(t.Context(), s, shop, terminated)
	require.NoError(t, err)
	require.Equal(t, judge(life()), v)
	require.True(t, v.Discharged())
	require.Equal(t, map[memstore.Op]int{memstore.OpPut: 3, memstore.OpList: 1, memstore.OpGet: 3}, s.Requests())
}

func TestReadJudgesByTheTimesOfEntryAndTermination(t *testing.T) {
	s, entry := memstore.New(), shop
	store(t, s, life()...)
	v, err := boxvolumes.Read(t.Context(), s, shop, terminated.Add(2*time.Hour))
	require.NoError(t, err)
	requireKept(t, v, "from the termination")
	entry.EnrolledAt = enrolled.Add(-2 * time.Hour)
	v, err = boxvolumes.Read(t.Context(), s, entry, terminated)
	require.NoError(t, err)
	requireKept(t, v, "from the enrollment")
}

// Each stores, beside a life that discharges, a record that fails one check alone.
func TestAStoredRecordThatDoesNotHoldKeepsTheChore(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(*boxvolumes.Record)
		reason string
	}{
		{"nothing", func(*boxvolumes.Record) {}, ""},
		{"its version", func(r *boxvolumes.Record) { r.V = 2 }, "version 2, expected 1"},
		{"its box", func(r *boxvolumes.Record) { r.Box = "shop-2" }, `it names box "shop-2"`},
		{"its state", func(r *boxvolumes.Record) { r.State = "terminated" }, `state "terminated" shows no volumes`},
		{"it is empty", func(r *boxvolumes.Record) { r.Volumes = nil }, "it lists no volume"},
		{"a volume's id", func(r *boxvolumes.Record) { r.Volumes[2].ID = "" }, `the volume at "/dev/vol-3" has no id`},
		{"a volume's device", func(r *boxvolumes.Record) { r.Volumes[2].Device = "" }, `volume "vol-3" has no device`},
		{"a volume's status", func(r *boxvolumes.Record) { r.Volumes[2].Status = "detached" }, `volume "vol-3" is "detached"`},
		{"a volume's flag", func(r *boxvolumes.Record) { r.Volumes[2].DeleteOnTermination = false }, `volume "vol-3" outlives its instance`},
		{"a removal", func(r *boxvolumes.Record) { r.RemovedVolumes = []string{"vol-9"} }, `volume "vol-9" was removed`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memstore.New()
			store(t, s, life()...)
			newest := seen(270*time.Minute, volume("vol-1"), volume("vol-2"), volume("vol-3"))
			c.spoil(&newest)
			store(t, s, newest)
			v, err := boxvolumes.Read(t.Context(), s, shop, terminated)
			require.NoError(t, err)
			require.Equal(t, c.reason == "", v.Discharged())
			require.Contains(t, v.Reason(), c.reason)
		})
	}
}

func TestReadTakesNoOtherEnrollmentsRecords(t *testing.T) {
	s := memstore.New()
	store(t, s, life()...)
	other := seen(time.Hour)
	other.Enrollment = "e-10"
	store(t, s, other)
	plant(t, s, "control/box-volumes/e-1.json", []byte("not one of them"))
	v, err := boxvolumes.Read(t.Context(), s, shop, terminated)
	require.NoError(t, err)
	requireDischarged(t, v)
}

func TestNoRecordAtAllIsAVerdict(t *testing.T) {
	v, err := boxvolumes.Read(t.Context(), memstore.New(), shop, terminated)
	require.NoError(t, err)
	requireKept(t, v, "there is no record")
}

// 1,500 records are two pages, the one that matters on the second.
func TestReadGoesOnBeyondOnePage(t *testing.T) {
	s := memstore.New()
	for i := range 1499 {
		store(t, s, seen(time.Duration(i)*time.Second, volume("vol-1")))
	}
	last := seen(4*time.Hour, volume("vol-1"))
	last.Volumes[0].DeleteOnTermination = false
	store(t, s, last)
	v, err := boxvolumes.Read(t.Context(), s, shop, terminated)
	require.NoError(t, err)
	requireKept(t, v, "outlives its instance")
	require.Equal(t, 1500, s.Requests()[memstore.OpGet])
}

func TestRecordsBeyondTheBoundAreAnError(t *testing.T) {
	s := memstore.New()
	for i := range 1<<16 + 1 {
		plant(t, s, boxvolumes.Key("e-1", enrolled.Add(time.Duration(i))), nil)
	}
	v, err := boxvolumes.Read(t.Context(), s, shop, terminated)
	require.ErrorContains(t, err, "more than 65536")
	require.Zero(t, v)
	require.Zero(t, s.Requests()[memstore.OpGet], "it is known before any is read")
}

func TestARecordThatDoesNotStandAtItsOwnKeyIsAnError(t *testing.T) {
	rec := seen(3*time.Hour, volume("vol-1"), volume("vol-2"))
	other := rec
	other.Enrollment = "e-2"
	below := rec
	below.Enrollment = "e-1/x"
	for name, c := range map[string]struct {
		key string
		rec boxvolumes.Record
	}{
		"another enrollment's": {boxvolumes.Key("e-1", rec.ObservedAt), other},
		"one that is below":    {boxvolumes.Key("e-1/x", rec.ObservedAt), below},
		"another time's":       {boxvolumes.Key("e-1", rec.ObservedAt.Add(1)), rec},
		"a name of its own":    {"control/box-volumes/e-1/newest.json", rec},
	} {
		t.Run(name, func(t *testing.T) { requireNoVerdict(t, c.key, encode(t, c.rec), "it names the key") })
	}
}

func TestAMalformedRecordIsNeverAGap(t *testing.T) {
	rec := seen(3*time.Hour, volume("vol-1"), volume("vol-2"))
	body := encode(t, rec)
	for name, bad := range map[string][]byte{
		"empty":          {},
		"truncated":      body[:len(body)/2],
		"one field more": append(bytes.Clone(body[:len(body)-2]), ",\"x\":1}\n"...),
		"trailing data":  append(bytes.Clone(body), ' '),
	} {
		t.Run(name, func(t *testing.T) {
			requireNoVerdict(t, boxvolumes.Key("e-1", rec.ObservedAt), bad, "malformed record")
		})
	}
}

// requireNoVerdict stores bytes beside a life that discharges.
func requireNoVerdict(t *testing.T, key string, body []byte, reason string) {
	t.Helper()
	s := memstore.New()
	store(t, s, life()...)
	plant(t, s, key, body)
	v, err := boxvolumes.Read(t.Context(), s, shop, terminated)
	require.ErrorIs(t, err, boxvolumes.ErrUnverified)
	require.ErrorContains(t, err, key)
	require.ErrorContains(t, err, reason)
	require.Zero(t, v)
}

func TestAFailedReadIsNeverAVerdict(t *testing.T) {
	newest := boxvolumes.Key("e-1", life()[2].ObservedAt)
	for name, c := range map[string]struct {
		op    memstore.Op
		key   string
		fault memstore.Fault
	}{
		"the listing is lost":    {memstore.OpList, "control/box-volumes/e-1/", memstore.Lose},
		"the listing is torn":    {memstore.OpList, "control/box-volumes/e-1/", memstore.Torn},
		"a record is unreadable": {memstore.OpGet, newest, memstore.Lose},
	} {
		t.Run(name, func(t *testing.T) {
			s := memstore.New()
			store(t, s, life()...)
			s.Inject(memstore.Once(c.op, c.key, c.fault))
			v, err := boxvolumes.Read(t.Context(), s, shop, terminated)
			require.ErrorIs(t, err, memstore.ErrInjected)
			require.NotErrorIs(t, err, boxvolumes.ErrUnverified)
			require.Zero(t, v)
		})
	}
	t.Run("the context has ended", func(t *testing.T) {
		s := memstore.New()
		store(t, s, life()...)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := boxvolumes.Read(ctx, s, shop, terminated)
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("a bad enrollment", func(t *testing.T) {
		s, entry := memstore.New(), shop
		entry.Enrollment = ".."
		_, err := boxvolumes.Read(t.Context(), s, entry, terminated)
		require.ErrorIs(t, err, roster.ErrInvalid)
		require.Empty(t, s.Requests())
	})
}

func TestReadMakesSixteenRequestsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		for i := range 200 {
			store(t, s, seen(time.Duration(i)*time.Minute, volume("vol-1")))
		}
		held := heldGets{Store: s, gate: make(chan struct{})}
		done := make(chan error)
		go func() {
			_, err := boxvolumes.Read(t.Context(), &held, shop, terminated)
			done <- err
		}()
		synctest.Wait()
		require.EqualValues(t, 16, held.waiting.Load())
		close(held.gate)
		require.NoError(t, <-done)
	})
}

// heldGets holds each Get until its gate opens.
type heldGets struct {
	objstore.Store
	gate    chan struct{}
	waiting atomic.Int32
}

func (h *heldGets) Get(ctx context.Context, key string) (objstore.Object, error) {
	h.waiting.Add(1)
	<-h.gate
	return h.Store.Get(ctx, key)
}
