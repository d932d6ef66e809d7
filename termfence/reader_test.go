package termfence_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

func TestReadReturnsWhatACitationNames(t *testing.T) {
	r := newRegion(t)
	ref := r.plant(t, "e-shop-1", encode(t, fence(t, worker, now)))
	ev, err := r.reader.Read(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, ref, ev.Ref())
	require.Equal(t, "shop-1", ev.Box())
	require.Equal(t, "e-shop-1", ev.Enrollment())
	require.Equal(t, "ie", ev.Region())
	require.Equal(t, now, ev.ObservedAt())
	require.False(t, ev.Declared())

	same, fenced, err := r.reader.Fenced(t.Context(), "e-shop-1")
	require.NoError(t, err)
	require.True(t, fenced)
	require.Equal(t, ev, same)
}

func TestNoFenceIsTheStoresOwnAnswer(t *testing.T) {
	r := newRegion(t)
	ev, fenced, err := r.reader.Fenced(t.Context(), "e-shop-1")
	require.NoError(t, err)
	require.False(t, fenced)
	require.Zero(t, ev)
	require.Equal(t, map[memstore.Op]int{memstore.OpPut: 1, memstore.OpGet: 1}, r.Requests(), "one GET, beside the roster's creation")
}

func TestACitationHoldsExactly(t *testing.T) {
	r := newRegion(t)
	good := r.plant(t, "e-shop-1", encode(t, fence(t, worker, now)))
	for name, c := range map[string]struct {
		spoil func(*termfence.Ref)
		want  error
	}{
		"other bytes":        {func(f *termfence.Ref) { f.SHA256 = good.SHA256[1:] + "0" }, termfence.ErrUnverified},
		"no digest":          {func(f *termfence.Ref) { f.SHA256 = "" }, termfence.ErrUnverified},
		"another key":        {func(f *termfence.Ref) { f.Key = termfence.Key("e-worker-1") }, termfence.ErrUnverified},
		"no key":             {func(f *termfence.Ref) { f.Key = "" }, termfence.ErrUnverified},
		"another enrollment": {func(f *termfence.Ref) { f.Enrollment = "e-worker-1" }, termfence.ErrUnverified},
		"no enrollment":      {func(f *termfence.Ref) { *f = termfence.Ref{Key: termfence.Key("")} }, termfence.ErrUnverified},
		"nothing stored": {func(f *termfence.Ref) {
			*f = termfence.Ref{Enrollment: "e-worker-1", Key: termfence.Key("e-worker-1"), SHA256: good.SHA256}
		}, objstore.ErrNotFound},
	} {
		ref := good
		c.spoil(&ref)
		ev, err := r.reader.Read(t.Context(), ref)
		require.ErrorIs(t, err, c.want, name)
		require.Zero(t, ev, name)
	}
}

