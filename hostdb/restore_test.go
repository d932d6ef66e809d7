package hostdb_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superfly/ltx"

	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// replace puts other bytes under a key and makes the set name that version, as
// if it had been pinned so.
func replace(t *testing.T, s objstore.Store, set hostdb.RecoverySet, i int, body []byte) hostdb.RecoverySet {
	t.Helper()
	info, err := s.Put(t.Context(), set.Objects[i].Key, body, objstore.Always())
	require.NoError(t, err)
	set.Objects[i].ETag, set.Objects[i].Size = info.ETag, info.Size
	return set
}

// withHeader is a sound LTX file with the same pages and another header.
func withHeader(t *testing.T, b []byte, change func(*ltx.Header)) []byte {
	t.Helper()
	dec := ltx.NewDecoder(bytes.NewReader(b))
	require.NoError(t, dec.DecodeHeader())
	h := dec.Header()
	change(&h)
	var out bytes.Buffer
	enc, err := ltx.NewEncoder(&out)
	require.NoError(t, err)
	require.NoError(t, enc.EncodeHeader(h))
	for data := make([]byte, h.PageSize); ; {
		var page ltx.PageHeader
		if err := dec.DecodePage(&page, data); err == io.EOF {
			break
		}
		require.NoError(t, enc.EncodePage(ltx.PageHeader{Pgno: page.Pgno}, data))
	}
	require.NoError(t, enc.Close())
	return out.Bytes()
}

