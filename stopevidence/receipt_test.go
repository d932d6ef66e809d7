package stopevidence_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

func TestReadReturnsWhatACitationNames(t *testing.T) {
	store := memstore.New()
	ref := plant(t, store, key(stopped()), encode(t, stopped()))
	r, err := stopevidence.Read(t.Context(), store, ref)
	require.NoError(t, err)
	require.Equal(t, ref, r.Ref())
	require.Equal(t, "shop.example", r.Host())
	require.Equal(t, "op-7", r.Op())
	require.Equal(t, stopevidence.Release, r.Obligation())
	require.Equal(t, "shop-1", r.Box())
	require.Equal(t, "e-shop-1", r.Enrollment())
	require.Equal(t, "i-1", r.Incarnation())
	require.EqualValues(t, 9, r.Stamp())
	require.EqualValues(t, 8, r.Session())
	require.Equal(t, now, r.EvidenceAt())
	require.Equal(t, map[memstore.Op]int{memstore.OpPut: 1, memstore.OpGet: 1}, store.Requests(), "one GET")
}

func TestACitationHoldsExactly(t *testing.T) {
	store := memstore.New()
	good := plant(t, store, key(stopped()), encode(t, stopped()))
	other := stopped()
	other.Op = "op-8"
	for name, c := range map[string]struct {
		ref  stopevidence.Ref
		want error
	}{
		"other bytes":            {stopevidence.Ref{Key: good.Key, SHA256: good.SHA256[1:] + "0"}, stopevidence.ErrUnverified},
		"no digest":              {stopevidence.Ref{Key: good.Key}, stopevidence.ErrUnverified},
		"no key":                 {stopevidence.Ref{SHA256: good.SHA256}, stopevidence.ErrUnverified},
		"nothing":                {stopevidence.Ref{}, stopevidence.ErrUnverified},
		"a key of another place": {stopevidence.Ref{Key: "control/box-fences/e.json", SHA256: good.SHA256}, stopevidence.ErrUnverified},
		"a key of another op":    {plant(t, store, key(other), encode(t, stopped())), stopevidence.ErrUnverified},
		"nothing stored": {stopevidence.Ref{Key: stopevidence.Key("h", "o", "b", 1, stopevidence.Release), SHA256: good.SHA256},
			objstore.ErrNotFound},
	} {
		receipt, err := stopevidence.Read(t.Context(), store, c.ref)
		require.ErrorIs(t, err, c.want, name)
		require.Zero(t, receipt, name)
	}
}

// Whoever can write to the bucket can write these. Each breaks one rule alone,
// at the key that it names itself.
func TestAStoredReceiptThatDoesNotHoldIsAnError(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(*stopevidence.Record)
		reason string
	}{
		{"another version", func(r *stopevidence.Record) { r.V = 2 }, "v is 2, expected 1"},
		{"no version", func(r *stopevidence.Record) { r.V = 0 }, "v is 0"},
		{"no host", func(r *stopevidence.Record) { r.Host = "" }, `host is ""`},
		{"a host of two parts", func(r *stopevidence.Record) { r.Host = "a/b" }, `host is "a/b"`},
		{"no op", func(r *stopevidence.Record) { r.Op = "" }, `op is ""`},
		{"an op that climbs", func(r *stopevidence.Record) { r.Op = ".." }, `op is ".."`},
		{"an op that stays", func(r *stopevidence.Record) { r.Op = "." }, `op is "."`},
		{"no box", func(r *stopevidence.Record) { r.Box = "" }, `box is ""`},
		{"no enrollment", func(r *stopevidence.Record) { r.Enrollment = "" }, `enrollment is ""`},
		{"no boot", func(r *stopevidence.Record) { r.BootID = "" }, `boot_id is ""`},
		{"no controller", func(r *stopevidence.Record) { r.Controller = "" }, `controller is ""`},
		{"no incarnation", func(r *stopevidence.Record) { r.Incarnation = "" }, `incarnation is ""`},
		{"no fence", func(r *stopevidence.Record) { r.Fence = "" }, `fence is ""`},
		{"a fence of any length", func(r *stopevidence.Record) { r.Fence = name(201) }, "expected 1 to 200"},
		{"no obligation", func(r *stopevidence.Record) { r.Obligation = "" }, `obligation is ""`},
		{"another obligation", func(r *stopevidence.Record) { r.Obligation = "release" }, `obligation is "release"`},
		{"no stamp", func(r *stopevidence.Record) { r.Stamp, r.Session = 0, 0 }, "stamp is 0"},
		{"a session beyond its stamp", func(r *stopevidence.Record) { r.Session = 10 }, "session is 10, expected at most the stamp 9"},
		{"no roster", func(r *stopevidence.Record) { r.DirectoryRevision = 0 }, "directory_revision is 0"},
		{"no time", func(r *stopevidence.Record) { r.EvidenceAt = time.Time{} }, "evidence_at is missing"},
		{"no checks", func(r *stopevidence.Record) { r.Checks = nil }, `check "cgroup-empty" is missing`},
		{"a check too few", func(r *stopevidence.Record) { r.Checks = r.Checks[:3] }, `check "producers-joined" is missing`},
		{"a check that failed", func(r *stopevidence.Record) {
			r.Checks[1] = stopevidence.Check{Name: stopevidence.NoHolders, Saw: "pid 7 fd 3"}
		}, `check "no-holders" did not pass: "pid 7 fd 3"`},
		{"a check more, that failed", func(r *stopevidence.Record) {
			r.Checks = append(r.Checks, stopevidence.Check{Name: "timers-joined"})
		}, `check "timers-joined" did not pass`},
		{"a check twice", func(r *stopevidence.Record) { r.Checks = append(r.Checks, r.Checks[0]) }, `check "cgroup-empty" is there twice`},
		{"a check of nothing", func(r *stopevidence.Record) {
			r.Checks = append(r.Checks, stopevidence.Check{Passed: true})
		}, `checks names ""`},
		{"too many checks", func(r *stopevidence.Record) {
			for i := range 13 {
				r.Checks = append(r.Checks, stopevidence.Check{Name: name(i + 1), Passed: true})
			}
		}, "checks has 17 entries, expected at most 16"},
		{"a check that saw too much", func(r *stopevidence.Record) { r.Checks[0].Saw = name(501) }, "saw 501 bytes, expected at most 500"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := stopped()
			c.spoil(&r)
			requireRefused(t, key(r), encode(t, r), c.reason)
		})
	}
}

