package hostdb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superfly/ltx"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

func testClient(t *testing.T, s objstore.Store, base uint64) *client {
	t.Helper()
	c, err := newClient(t.Context(), s, Config{
		MetaDir:    t.TempDir(),
		Generation: Generation{Location: "instances/h/1", ID: "g", Session: 1},
		Base:       base,
		Check:      func() error { return nil },
	})
	require.NoError(t, err)
	return c
}

// body is a small LTX file; marks of other values make other bytes.
func body(t *testing.T, low, high ltx.TXID, mark int64) []byte {
	t.Helper()
	var b bytes.Buffer
	enc, err := ltx.NewEncoder(&b)
	require.NoError(t, err)
	h := rootHeader(ltx.Header{PageSize: 512, Commit: 1, MaxTXID: high, Timestamp: mark}, low)
	require.NoError(t, enc.EncodeHeader(h))
	require.NoError(t, enc.EncodePage(ltx.PageHeader{Pgno: 1}, make([]byte, 512)))
	require.NoError(t, enc.Close())
	return b.Bytes()
}

func (c *client) write(t *testing.T, level int, low, high ltx.TXID, b []byte) error {
	_, err := c.WriteLTXFile(t.Context(), level, low, high, bytes.NewReader(b))
	return err
}

func TestTheClientWritesOnlyNamesOfItsGeneration(t *testing.T) {
	s := memstore.New()
	c := testClient(t, s, 0)
	for why, n := range map[string]ltxName{
		"level below 0":     {-1, 1, 1},
		"level above 9":     {10, 1, 1},
		"TXID 0":            {0, 0, 0},
		"backwards":         {1, 2, 1},
		"two at level 0":    {0, 1, 2},
		"a snapshot from 2": {9, 2, 3},
		"a hole at level 0": {0, 2, 2},
	} {
		b := body(t, 1, 1, 1)
		if n.min > 0 && n.max >= n.min {
			b = body(t, n.min, n.max, 1)
		}
		require.ErrorIs(t, c.write(t, n.level, n.min, n.max, b), errBadName, why)
	}
	require.ErrorIs(t, c.write(t, 1, 1, 2, body(t, 1, 1, 1)), errBadName, "a body of another name")
	require.Error(t, c.write(t, 0, 1, 1, []byte("no LTX file")))
	require.Empty(t, s.Log())
	require.NoError(t, c.write(t, 0, 1, 1, body(t, 1, 1, 1)))
	require.Equal(t, "instances/h/1/db/g/ltx/0000/0000000000000001-0000000000000001.ltx", s.Log()[0].Key)
	require.True(t, s.Log()[0].Cond.IsAbsent())
}

func TestLevelZeroIsAboveTheBase(t *testing.T) {
	s := memstore.New()
	_, err := s.Put(t.Context(), "instances/h/1/db/g/ltx/0000/0000000000000005-0000000000000005.ltx", body(t, 5, 5, 1), objstore.IfAbsent())
	require.NoError(t, err)
	c := testClient(t, s, 5)
	require.NoError(t, c.checkHolds(0))
	for _, txid := range []ltx.TXID{1, 4, 5} {
		require.ErrorIs(t, c.write(t, 0, txid, txid, body(t, txid, txid, 1)), errBadName)
	}
	require.NoError(t, c.write(t, 0, 6, 6, body(t, 6, 6, 1)))
}

func TestTheClientDeletesNothing(t *testing.T) {
	s := memstore.New()
	c := testClient(t, s, 0)
	require.NoError(t, c.write(t, 0, 1, 1, body(t, 1, 1, 1)))
	require.NoError(t, c.DeleteLTXFiles(t.Context(), nil))
	require.ErrorIs(t, c.DeleteLTXFiles(t.Context(), []*ltx.FileInfo{{MinTXID: 1, MaxTXID: 1}}), errors.ErrUnsupported)
	require.ErrorIs(t, c.DeleteAll(t.Context()), errors.ErrUnsupported)
	require.Len(t, c.list(t, 0), 1)
}

func (c *client) list(t *testing.T, level int) []*ltx.FileInfo {
	itr, err := c.LTXFiles(t.Context(), level, 0, false)
	require.NoError(t, err)
	files, err := ltx.SliceFileIterator(itr)
	require.NoError(t, err)
	return files
}

