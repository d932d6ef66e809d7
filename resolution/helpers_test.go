package resolution_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/resolution"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// decided is a resolution that holds.
func decided() resolution.Record {
	return resolution.Record{
		V: 1, Host: "shop.example", Op: "op-7", N: 2, Gen: 40, Box: "shop-3", Enrollment: "e-shop-3", AcceptEmpty: true,
		Who: "ada@example.com", Why: "both spares are gone; this one was just enrolled", Confirmation: "shop.example", DecidedAt: now,
	}
}

// violations is every rule of a record, each broken alone.
var violations = []struct {
	name   string
	spoil  func(*resolution.Record)
	reason string
}{
	{"no host", func(r *resolution.Record) { r.Host, r.Confirmation = "", "" }, `host is "", expected 1 to 200 of`},
	{"a host of two parts", func(r *resolution.Record) { r.Host, r.Confirmation = "a/b", "a/b" }, `host is "a/b"`},
	{"no op", func(r *resolution.Record) { r.Op = "" }, `op is ""`},
	{"an op that climbs", func(r *resolution.Record) { r.Op = ".." }, `op is ".."`},
	{"an op that stays", func(r *resolution.Record) { r.Op = "." }, `op is "."`},
	{"no box", func(r *resolution.Record) { r.Box = "" }, `box is ""`},
	{"a box of any length", func(r *resolution.Record) { r.Box = strings.Repeat("x", 201) }, "box is"},
	{"no enrollment", func(r *resolution.Record) { r.Enrollment = "" }, `enrollment is ""`},
	{"nobody", func(r *resolution.Record) { r.Who = "" }, "who is 0 bytes, expected 1 to 128"},
	{"a person of any length", func(r *resolution.Record) { r.Who = strings.Repeat("x", 129) }, "who is 129 bytes"},
	{"no reason", func(r *resolution.Record) { r.Why = "" }, "why is 0 bytes, expected 1 to 2048"},
	{"a reason of any length", func(r *resolution.Record) { r.Why = strings.Repeat("x", 2049) }, "why is 2049 bytes"},
	{"a blank reason", func(r *resolution.Record) { r.Why = "  " }, `why is "  ", expected no white space around it`},
	{"a reason of two lines", func(r *resolution.Record) { r.Why = "a\nb" }, `why is "a\nb", expected one line`},
	{"number 0", func(r *resolution.Record) { r.N = 0 }, "n is 0, expected 1 or more"},
	{"a number below 0", func(r *resolution.Record) { r.N = -1 }, "n is -1"},
	{"no gen", func(r *resolution.Record) { r.Gen = 0 }, "gen is 0, expected that of the claim"},
	{"no confirmation", func(r *resolution.Record) { r.Confirmation = "" }, `confirmation is "", expected the host's name "shop.example"`},
	{"another host's name", func(r *resolution.Record) { r.Confirmation = "other.example" }, `confirmation is "other.example"`},
	{"nearly the host's name", func(r *resolution.Record) { r.Confirmation = "Shop.example" }, `confirmation is "Shop.example"`},
	{"no time", func(r *resolution.Record) { r.DecidedAt = time.Time{} }, "decided_at is missing"},
}

func encode(tb testing.TB, r resolution.Record) []byte {
	tb.Helper()
	body, err := record.Encode(r)
	require.NoError(tb, err)
	return body
}

// plant stores any bytes at a key, and returns what cites them.
func plant(tb testing.TB, store objstore.Store, key string, body []byte) resolution.Ref {
	tb.Helper()
	_, err := store.Put(tb.Context(), key, body, objstore.IfAbsent())
	require.NoError(tb, err)
	return resolution.Ref{Key: key, SHA256: record.Digest(body)}
}
