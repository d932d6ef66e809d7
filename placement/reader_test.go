package placement_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
)

func read(t *testing.T, r *placement.Reader) placement.Snapshot {
	t.Helper()
	snap, err := r.Read(t.Context())
	require.NoError(t, err)
	return snap
}

func refs(s placement.Snapshot) (list []string) {
	for _, f := range s.Files {
		list = append(list, f.Edges.Box)
	}
	return list
}

func TestAReaderGetsOnlyWhatChanged(t *testing.T) {
	s := memstore.New()
	var files []placement.Published
	for i := range 20 {
		files = append(files, publish(t, s, placement.Published{}, edges(fmt.Sprintf("box-%02d", i))))
	}
	r := &placement.Reader{Store: s}
	require.Len(t, read(t, r).Files, 20)
	changed := publish(t, s, files[7], edges("box-07"))
	publish(t, s, placement.Published{}, edges("box-20"))
	before := s.Requests()
	snap := read(t, r)
	require.Equal(t, 1, s.Requests()[memstore.OpList]-before[memstore.OpList])
	require.Equal(t, 2, s.Requests()[memstore.OpGet]-before[memstore.OpGet])
	got, ok := snap.File("box-07")
	require.True(t, ok)
	require.Equal(t, changed, got)
	_, ok = snap.File("box-99")
	require.False(t, ok)
	require.IsIncreasing(t, refs(snap))
}

func TestAFailedRequestFailsTheReadingAndTheNextGoesOn(t *testing.T) {
	s := memstore.New()
	publish(t, s, placement.Published{}, edges("box-1"))
	two := publish(t, s, placement.Published{}, edges("box-2"))
	r := &placement.Reader{Store: s}
	for _, fault := range []func(memstore.Request) memstore.Fault{
		memstore.Once(memstore.OpGet, placement.Key("box-2"), memstore.Lose),
		memstore.Once(memstore.OpList, placement.Prefix, memstore.Lose),
		memstore.Once(memstore.OpList, placement.Prefix, memstore.Torn),
	} {
		s.Inject(fault)
		snap, err := r.Read(t.Context())
		require.ErrorIs(t, err, memstore.ErrInjected)
		require.Empty(t, snap)
	}
	require.Equal(t, []string{"box-1", "box-2"}, refs(read(t, r)))
	require.Equal(t, 3, s.Requests()[memstore.OpGet], "what was got is not got again")

	publish(t, s, two, edges("box-2"))
	s.Inject(memstore.Once(memstore.OpGet, placement.Prefix, memstore.Lose))
	_, err := r.Read(t.Context())
	require.Error(t, err)
	file, _ := read(t, r).File("box-2")
	require.Equal(t, uint64(2), file.Edges.Gen, "a change whose GET failed is still a change")
}

func TestAFileThatCannotBeUnderstoodFailsOnlyItself(t *testing.T) {
	s := memstore.New()
	publish(t, s, placement.Published{}, edges("box-1"))
	two := publish(t, s, placement.Published{}, edges("box-2"))
	r := &placement.Reader{Store: s}
	require.Empty(t, read(t, r).Problems)

	_, err := s.Put(t.Context(), placement.Key("box-2"), []byte("garbage"), objstore.IfMatch(two.ETag))
	require.NoError(t, err)
	for _, key := range []string{placement.Key("box-3"), placement.Prefix + "a.b.json", placement.Prefix + "box-9", placement.Prefix + "README"} {
		_, err := s.Put(t.Context(), key, []byte("garbage"), objstore.IfAbsent())
		require.NoError(t, err)
	}
	for range 2 {
		snap := read(t, r)
		require.Equal(t, []string{"box-1", "box-2"}, refs(snap))
		require.Len(t, snap.Problems, 5)
		for _, p := range snap.Problems {
			require.ErrorIs(t, p, placement.ErrInvalid)
		}
		last, _ := snap.File("box-2")
		require.Equal(t, two, last, "it stays as it was, with the age that it has")
	}
	require.Equal(t, 4, s.Requests()[memstore.OpGet], "garbage is got once")
}

func TestAFileThatIsGoneIsForgotten(t *testing.T) {
	s := memstore.New()
	publish(t, s, placement.Published{}, edges("box-1"))
	publish(t, s, placement.Published{}, edges("box-2"))
	r := &placement.Reader{Store: s}
	require.Len(t, read(t, r).Files, 2)
	for info, err := range s.ListVersions(context.Background(), placement.Key("box-1")) {
		require.NoError(t, err)
		require.NoError(t, s.DeleteVersion(t.Context(), info.Key, info.VersionID))
	}
	require.Equal(t, []string{"box-2"}, refs(read(t, r)))
}