// Whoever can write to the bucket can write these. None is evidence, and none
// is the absence of it.
func TestAStoredFenceThatDoesNotHoldIsAnError(t *testing.T) {
	for _, c := range []struct {
		name   string
		at     string
		spoil  func(*termfence.Record)
		reason string
	}{
		{"another version", "e-shop-1", func(f *termfence.Record) { f.V = 2 }, "version 2"},
		{"another box", "e-shop-1", func(f *termfence.Record) { f.Box = "worker-1" }, `names box "worker-1"`},
		{"another enrollment", "e-shop-1", func(f *termfence.Record) { f.Enrollment = "e-shop-0" }, `"e-shop-0"`},
		{"at another's key", "e-worker-2", func(*termfence.Record) {}, `the roster has "worker-2"`},
		{"of nobody", "e-nobody", func(f *termfence.Record) { f.Enrollment = "e-nobody" }, "is not in the roster"},
		{"no time", "e-shop-1", func(f *termfence.Record) { f.ObservedAt = time.Time{} }, "no time"},
		{"a writer that is not enrolled", "e-shop-1", func(f *termfence.Record) { f.WrittenBy.Box = "nobody" }, "its writer"},
		{"no writer", "e-shop-1", func(f *termfence.Record) { f.WrittenBy = termfence.Writer{} }, "its writer"},
		{"a writer of an earlier enrollment", "e-shop-1", func(f *termfence.Record) { f.WrittenBy.Enrollment = "e-0" }, "its writer"},
		{"a writer of another region", "e-shop-1", func(f *termfence.Record) {
			f.WrittenBy = termfence.Writer{Box: "distant-1", Enrollment: "e-distant-1"}
		}, `is of region "de"`},
		{"a writer without a cloud", "e-shop-1", func(f *termfence.Record) {
			f.WrittenBy = termfence.Writer{Box: "unproven", Enrollment: "e-unproven"}
		}, "no complete cloud"},
		{"an entry without a cloud", "e-unproven", func(f *termfence.Record) {
			*f = termfence.Record{V: 1, Box: "unproven", Enrollment: "e-unproven", State: "terminated", ObservedAt: now,
				Via: termfence.ViaDescribe, RequestID: "r", WrittenBy: f.WrittenBy}
		}, "no complete cloud"},
		{"another instance", "e-shop-1", func(f *termfence.Record) { f.Cloud.InstanceID = "i-other" }, "i-other"},
		{"another account", "e-shop-1", func(f *termfence.Record) { f.Cloud.Account = "9" }, "aws/9/"},
		{"another cloud region", "e-shop-1", func(f *termfence.Record) { f.Cloud.Region = "r" }, "/r/"},
		{"another provider", "e-shop-1", func(f *termfence.Record) { f.Cloud.Provider = "p" }, "p/"},
		{"another source", "e-shop-1", func(f *termfence.Record) { f.Via = "box" }, `source "box"`},
		{"a reply without an id", "e-shop-1", func(f *termfence.Record) { f.RequestID = "" }, "no request id"},
		{"an event without an id", "e-shop-1", func(f *termfence.Record) { f.Via = termfence.ViaEvent }, "the event has no id"},
		{"another state", "e-shop-1", func(f *termfence.Record) { f.State = "stopped" }, `state "stopped"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRegion(t)
			rec := fence(t, worker, now)
			c.spoil(&rec)
			ref := r.plant(t, c.at, encode(t, rec))
			ev, err := r.reader.Read(t.Context(), ref)
			require.ErrorIs(t, err, termfence.ErrUnverified)
			require.ErrorContains(t, err, c.reason)
			require.Zero(t, ev)
			requireNoAnswer(t, r, c.at, termfence.ErrUnverified)
		})
	}
}

func requireNoAnswer(t *testing.T, r region, enrollment string, want error) {
	t.Helper()
	ev, fenced, err := r.reader.Fenced(t.Context(), enrollment)
	require.ErrorIs(t, err, want)
	require.False(t, fenced)
	require.Zero(t, ev)
}

func TestAMalformedFenceIsAnError(t *testing.T) {
	body := encode(t, fence(t, worker, now))
	for name, bad := range map[string][]byte{
		"empty":          {},
		"truncated":      body[:len(body)/2],
		"one field more": append(bytes.Clone(body[:len(body)-2]), ",\"x\":1}\n"...),
	} {
		r := newRegion(t)
		ref := r.plant(t, "e-shop-1", bad)
		_, err := r.reader.Read(t.Context(), ref)
		require.ErrorIs(t, err, termfence.ErrUnverified, name)
		requireNoAnswer(t, r, "e-shop-1", termfence.ErrUnverified)
	}
}

func TestAFailedReadIsNeverNotFenced(t *testing.T) {
	for name, key := range map[string]string{"the fence": termfence.Key("e-shop-1"), "the roster": roster.Key} {
		t.Run(name, func(t *testing.T) {
			r := newRegion(t)
			r.plant(t, "e-shop-1", encode(t, fence(t, worker, now)))
			r.Inject(memstore.Once(memstore.OpGet, key, memstore.Lose))
			requireNoAnswer(t, r, "e-shop-1", memstore.ErrInjected)
		})
	}
	t.Run("no roster at all", func(t *testing.T) {
		r := newRegion(t)
		r.plant(t, "e-shop-1", encode(t, fence(t, worker, now)))
		public, _ := roster.GenerateKey()
		r.reader.Roster = roster.Open(memstore.New(), public, bucket)
		requireNoAnswer(t, r, "e-shop-1", objstore.ErrNotFound)
	})
	t.Run("a bad enrollment", func(t *testing.T) {
		requireNoAnswer(t, newRegion(t), "../e", roster.ErrInvalid)
	})
}
