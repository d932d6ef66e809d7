package hostfiles

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/record/recordtest"
)

var (
	goldenTarget = Target{Location: "instances/shop.example/inc1", Generation: "g2", Session: 7, Stamp: 7}
	goldenTime   = time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
)

func goldenFile(path string, seq uint64) Entry {
	sum := digest([]byte(path))
	return Entry{Path: path, Kind: KindFile, Seq: seq, Size: int64(len(path)), Mode: 0o640, MTime: goldenTime,
		SHA256: sum, Object: goldenTarget.objectKey(seq, sum)}
}

func goldenItem(path string, seq uint64) Entry {
	e := goldenFile(path, seq)
	e.Mode, e.MTime = 0, time.Time{}
	return e
}

// goldenEntries has one of everything that an entry can be, in order.
func goldenEntries() []Entry {
	owned := goldenFile("files/a", 11)
	owned.Owner = &Owner{UID: 1000, GID: 1001}
	torn := goldenFile("files/log", 12)
	torn.Torn = true
	kept := goldenFile("files/z/large", 13)
	kept.Skipped = skipTooLarge
	odd := goldenFile("", 14)
	odd.setName("files/z/\xff")
	link := Entry{Path: "files/z/link", Kind: KindSymlink, Seq: 15, Target: "../a", Owner: &Owner{}}
	oddLink := Entry{Path: "files/z/odd", Kind: KindSymlink, Seq: 15}
	oddLink.setTarget("\xfe")
	return []Entry{
		{Path: "files", Kind: KindDir, Seq: 10, Mode: 0o2770, MTime: goldenTime},
		owned, torn,
		{Path: "files/z", Kind: KindDir, Seq: 10, Mode: 0o700, MTime: goldenTime, Skipped: skipUnreadable},
		kept, link,
		{Path: "files/z/new", Kind: KindFile, Seq: 16, Skipped: skipUnreadable},
		oddLink,
		{Path: "files/z/pipe", Kind: KindSpecial, Seq: 17, Skipped: skipPipe},
		odd,
	}
}

func goldenManifest() Manifest {
	sum := digest([]byte("base"))
	changes := append(goldenEntries(), goldenItem(EnvFile, 18), goldenItem(InstanceKey, 19))
	changes[2] = Entry{Path: "files/gone", Kind: KindTombstone, Seq: 20}
	return Manifest{
		V: 1, Gen: 3, Write: "00112233445566778899aabbccddeeff", Location: goldenTarget.Location,
		Generation: "g2", Session: 7, Stamp: 8, Seq: 20,
		From:    &ManifestRef{Key: ManifestKey(goldenTarget.Location, "g1"), SHA256: digest([]byte("from")), Seq: 5},
		Opened:  digest([]byte("opened")),
		Base:    &BaseRef{Key: goldenTarget.objectKey(9, sum), SHA256: sum, Size: 4, Entries: 1},
		Changes: changes,
	}
}

func TestGoldenManifest(t *testing.T) {
	recordtest.Golden(t, "manifest", goldenManifest())
	body, err := record.Encode(goldenManifest())
	require.NoError(t, err)
	m, err := decodeManifest(body)
	require.NoError(t, err)
	require.Equal(t, goldenManifest(), m)
}

func FuzzManifest(f *testing.F) {
	body, err := record.Encode(goldenManifest())
	require.NoError(f, err)
	f.Add(body)
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := decodeManifest(body)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		again, err := record.Encode(m)
		require.NoError(t, err)
		require.Equal(t, body, again)
		for i := range m.Changes {
			requireConfined(t, m.Location, &m.Changes[i])
		}
	})
}

// requireConfined holds an accepted entry to what a restore relies on.
func requireConfined(t *testing.T, location string, e *Entry) {
	t.Helper()
	require.NoError(t, checkPath(e.name()))
	require.NotContains(t, strings.Split(e.name(), "/"), "..")
	if e.Object != "" {
		require.True(t, strings.HasPrefix(e.Object, location+"/files/"))
		require.NotContains(t, e.Object, "/../")
	}
}

func goldenBase(t require.TestingT) ([]byte, BaseRef) {
	body, err := encodeBase(goldenTarget.Location, goldenEntries())
	require.NoError(t, err)
	return body, baseRef(body, len(goldenEntries()))
}

