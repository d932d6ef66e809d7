package hostdb

import (
	"testing"

	"github.com/superfly/ltx"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record/recordtest"
)

const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

var (
	goldenSet = RecoverySet{
		Generation: "g1",
		Objects: []ObjectRef{
			{Key: "instances/shop.example/1/db/g1/ltx/0009/0000000000000001-0000000000000007.ltx", ETag: `"a1"`, VersionID: "v1", Size: 4096},
			{Key: "instances/shop.example/1/db/g1/ltx/0000/0000000000000008-0000000000000008.ltx", ETag: `"b2"`, Size: 200},
		},
		MaxTXID: 8,
		Gap:     "the chain ends at TXID 8; the next file is 0000/000000000000000a-000000000000000a.ltx",
	}
	goldenBuild = build{
		V: 1, Location: "instances/shop.example/1", Generation: "p1", Mode: modeCopy, Source: "g1",
		SetSHA256: digest, TXID: 8,
	}
	goldenInstall = install{
		V: 1, Generation: "p1", BuildSHA256: digest, TXID: 8, DatabaseSHA256: digest,
		Objects: []ObjectRef{
			{Key: "instances/shop.example/1/db/p1/ltx/0009/0000000000000001-0000000000000007.ltx", SHA256: digest, Size: 4096},
			{Key: "instances/shop.example/1/db/p1/ltx/0008/0000000000000008-0000000000000008.ltx", SHA256: digest, Size: 200},
			{Key: "instances/shop.example/1/db/p1/ltx/0000/0000000000000008-0000000000000008.ltx", SHA256: digest, Size: 131},
		},
	}
	goldenPublished = published{V: 1, Location: "instances/shop.example/1", Generation: "g1"}
	goldenIdentity  = identity{Boot: "6b7e2c4a-0d1f-4e55-9a53-2f0f5d7f3c11", Dev: 65024, Ino: 77, Size: 8192, Mtime: 1772600767000000008, Ctime: 1772600767000000009}
	goldenSeal      = seal{V: 1, DatabaseSHA256: digest, File: goldenIdentity}
	goldenWarmed    = warmed{
		V: 1, Generation: "g1",
		Objects: []ObjectRef{
			{Key: goldenSet.Objects[0].Key, ETag: `"a1"`, VersionID: "v1", SHA256: digest, Size: 4096},
		},
		TXID: 7, PageSize: 4096, Pages: 2, Timestamp: 1772600767008, DatabaseSHA256: digest, IndexSHA256: digest, File: goldenIdentity,
	}
	goldenSession = session{V: 1, Location: "instances/shop.example/1", Generation: "p1", Session: 12, Base: 8}
)

func TestGoldenRecords(t *testing.T) {
	recordtest.Golden(t, "set", goldenSet)
	recordtest.Golden(t, "build", goldenBuild)
	recordtest.Golden(t, "install", goldenInstall)
	recordtest.Golden(t, "generation", goldenPublished)
	recordtest.Golden(t, "session", goldenSession)
	recordtest.Golden(t, "seal", goldenSeal)
	recordtest.Golden(t, "warm", goldenWarmed)
}

func FuzzSet(f *testing.F)       { recordtest.Fuzz(f, goldenSet) }
func FuzzBuild(f *testing.F)     { recordtest.Fuzz(f, goldenBuild) }
func FuzzInstall(f *testing.F)   { recordtest.Fuzz(f, goldenInstall) }
func FuzzPublished(f *testing.F) { recordtest.Fuzz(f, goldenPublished) }
func FuzzSession(f *testing.F)   { recordtest.Fuzz(f, goldenSession) }
func FuzzSeal(f *testing.F)      { recordtest.Fuzz(f, goldenSeal) }
func FuzzWarmed(f *testing.F)    { recordtest.Fuzz(f, goldenWarmed) }