func TestTheSameBytesAgainAreSuccessAndOthersFence(t *testing.T) {
	for _, size := range []int{0, 3 << 20} { // from memory, and streamed from a file
		s := memstore.New()
		c := testClient(t, s, 0)
		b := body(t, 1, 1, 1)
		big := append(bytes.Clone(b), make([]byte, size)...)
		stream := func(b []byte) error {
			_, err := c.WriteLTXFile(t.Context(), 0, 1, 1, io.MultiReader(bytes.NewReader(b)))
			return err
		}
		require.NoError(t, stream(big))
		require.NoError(t, stream(big))
		require.Len(t, c.list(t, 0), 1)
		for _, other := range [][]byte{big[:len(big)-1], append(bytes.Clone(big), 0), append(bytes.Clone(big[:len(big)-1]), 7)} {
			c := testClient(t, s, 0)
			_, err := c.WriteLTXFile(t.Context(), 0, 1, 1, io.MultiReader(bytes.NewReader(other)))
			require.ErrorIs(t, err, ErrFenced)
			requests := s.Requests()
			require.ErrorIs(t, c.write(t, 0, 2, 2, body(t, 2, 2, 1)), ErrFenced, "for good")
			require.Equal(t, requests, s.Requests())
		}
		left, err := os.ReadDir(c.dir)
		require.NoError(t, err)
		require.Empty(t, left, "no spool file stays")
	}
}

// A write that failed is not known, so Litestream's position, which comes from
// what the client lists, never counts it.
func TestAFailedWriteIsNotListed(t *testing.T) {
	s := memstore.New()
	c := testClient(t, s, 0)
	s.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpPut {
			return memstore.LoseAnswer
		}
		return memstore.Lose
	})
	require.Error(t, c.write(t, 0, 1, 1, body(t, 1, 1, 1)))
	require.Len(t, s.Log(), 1, "it is there")
	require.Empty(t, c.list(t, 0))
	s.Inject(nil)
	require.ErrorIs(t, c.write(t, 0, 1, 1, body(t, 1, 1, 2)), ErrFenced)
}

func TestTheClientKnowsFilesInOrderAndForgetsThem(t *testing.T) {
	s := memstore.New()
	c := testClient(t, s, 0)
	for txid := range ltx.TXID(6) {
		require.NoError(t, c.write(t, 0, txid+1, txid+1, body(t, txid+1, txid+1, 1)))
	}
	itr, err := c.LTXFiles(t.Context(), 0, 5, false)
	require.NoError(t, err)
	files, err := ltx.SliceFileIterator(itr)
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.Equal(t, ltx.TXID(5), files[0].MinTXID)

	require.Len(t, c.forget(0, 3), 3)
	require.Len(t, c.list(t, 0), 3)
	require.Len(t, c.forget(0, 6), 2, "all but the newest")
	require.Equal(t, ltx.TXID(6), c.newest(0))
	require.Equal(t, 1, s.Requests()[memstore.OpList])
}

func TestTheClientReadsAPartOfAFile(t *testing.T) {
	s := memstore.New()
	b := body(t, 1, 1, 1)
	for _, s := range []objstore.Store{s, struct{ objstore.Store }{s}} {
		c := testClient(t, s, 0)
		require.NoError(t, c.write(t, 0, 1, 1, b))
		for _, part := range []struct{ offset, size, end int64 }{{0, 0, int64(len(b))}, {10, 20, 30}, {50, 0, int64(len(b))}} {
			r, err := c.OpenLTXFile(t.Context(), 0, 1, 1, part.offset, part.size)
			require.NoError(t, err)
			got, err := io.ReadAll(r)
			require.NoError(t, errors.Join(err, r.Close()))
			require.Equal(t, b[part.offset:part.end], got)
		}
		_, err := c.OpenLTXFile(t.Context(), 0, 2, 2, 0, 0)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

func TestABodyTooLongForAStoreThatCannotStreamIsRefused(t *testing.T) {
	s := memstore.New()
	_, err := create(context.Background(), struct{ objstore.Store }{s}, "k", strings.NewReader(""), objstore.MaxGet+1)
	require.ErrorIs(t, err, objstore.ErrTooLarge)
	require.Empty(t, s.Log())
}