func baseRef(body []byte, entries int) BaseRef {
	return BaseRef{Key: goldenTarget.objectKey(1, digest(body)), SHA256: digest(body), Size: int64(len(body)), Entries: entries}
}

func TestGoldenBase(t *testing.T) {
	body, ref := goldenBase(t)
	if update := flag.Lookup("update-golden"); update.Value.String() == "true" {
		require.NoError(t, os.WriteFile("testdata/base.jsonl", body, 0o644))
	}
	want, err := os.ReadFile("testdata/base.jsonl")
	require.NoError(t, err)
	require.Equal(t, string(want), string(body))
	entries, err := decodeBase(bytes.NewReader(want), goldenTarget.Location, ref)
	require.NoError(t, err)
	require.Equal(t, byName(goldenEntries()), entries)
}

func FuzzBase(f *testing.F) {
	body, ref := goldenBase(f)
	f.Add(body, ref.Entries)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, body []byte, count int) {
		entries, err := decodeBase(bytes.NewReader(body), goldenTarget.Location, baseRef(body, count))
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		again, err := encodeBase(goldenTarget.Location, sorted(entries))
		require.NoError(t, err)
		require.Equal(t, string(body), string(again))
		for _, e := range entries {
			requireConfined(t, goldenTarget.Location, &e)
		}
	})
}

func TestABaseThatBreaksARuleIsRefused(t *testing.T) {
	body, _ := goldenBase(t)
	lines := strings.SplitAfter(string(body), "\n")
	lines = lines[:len(lines)-1]
	join := func(l ...string) string { return strings.Join(l, "") }
	entry := func(e Entry) string {
		b, err := record.Encode(e)
		require.NoError(t, err)
		return string(b)
	}
	header := func(n int) string {
		b, err := record.Encode(baseHeader{manifestVersion, goldenTarget.Location, n})
		require.NoError(t, err)
		return string(b)
	}
	for name, test := range map[string]struct {
		body  string
		count int
	}{
		"empty":            {"", 0},
		"cut":              {join(lines[:5]...), len(lines) - 1},
		"cut in a line":    {string(body[:len(body)-3]), len(lines) - 1},
		"more":             {join(lines...) + lines[1], len(lines) - 1},
		"other count":      {join(lines...), 3},
		"other location":   {strings.Replace(header(0), "shop", "bank", 1), 0},
		"twice":            {header(2) + lines[1] + lines[1], 2},
		"out of order":     {header(2) + lines[2] + lines[1], 2},
		"tombstone":        {header(1) + entry(Entry{Path: "files/a", Kind: KindTombstone}), 1},
		"platform item":    {header(1) + entry(goldenItem(EnvFile, 1)), 1},
		"path up":          {header(1) + entry(goldenFile("files/../x", 1)), 1},
		"long line":        {header(1) + strings.Repeat("x", 2*maxLine) + "\n", 1},
		"not its encoding": {header(1) + strings.Replace(lines[1], ":", ": ", 1), 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeBase(strings.NewReader(test.body), goldenTarget.Location, baseRef([]byte(test.body), test.count))
			require.ErrorIs(t, err, ErrMalformed)
		})
	}
}

func TestABaseOfOtherBytesIsRefused(t *testing.T) {
	body, ref := goldenBase(t)
	for name, other := range map[string][]byte{
		"changed": bytes.Replace(body, []byte(`"uid":1000`), []byte(`"uid":1001`), 1), "shorter": body[:len(body)-1],
		"longer": append(bytes.Clone(body), '\n'), "garbage": []byte("x"),
	} {
		_, err := decodeBase(bytes.NewReader(other), goldenTarget.Location, ref)
		require.ErrorIs(t, err, ErrDigest, name)
	}
	broken := errors.New("connection reset")
	_, err := decodeBase(&failing{body[:100], broken}, goldenTarget.Location, ref)
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, ErrMalformed)
}

// failing is a body that ends in an error.
type failing struct {
	body []byte
	err  error
}

func (f *failing) Read(p []byte) (int, error) {
	if len(f.body) == 0 {
		return 0, f.err
	}
	n := copy(p, f.body)
	f.body = f.body[n:]
	return n, nil
}