func FuzzParseLTX(f *testing.F) {
	f.Add("0000/0000000000000001-0000000000000001.ltx")
	f.Add("0009/0000000000000001-00000000000000ff.ltx")
	f.Add("0001/ffffffffffffffff-ffffffffffffffff.ltx")
	f.Fuzz(func(t *testing.T, s string) {
		name, err := parseLTX(s)
		if err != nil {
			return
		}
		require.Equal(t, s, name.String())
		require.NoError(t, name.check())
	})
}

func TestAnLTXNameHasOneForm(t *testing.T) {
	for _, name := range []ltxName{{0, 1, 1}, {1, 2, 9}, {8, 1, 1 << 40}, {9, 1, 77}} {
		got, err := parseLTX(name.String())
		require.NoError(t, err)
		require.Equal(t, name, got)
	}
	for why, s := range map[string]string{
		"no level":                "0000000000000001-0000000000000001.ltx",
		"short level":             "0/0000000000000001-0000000000000001.ltx",
		"level too high":          "000a/0000000000000001-0000000000000001.ltx",
		"upper case":              "0001/000000000000000A-000000000000000B.ltx",
		"TXID 0":                  "0001/0000000000000000-0000000000000001.ltx",
		"backwards":               "0001/0000000000000003-0000000000000002.ltx",
		"two at level 0":          "0000/0000000000000001-0000000000000002.ltx",
		"a snapshot from 2":       "0009/0000000000000002-0000000000000003.ltx",
		"deeper":                  "0000/x/0000000000000001-0000000000000001.ltx",
		"another suffix":          "0000/0000000000000001-0000000000000001.ltx.tmp",
		"a line break at the end": "0000/0000000000000001-0000000000000001.ltx\n",
	} {
		_, err := parseLTX(s)
		require.ErrorIs(t, err, errBadName, why)
	}
}

func TestAGenerationNeverLeavesItsPrefix(t *testing.T) {
	for _, g := range []Generation{
		{Location: "", ID: "g", Session: 1},
		{Location: "a/../b", ID: "g", Session: 1},
		{Location: "a//b", ID: "g", Session: 1},
		{Location: "/a", ID: "g", Session: 1},
		{Location: "a", ID: "", Session: 1},
		{Location: "a", ID: "..", Session: 1},
		{Location: "a", ID: "g/h", Session: 1},
		{Location: "a", ID: "g h", Session: 1},
		{Location: "a", ID: "g"},
	} {
		require.ErrorIs(t, g.check(), errBadName, "%+v", g)
	}
	require.NoError(t, Generation{Location: "instances/shop.example/1", ID: "g-1", Session: 1}.check())
}

func TestPagesComeInOrderWithABlankLockPage(t *testing.T) {
	var got []uint32
	o := inOrder{lock: 3, blank: []byte{0}, page: func(pgno uint32, data []byte) error {
		got = append(got, pgno)
		require.Equal(t, pgno == 3, data[0] == 0)
		return nil
	}}
	for _, pgno := range []uint32{1, 2, 4, 5} {
		require.NoError(t, o.put(pgno, []byte{1}))
	}
	require.Equal(t, []uint32{1, 2, 3, 4, 5}, got)
	require.ErrorIs(t, o.put(7, []byte{1}), ErrBroken, "a hole")
	require.ErrorIs(t, o.put(5, []byte{1}), ErrBroken, "backwards")
}

// The root of a prepared generation is what Litestream goes on from.
func TestTheAnchorHasTheHeaderThatLitestreamNeeds(t *testing.T) {
	h := rootHeader(ltx.Header{PageSize: 4096, Commit: 10, MinTXID: 3, MaxTXID: 7, Timestamp: 99, WALSalt1: 5, WALSize: 9}, 7)
	require.Equal(t, ltx.Header{
		Version: ltx.Version, Flags: ltx.HeaderFlagNoChecksum, PageSize: 4096, Commit: 10,
		MinTXID: 7, MaxTXID: 7, Timestamp: 99, WALOffset: 32,
	}, h)
}
