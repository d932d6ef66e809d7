package placement_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

var full = placement.Edges{
	V: 1, Gen: 9, Write: "8f3c", Box: "box-1", Region: "ie",
	Address: "10.0.0.1:8080", Internal: "10.0.0.1:8081", Protocol: 1,
	Capabilities: []string{placement.CapabilityRegionHA}, Accepting: true, Draining: true,
	Headroom:     placement.Headroom{MemoryBytes: 1 << 30, DiskBytes: 1 << 40, Awake: 2},
	SecretsKeyFP: "0123456789abcdef", At: now,
	Hosts: map[string]placement.Host{
		"notes.demo.example": {Role: placement.RoleHome, Stamp: 12, App: "demo/notes", Aliases: []string{"www.example"}},
		"shop.demo.example":  {Role: placement.RoleHome, App: "demo/shop"},
	},
}

func TestGoldenEdges(t *testing.T) { recordtest.Golden(t, "edges", full) }

func FuzzEdges(f *testing.F) { recordtest.Fuzz(f, full) }

func edges(box string) placement.Edges {
	e := full
	e.Box = box
	return e
}

func publish(t *testing.T, s objstore.Store, prev placement.Published, e placement.Edges) placement.Published {
	t.Helper()
	p, err := placement.Publish(t.Context(), s, prev, e)
	require.NoError(t, err)
	return p
}

func TestABoxPublishesOverItsOwnLastFileOnly(t *testing.T) {
	s := memstore.New()
	first := publish(t, s, placement.Published{}, edges("box-1"))
	require.Equal(t, uint64(1), first.Edges.Gen)
	second := publish(t, s, first, edges("box-1"))
	require.Equal(t, uint64(2), second.Edges.Gen)
	require.NotEqual(t, first.Edges.Write, second.Edges.Write)
	for _, stale := range []placement.Published{{}, first} {
		_, err := placement.Publish(t.Context(), s, stale, edges("box-1"))
		require.ErrorIs(t, err, objstore.ErrConflict)
	}
	got, err := placement.Read(t.Context(), s, "box-1")
	require.NoError(t, err)
	require.Equal(t, second, got)
}

func TestALostAnswerIsSettledByLooking(t *testing.T) {
	s := memstore.New()
	s.Inject(memstore.Once(memstore.OpPut, "", memstore.LoseAnswer))
	publish(t, s, placement.Published{}, edges("box-1"))
	s.Inject(memstore.Once(memstore.OpPut, "", memstore.Lose))
	_, err := placement.Publish(t.Context(), s, placement.Published{}, edges("box-2"))
	require.ErrorIs(t, err, objstore.ErrUnknown)
}

func TestAnInvalidFileIsNeitherWrittenNorRead(t *testing.T) {
	for name, spoil := range map[string]func(*placement.Edges){
		"no box":    func(e *placement.Edges) { e.Box = "" },
		"no label":  func(e *placement.Edges) { e.Box = "a.b" },
		"no region": func(e *placement.Edges) { e.Region = "" },
		"no role":   func(e *placement.Edges) { e.Hosts = map[string]placement.Host{"a": {}} },
		"no name":   func(e *placement.Edges) { e.Hosts = map[string]placement.Host{"": {Role: placement.RoleHome}} },
		"an empty alias": func(e *placement.Edges) {
			e.Hosts = map[string]placement.Host{"a": {Role: placement.RoleHome, Aliases: []string{""}}}
		},
		"too many hosts": func(e *placement.Edges) {
			e.Hosts = map[string]placement.Host{}
			for i := range placement.MaxHosts + 1 {
				e.Hosts[fmt.Sprint(i)] = placement.Host{Role: placement.RoleHome}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, e := memstore.New(), edges("box-1")
			spoil(&e)
			_, err := placement.Publish(t.Context(), s, placement.Published{}, e)
			require.ErrorIs(t, err, placement.ErrInvalid)
			require.Empty(t, s.Log())
		})
	}
}

func TestAReadNeverTakesAFailureForAnAbsentFile(t *testing.T) {
	s := memstore.New()
	_, err := placement.Read(t.Context(), s, "box-1")
	require.ErrorIs(t, err, objstore.ErrNotFound)
	publish(t, s, placement.Published{}, edges("box-1"))
	copied, err := s.Get(t.Context(), placement.Key("box-1"))
	require.NoError(t, err)
	as := func(ref, old, new string) []byte {
		return []byte(strings.NewReplacer("box-1", ref, old, new).Replace(string(copied.Body)))
	}
	for ref, body := range map[string][]byte{
		"box-2": copied.Body,
		"box-3": []byte("{}\n"),
		"box-4": nil,
		"box-5": as("box-5", `"v":1`, `"v":2`),
		"box-6": as("box-6", `"gen":1,`, ""),
	} {
		_, err = s.Put(t.Context(), placement.Key(ref), body, objstore.IfAbsent())
		require.NoError(t, err)
		_, err = placement.Read(t.Context(), s, ref)
		require.ErrorIs(t, err, placement.ErrInvalid, ref)
	}
	s.Inject(func(memstore.Request) memstore.Fault { return memstore.Lose })
	_, err = placement.Read(t.Context(), s, "box-1")
	require.False(t, err == nil || errors.Is(err, objstore.ErrNotFound) || errors.Is(err, placement.ErrInvalid))
}

func TestAFileIsFreshForFifteenMinutesOfTheStoresTime(t *testing.T) {
	p := placement.Published{Edges: full}
	require.ErrorContains(t, p.Fresh(now), "no edges file")
	for _, ok := range []time.Duration{0, 15 * time.Minute, -2 * time.Minute} {
		p.ModTime = now.Add(-ok)
		require.NoError(t, p.Fresh(now), ok)
	}
	for _, bad := range []time.Duration{15*time.Minute + 1, -2*time.Minute - 1, 24 * time.Hour} {
		p.ModTime = now.Add(-bad)
		p.Edges.At = now // what the file says of itself decides nothing
		require.Error(t, p.Fresh(now), bad)
	}
}

func TestAnAddressMustBeDialable(t *testing.T) {
	for _, ok := range []string{"127.0.0.1:80", "[::1]:8080", "box-1.internal:65535"} {
		require.NoError(t, placement.Dialable(ok), ok)
	}
	for _, bad := range []string{"", "a", "a:", ":80", "a:0", "a:65536", "a:http", "0.0.0.0:80", "[::]:80", "http://a:80", "a:80/x", "u@a:80", "a b:80"} {
		require.Error(t, placement.Dialable(bad), bad)
	}
}
