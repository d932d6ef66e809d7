package hostdb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// file is an LTX object by its place; Select reads no bodies.
type file struct {
	level    int
	min, max uint64
}

func (f file) key(generation string) string {
	return fmt.Sprintf("%s/db/%s/ltx/%04x/%016x-%016x.ltx", location, generation, f.level, f.min, f.max)
}

func put(t require.TestingT, s objstore.Store, key string) {
	_, err := s.Put(ctx, key, []byte(key), objstore.Always())
	require.NoError(t, err)
}

func names(set hostdb.RecoverySet) (out []string) {
	for _, o := range set.Objects {
		_, name, _ := strings.Cut(o.Key, "/ltx/")
		out = append(out, strings.ReplaceAll(name, "00000000000000", ""))
	}
	return out
}

func TestSelect(t *testing.T) {
	newest := hostdb.Link{Generation: "new"}
	old := func(stop uint64) hostdb.Link { return hostdb.Link{Generation: "old", StopAt: stop} }
	for _, c := range []struct {
		rule     string
		new, old []file
		links    []hostdb.Link
		want     []string
		gap      string
		err      error
	}{
		{rule: "a full image at level 0 and what follows", new: []file{{0, 1, 1}, {0, 2, 2}}, links: []hostdb.Link{newest},
			want: []string{"0000/01-01.ltx", "0000/02-02.ltx"}},
		{rule: "the furthest snapshot, then the widest files", new: []file{{9, 1, 4}, {9, 1, 8}, {0, 8, 8}, {0, 9, 9}, {0, 10, 10}, {1, 9, 10}, {0, 11, 11}},
			links: []hostdb.Link{newest}, want: []string{"0009/01-08.ltx", "0001/09-0a.ltx", "0000/0b-0b.ltx"}},
		{rule: "files may overlap", new: []file{{9, 1, 5}, {1, 3, 8}}, links: []hostdb.Link{newest},
			want: []string{"0009/01-05.ltx", "0001/03-08.ltx"}},
		{rule: "a gap ends the chain and is told", new: []file{{0, 1, 1}, {0, 2, 2}, {0, 4, 4}, {0, 5, 5}}, links: []hostdb.Link{newest},
			want: []string{"0000/01-01.ltx", "0000/02-02.ltx"}, gap: "the chain ends at TXID 2; the next file is 0000/0000000000000004-0000000000000004.ltx"},
		{rule: "a snapshot closes a gap", new: []file{{0, 1, 1}, {0, 4, 4}, {9, 1, 4}}, links: []hostdb.Link{newest},
			want: []string{"0009/01-04.ltx"}},
		{rule: "nothing anywhere is empty", links: []hostdb.Link{newest, old(3)}, err: hostdb.ErrEmpty},
		{rule: "no generation at all is empty", err: hostdb.ErrEmpty},
		{rule: "files without an image are broken", new: []file{{0, 7, 7}}, links: []hostdb.Link{newest}, err: hostdb.ErrBroken},
		{rule: "a broken generation is never skipped", new: []file{{0, 7, 7}}, old: []file{{0, 1, 1}}, links: []hostdb.Link{newest, old(1)}, err: hostdb.ErrBroken},
		{rule: "an empty one is skipped to its baseline", old: []file{{0, 1, 1}, {0, 2, 2}}, links: []hostdb.Link{newest, old(2)},
			want: []string{"0000/01-01.ltx", "0000/02-02.ltx"}},
		{rule: "and cut there, whatever came later", old: []file{{0, 1, 1}, {0, 2, 2}, {0, 3, 3}, {1, 1, 3}, {9, 1, 3}}, links: []hostdb.Link{newest, old(2)},
			want: []string{"0000/01-01.ltx", "0000/02-02.ltx"}},
		{rule: "a baseline that is not there is broken", old: []file{{0, 1, 1}, {0, 2, 2}}, links: []hostdb.Link{newest, old(3)}, err: hostdb.ErrBroken},
		{rule: "a baseline inside a compacted file is broken", old: []file{{9, 1, 3}}, links: []hostdb.Link{newest, old(2)}, err: hostdb.ErrBroken},
		{rule: "the newest may be cut too", new: []file{{0, 1, 1}, {0, 2, 2}}, links: []hostdb.Link{{Generation: "new", StopAt: 1}},
			want: []string{"0000/01-01.ltx"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := memstore.New()
			put(t, s, location+"/db/new/generation.json") // no LTX file
			put(t, s, location+"/db/new/ltx/0000/notes.txt")
			put(t, s, location+"/db/newer/ltx/0000/0000000000000001-0000000000000001.ltx") // another's
			for _, f := range c.new {
				put(t, s, f.key("new"))
			}
			for _, f := range c.old {
				put(t, s, f.key("old"))
			}
			set, err := hostdb.Select(t.Context(), s, location, c.links)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.want, names(set))
			require.Equal(t, c.gap, set.Gap)
			require.Zero(t, s.Requests()[memstore.OpGet])
			for _, o := range set.Objects {
				require.NotEmpty(t, o.ETag)
				require.NotZero(t, o.Size)
			}
		})
	}
}

