package lease

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/record/recordtest"
)

var golden = body{V: 1, Gen: 7, Write: "8f3c", Holder: "box-1/e-1", Token: "a1b2", TTLMillis: 15_000, Free: true}

func TestGoldenLease(t *testing.T) { recordtest.Golden(t, "lease", golden) }

func FuzzLease(f *testing.F) { recordtest.Fuzz(f, golden) }

func TestAMalformedBodyIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*body){
		"another version": func(b *body) { b.V = 2 },
		"no gen":          func(b *body) { b.Gen = 0 },
		"no write":        func(b *body) { b.Write = "" },
		"no holder":       func(b *body) { b.Holder = "" },
		"no token":        func(b *body) { b.Token = "" },
		"no ttl":          func(b *body) { b.TTLMillis = 0 },
		"an endless ttl":  func(b *body) { b.TTLMillis = maxTTL.Milliseconds() + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			b := golden
			spoil(&b)
			raw, err := record.Encode(b)
			require.NoError(t, err)
			_, err = decode(raw)
			require.ErrorIs(t, err, record.ErrMalformed)
		})
	}
}
