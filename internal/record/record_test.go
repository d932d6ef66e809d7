package record_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/record/recordtest"
)

type sample struct {
	V     int               `json:"v"`
	Name  string            `json:"name"`
	Count uint64            `json:"count"`
	At    time.Time         `json:"at"`
	Wait  time.Duration     `json:"wait"`
	Tags  []string          `json:"tags,omitempty"`
	Notes map[string]string `json:"notes,omitempty"`
}

var full = sample{V: 1, Name: "a", Count: 1<<64 - 1, At: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC),
	Wait: 90 * time.Second, Tags: []string{"x"}, Notes: map[string]string{"b": "2", "a": "1"}}

var large = sample{V: 1, Name: strings.Repeat("n", 9000), At: full.At, Tags: strings.Fields(strings.Repeat("some-tag ", 1000))}

func TestGolden(t *testing.T) { recordtest.Golden(t, "sample", full) }

func FuzzDecode(f *testing.F) { recordtest.Fuzz(f, full) }

func TestDecodeRefusesWhatEncodeDoesNotWrite(t *testing.T) {
	for name, body := range map[string]string{
		"empty":             "",
		"no newline":        `{"v":1}`,
		"two newlines":      "{\"v\":1}\n\n",
		"trailing data":     "{\"v\":1}\n{}",
		"white space":       "{\"v\": 1}\n",
		"unknown member":    "{\"v\":1,\"x\":1}\n",
		"duplicate member":  "{\"v\":1,\"v\":1}\n",
		"other case":        "{\"V\":1}\n",
		"other order":       "{\"name\":\"a\",\"v\":1}\n",
		"zero value":        "{\"v\":1,\"name\":\"\"}\n",
		"empty list":        "{\"v\":1,\"tags\":[]}\n",
		"null list":         "{\"v\":1,\"tags\":null}\n",
		"exponent":          "{\"v\":1,\"count\":1e3}\n",
		"string for number": "{\"v\":1,\"count\":\"1\"}\n",
		"number too large":  "{\"v\":1,\"count\":18446744073709551616}\n",
		"map order":         "{\"v\":1,\"notes\":{\"b\":\"2\",\"a\":\"1\"}}\n",
		"another zone":      "{\"v\":1,\"at\":\"2026-03-04T05:06:07+01:00\"}\n",
		"trailing zeros":    "{\"v\":1,\"at\":\"2026-03-04T05:06:07.100Z\"}\n",
		"other duration":    "{\"v\":1,\"wait\":\"90s\"}\n",
		"duration in ns":    "{\"v\":1,\"wait\":90}\n",
		"escaped ascii":     "{\"v\":1,\"name\":\"\\u0061\"}\n",
		"invalid UTF-8":     "{\"v\":1,\"name\":\"\xff\"}\n",
		"too large":         "{\"v\":1,\"name\":\"" + strings.Repeat("a", record.MaxSize) + "\"}\n",
		"deep":              strings.Repeat("[", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := record.Decode[sample]([]byte(body))
			require.ErrorIs(t, err, record.ErrMalformed)
		})
	}
}

func TestDecodeComparesAllOfALargeRecord(t *testing.T) {
	good, err := record.Encode(large)
	require.NoError(t, err)
	_, err = record.Decode[sample](good)
	require.NoError(t, err)
	for at, c := range good {
		if c != ',' && c != '}' {
			continue
		}
		_, err := record.Decode[sample](slices.Insert(slices.Clone(good), at, ' '))
		require.ErrorIs(t, err, record.ErrMalformed)
		require.ErrorContains(t, err, fmt.Sprintf("from byte %d", at))
	}
}

func TestEncodeRefusesInvalidUTF8(t *testing.T) {
	_, err := record.Encode(sample{Name: "\xff"})
	require.Error(t, err)
}

func BenchmarkEncode(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := record.Encode(&s.value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) {
			body, err := record.Encode(s.value)
			require.NoError(b, err)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := record.Decode[sample](body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// sizes are what the benchmarks run on.
var sizes = []struct {
	name  string
	value sample
}{
	{"small", full},
	{"large", large},
}