func TestAnOlderGenerationWithoutACutIsRefused(t *testing.T) {
	s := memstore.New()
	put(t, s, file{0, 1, 1}.key("old"))
	_, err := hostdb.Select(t.Context(), s, location, []hostdb.Link{{Generation: "new"}, {Generation: "old"}})
	require.ErrorContains(t, err, "StopAt 0")
}

func TestAFailedListingIsNeverAnEmptyOne(t *testing.T) {
	s := memstore.New()
	for i := range 1500 {
		put(t, s, file{0, uint64(i + 1), uint64(i + 1)}.key("g"))
	}
	for _, fault := range []memstore.Fault{memstore.Lose, memstore.Torn} {
		for page := range 2 {
			n := 0
			s.Inject(func(r memstore.Request) memstore.Fault {
				if n++; n == page+1 {
					return fault
				}
				return memstore.None
			})
			_, err := hostdb.Select(t.Context(), s, location, []hostdb.Link{{Generation: "g"}})
			require.ErrorIs(t, err, memstore.ErrInjected)
			require.NotErrorIs(t, err, hostdb.ErrEmpty)
			require.NotErrorIs(t, err, hostdb.ErrBroken)
		}
	}
}

// Whatever lies in a generation, the chosen files are a chain from 1 that goes
// as far as any chain does.
func TestPropSelectReachesTheFurthestPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := memstore.New()
		reach := map[uint64]bool{0: true} // positions that some chain ends at
		files := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) file {
			f := file{level: rapid.IntRange(0, 9).Draw(t, "level"), min: rapid.Uint64Range(1, 12).Draw(t, "min")}
			f.max = f.min + rapid.Uint64Range(0, 4).Draw(t, "more")
			switch f.level {
			case 0:
				f.max = f.min
			case 9:
				f.min = 1
			}
			return f
		}), 1, 20).Draw(t, "files")
		for _, f := range files {
			put(t, s, f.key("g"))
		}
		stop := rapid.Uint64Range(0, 12).Draw(t, "stop")
		for range files {
			for _, f := range files {
				for at := range reach {
					if f.min <= at+1 && f.max > at && (stop == 0 || f.max <= stop) {
						reach[f.max] = true
					}
				}
			}
		}
		want := uint64(0)
		for at := range reach {
			want = max(want, at)
		}
		set, err := hostdb.Select(ctx, s, location, []hostdb.Link{{Generation: "g", StopAt: stop}})
		if want == 0 || stop != 0 && want != stop {
			require.ErrorIs(t, err, hostdb.ErrBroken)
			return
		}
		require.NoError(t, err)
		require.Equal(t, want, set.MaxTXID)
		at := uint64(0)
		for _, o := range set.Objects {
			var f file
			_, scan := fmt.Sscanf(o.Key[len(location):], "/db/g/ltx/%04x/%016x-%016x.ltx", &f.level, &f.min, &f.max)
			require.NoError(t, scan)
			require.LessOrEqual(t, f.min, at+1)
			require.Greater(t, f.max, at)
			at = f.max
		}
		require.Equal(t, set.MaxTXID, at)
	})
}