// name is a name of n bytes.
func name(n int) string { return string(bytes.Repeat([]byte("x"), n)) }

func TestTheBoundsAreInclusive(t *testing.T) {
	r := stopped()
	r.Box, r.Session, r.Checks[0].Saw = name(200), r.Stamp, name(500)
	for i := range 12 {
		r.Checks = append(r.Checks, stopevidence.Check{Name: name(i + 1), Passed: true})
	}
	require.Equal(t, r.Box, stoptest.Receipt(t, r).Box())
}

func TestAReceiptStandsOnlyAtItsOwnKey(t *testing.T) {
	for name, move := range map[string]func(*stopevidence.Record){
		"another host's":    func(r *stopevidence.Record) { r.Host = "other.example" },
		"another op's":      func(r *stopevidence.Record) { r.Op = "op-8" },
		"another box's":     func(r *stopevidence.Record) { r.Box = "shop-2" },
		"another session's": func(r *stopevidence.Record) { r.Session = 7 },
		"another purpose's": func(r *stopevidence.Record) { r.Obligation = stopevidence.Retirement },
	} {
		t.Run(name, func(t *testing.T) {
			at := stopped()
			move(&at)
			requireRefused(t, key(at), encode(t, stopped()), "it names the key")
		})
	}
}

func TestARetirementIsNeverTakenForARelease(t *testing.T) {
	release, retirement := stopped(), stopped()
	retirement.Obligation = stopevidence.Retirement
	require.NotEqual(t, key(release), key(retirement))
	requireRefused(t, key(release), encode(t, retirement), key(retirement))
	requireRefused(t, key(retirement), encode(t, release), key(release))

	require.Equal(t, stopevidence.Release, stoptest.Receipt(t, release).Obligation())
	require.Equal(t, stopevidence.Retirement, stoptest.Receipt(t, retirement).Obligation())
}

func TestAMalformedReceiptIsAnError(t *testing.T) {
	body := encode(t, stopped())
	for name, bad := range map[string][]byte{
		"empty":          {},
		"truncated":      body[:len(body)/2],
		"one field more": append(bytes.Clone(body[:len(body)-2]), ",\"x\":1}\n"...),
		"trailing data":  append(bytes.Clone(body), ' '),
	} {
		t.Run(name, func(t *testing.T) { requireRefused(t, key(stopped()), bad, "malformed record") })
	}
}

func TestAFailedReadSaysNothing(t *testing.T) {
	store := memstore.New()
	ref := plant(t, store, key(stopped()), encode(t, stopped()))
	store.Inject(memstore.Once(memstore.OpGet, ref.Key, memstore.Lose))
	receipt, err := stopevidence.Read(t.Context(), store, ref)
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.NotErrorIs(t, err, stopevidence.ErrUnverified)
	require.Zero(t, receipt)
}

func TestTheZeroReceiptNamesNothing(t *testing.T) {
	var r stopevidence.Receipt
	require.Zero(t, r.Ref())
	require.Empty(t, r.Host())
	require.Empty(t, r.Op())
	require.Empty(t, r.Obligation())
	require.Empty(t, r.Box())
	require.Empty(t, r.Enrollment())
	require.Empty(t, r.Incarnation())
	require.Zero(t, r.Stamp())
	require.Zero(t, r.Session())
	require.Zero(t, r.EvidenceAt())
}

func TestStoptestMakesTheReceiptThatItIsAskedFor(t *testing.T) {
	r := stoptest.Receipt(t, stopevidence.Record{Box: "shop-2", Session: 5})
	require.Equal(t, "shop-2", r.Box())
	require.Equal(t, "e-shop-2", r.Enrollment())
	require.EqualValues(t, 5, r.Session())
	require.Equal(t, r, stoptest.Receipt(t, stopevidence.Record{Box: "shop-2", Session: 5}))

	never := stoptest.Receipt(t, stopevidence.Record{})
	require.Zero(t, never.Session(), "a box that never had a writer has a receipt too")
	require.EqualValues(t, 1, never.Stamp())

	full := stoptest.Receipt(t, stopped())
	require.Equal(t, stopped(), stoptest.Filled(stopped()))
	require.Equal(t, key(stopped()), full.Ref().Key)
}