func TestRestoreRefusesEverythingButTheExactSet(t *testing.T) {
	source := func() (*memstore.Store, hostdb.RecoverySet, [][]byte) {
		s := memstore.New()
		b := newBox(t, s)
		r := b.bootstrap("g")
		a := localApp(t, b.path())
		a.exec(createNotes)
		for _, body := range []string{"one", "two", "three", "four"} {
			a.insert(body)
			durable(t, r)
		}
		set := b.selected(hostdb.Link{Generation: "g"})
		require.GreaterOrEqual(t, len(set.Objects), 4)
		var bodies [][]byte
		for _, o := range set.Objects {
			got, err := s.Get(t.Context(), o.Key)
			require.NoError(t, err)
			bodies = append(bodies, got.Body)
		}
		return s, set, bodies
	}
	s, pinned, bodies := source()
	// as another writer would have made it: in its place and of the same size
	foreign := withHeader(t, bodies[2], func(h *ltx.Header) { h.Timestamp++ })
	flipped := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 4
		return b
	}
	for rule, damage := range map[string]func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet{
		"the image is cut short": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			return replace(t, s, set, 0, bodies[0][:len(bodies[0])-1])
		},
		"the image is cut short after a page": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			return replace(t, s, set, 0, bodies[0][:len(bodies[0])/2])
		},
		"the image goes on after its end": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			return replace(t, s, set, 0, append(bytes.Clone(bodies[0]), 0))
		},
		"a transaction is cut short": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			return replace(t, s, set, 2, bodies[2][:len(bodies[2])-20])
		},
		"a transaction is nothing": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			return replace(t, s, set, 2, nil)
		},
		"a bit is flipped in the image": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			return replace(t, s, set, 0, flipped(bodies[0], len(bodies[0])/2))
		},
		"a bit is flipped in a transaction": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			return replace(t, s, set, 1, flipped(bodies[1], 120))
		},
		"a bit is flipped in a checksum": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			return replace(t, s, set, 1, flipped(bodies[1], len(bodies[1])-1))
		},
		"another transaction under the name": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			return replace(t, s, set, 2, bodies[1])
		},
		"the header says more than the name": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			return replace(t, s, set, 2, withHeader(t, bodies[2], func(h *ltx.Header) { h.MinTXID-- }))
		},
		"a foreign object under the name": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			_, err := s.Put(t.Context(), set.Objects[2].Key, foreign, objstore.Always())
			require.NoError(t, err)
			return set
		},
		"a foreign object known by SHA-256 only": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			set = replace(t, s, set, 2, foreign)
			set.Objects[2].ETag, set.Objects[2].SHA256 = "", digestOf(bodies[2])
			return set
		},
		"an object of another size": func(_ *testing.T, _ *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			set.Objects[0].Size++
			return set
		},
		"an object is gone": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			require.NoError(t, s.DeleteVersion(t.Context(), set.Objects[1].Key, set.Objects[1].VersionID))
			return set
		},
		"the middle is missing": func(_ *testing.T, _ *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			set.Objects = slices.Delete(set.Objects, 1, 2)
			return set
		},
		"the image is missing": func(_ *testing.T, _ *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			set.Objects = set.Objects[1:]
			return set
		},
		"the first holds all pages but begins late": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			late := withHeader(t, bodies[0], func(h *ltx.Header) { h.MinTXID, h.MaxTXID = 5, 5 })
			set.Objects, set.MaxTXID = set.Objects[:1], 5
			set.Objects[0].Key = file{0, 5, 5}.key("g")
			return replace(t, s, set, 0, late)
		},
		"the end is missing": func(_ *testing.T, _ *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			set.Objects = set.Objects[:len(set.Objects)-1]
			return set
		},
		"two are swapped": func(_ *testing.T, _ *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			set.Objects[1], set.Objects[2] = set.Objects[2], set.Objects[1]
			return set
		},
		"the key is no LTX name": func(t *testing.T, s *memstore.Store, set hostdb.RecoverySet) hostdb.RecoverySet {
			set.Objects[1].Key = location + "/db/g/ltx/0000/copy"
			return replace(t, s, set, 1, bodies[1])
		},
	} {
		t.Run(rule, func(t *testing.T) {
			s, set := cloneOf(t, s), pinned
			set.Objects = slices.Clone(set.Objects)
			path := filepath.Join(t.TempDir(), "app.db")
			set = damage(t, s, set)
			_, err := hostdb.Restore(t.Context(), s, set, path, nil)
			require.ErrorIs(t, err, hostdb.ErrBroken)
			left, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestRestoreNeedsAFreshPath(t *testing.T) {
	s := memstore.New()
	source(t, s, "g")
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		b := newBox(t, s)
		require.NoError(t, os.WriteFile(b.path()+suffix, []byte("of another life"), 0o600))
		set := b.selected(hostdb.Link{Generation: "g"})
		_, err := hostdb.Restore(t.Context(), s, set, b.path(), nil)
		require.ErrorIs(t, err, hostdb.ErrNotFresh)
		_, err = b.builder().BuildPrepared(t.Context(), set, location, "p", b.path())
		require.ErrorIs(t, err, hostdb.ErrNotFresh)
	}
}

// streams is a store where the body of one key breaks off.
type streams struct {
	*memstore.Store
	key   string
	after int64
}

var errReset = errors.New("connection reset")

func (s streams) GetReader(ctx context.Context, key, etag string, offset int64) (io.ReadCloser, objstore.Info, error) {
	r, info, err := s.Store.GetReader(ctx, key, etag, offset)
	if err != nil || key != s.key {
		return r, info, err
	}
	return io.NopCloser(io.MultiReader(io.LimitReader(r, s.after), errReader{})), info, nil
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errReset }

func TestABrokenConnectionSaysNothingAboutTheSet(t *testing.T) {
	s := memstore.New()
	source(t, s, "g")
	b := newBox(t, s)
	set := b.selected(hostdb.Link{Generation: "g"})
	for _, o := range set.Objects[:2] {
		for _, after := range []int64{0, 50, 500, o.Size} {
			_, err := hostdb.Restore(t.Context(), streams{s, o.Key, after}, set, b.path(), nil)
			require.ErrorIs(t, err, errReset)
			require.NotErrorIs(t, err, hostdb.ErrBroken)
			require.NoFileExists(t, b.path())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := hostdb.Restore(ctx, s, set, b.path(), nil)
	require.ErrorIs(t, err, context.Canceled)
}

// plain hides that a store can stream.
type plain struct{ objstore.Store }

func TestAStoreThatCannotStreamServesSmallDatabases(t *testing.T) {
	s := memstore.New()
	source(t, s, "g")
	b := newBox(t, plain{s})
	set := b.selected(hostdb.Link{Generation: "g"})
	b.prepare(set, "p")
	_, err := hostdb.VerifyPrepared(t.Context(), s, location, "p", set)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two", "three", "four", "five"}, notes(t, b.path()))
}
