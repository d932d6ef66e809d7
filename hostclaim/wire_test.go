package hostclaim_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/record"
)

// goldens are the claims in testdata, one of each state.
func goldens(tb testing.TB) map[string][]byte {
	tb.Helper()
	paths, err := filepath.Glob("testdata/*.json")
	require.NoError(tb, err)
	require.NotEmpty(tb, paths)
	claims := map[string][]byte{}
	for _, path := range paths {
		claims[filepath.Base(path)], err = os.ReadFile(path)
		require.NoError(tb, err)
	}
	return claims
}

// errorOrItself: any byte string is an error, or a valid claim that encodes to
// the same bytes.
func errorOrItself(tb testing.TB, b []byte) (accepted bool) {
	tb.Helper()
	c, err := hostclaim.Decode(b)
	if err != nil {
		require.ErrorIs(tb, err, hostclaim.ErrMalformed)
		return false
	}
	require.NoError(tb, c.Validate())
	again, err := record.Encode(c)
	require.NoError(tb, err)
	require.True(tb, bytes.Equal(b, again), "decoded %s\nencoded %s", b, again)
	return true
}

func FuzzDecode(f *testing.F) {
	for _, b := range goldens(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { errorOrItself(t, b) })
}

// TestEverySingleByteCorruptionIsAnErrorOrAnotherClaim flips each bit of each
// byte of every golden claim, drops each byte and doubles it. What is accepted
// says what its bytes say: nothing changes silently.
func TestEverySingleByteCorruptionIsAnErrorOrAnotherClaim(t *testing.T) {
	for name, good := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.True(t, errorOrItself(t, good))
			for i := range good {
				if testing.Short() && i%7 != 0 {
					continue
				}
				for bit := range 8 {
					bad := bytes.Clone(good)
					bad[i] ^= 1 << bit
					errorOrItself(t, bad)
				}
				errorOrItself(t, append(bytes.Clone(good[:i]), good[i+1:]...))
				errorOrItself(t, append(bytes.Clone(good[:i+1]), good[i:]...))
			}
		})
	}
}

// TestEveryByteAtEveryPlaceOfOneClaim puts all 256 values everywhere.
func TestEveryByteAtEveryPlaceOfOneClaim(t *testing.T) {
	if testing.Short() {
		t.Skip("200,000 decodes")
	}
	good := goldens(t)["serving.json"]
	for i := range good {
		for v := range 256 {
			bad := bytes.Clone(good)
			bad[i] = byte(v)
			errorOrItself(t, bad)
		}
	}
}

func TestDecodeRefusesWhatIsNotTheOneEncodingOfAClaim(t *testing.T) {
	good := string(goldens(t)["probed.json"])
	replaced := func(old, with string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, with, 1)
	}
	for name, body := range map[string]string{
		"empty":                      "",
		"white space":                " \n",
		"null":                       "null\n",
		"a list":                     "[" + strings.TrimSpace(good) + "]\n",
		"a mebibyte of garbage":      strings.Repeat("\xff{", 1<<19),
		"a mebibyte of brackets":     strings.Repeat("[", 1<<20),
		"deep nesting in a field":    replaced(`"gen":16`, `"gen":`+strings.Repeat(`{"a":`, 10_000)+"1"+strings.Repeat("}", 10_000)),
		"over the size of a record":  `{"v":1,"host":"` + strings.Repeat("a", record.MaxSize) + `"}`,
		"an unknown member":          replaced(`"v":1`, `"v":1,"x":1`),
		"an unknown inner member":    replaced(`"intent":{`, `"intent":{"x":1,`),
		"a member twice":             replaced(`"gen":16`, `"gen":16,"gen":16`),
		"a member twice, in a map":   replaced(`"acks":{`, `"acks":{"box-2":"enr-2",`),
		"another case":               replaced(`"gen":16`, `"Gen":16`),
		"another order":              replaced(`"v":1,"host":"notes.demo.example"`, `"host":"notes.demo.example","v":1`),
		"white space between":        replaced(`"v":1,`, `"v":1, `),
		"no trailing newline":        strings.TrimSuffix(good, "\n"),
		"trailing data":              good + "{}",
		"a second newline":           good + "\n",
		"a byte order mark":          "\ufeff" + good,
		"an escaped letter":          replaced(`"op-2"`, `"op\u002d2"`),
		"invalid UTF-8":              replaced(`"by":"box-9"`, "\"by\":\"box-\xff\""),
		"a string for a number":      replaced(`"gen":16`, `"gen":"16"`),
		"a number for a string":      replaced(`"by":"box-9"`, `"by":9`),
		"a list for a map":           replaced(`"acks":{"box-2":"enr-2"}`, `"acks":["box-2"]`),
		"a bool for a list":          replaced(`"lost":["box-1"]`, `"lost":true`),
		"a fraction":                 replaced(`"gen":16`, `"gen":16.0`),
		"an exponent":                replaced(`"gen":16`, `"gen":1e2`),
		"a leading zero":             replaced(`"gen":16`, `"gen":016`),
		"a negative gen":             replaced(`"gen":16`, `"gen":-16`),
		"a gen over 64 bits":         replaced(`"gen":16`, `"gen":18446744073709551616`),
		"a number of a million":      replaced(`"gen":16`, `"gen":1`+strings.Repeat("0", 1_000_000)),
		"a time in another zone":     replaced(`"started_at":"2026-03-01T12:01:00Z"`, `"started_at":"2026-03-01T13:01:00+01:00"`),
		"a time that is none":        replaced(`"started_at":"2026-03-01T12:01:00Z"`, `"started_at":"yesterday"`),
		"a duration in another form": replaced(`"pin_delay":"2s"`, `"pin_delay":"2000ms"`),
		"an empty value spelt out":   replaced(`"v":1,`, `"v":1,"touched":[],`),
		"a null spelt out":           replaced(`"by":"box-9"`, `"by":null`),
	} {
		t.Run(name, func(t *testing.T) { require.False(t, errorOrItself(t, []byte(body))) })
	}
}
