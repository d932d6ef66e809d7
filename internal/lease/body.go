package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

const version = 1

// body is the stored object. Gen and Write make every body unique, which is
// what settling an unknown outcome rests on.
type body struct {
	V         int    `json:"v"`
	Gen       uint64 `json:"gen"`
	Write     string `json:"write"`
	Holder    string `json:"holder"`
	Token     string `json:"token"` // names one acquisition; its renewals keep it
	TTLMillis int64  `json:"ttl_ms"`
	Free      bool   `json:"free"` // released; the other members say by whom
}

func (b body) next() body {
	b.V, b.Gen, b.Write = version, b.Gen+1, record.Nonce()
	return b
}

func (b body) ttl() time.Duration { return time.Duration(b.TTLMillis) * time.Millisecond }

func decode(raw []byte) (body, error) {
	b, err := record.Decode[body](raw)
	switch {
	case err != nil:
		return body{}, err
	case b.V != version:
		return body{}, fmt.Errorf("%w: version %d, want %d", record.ErrMalformed, b.V, version)
	case b.Gen == 0 || b.Write == "" || b.Holder == "" || b.Token == "":
		return body{}, fmt.Errorf("%w: gen %d, write %q, holder %q, token %q: none may be empty",
			record.ErrMalformed, b.Gen, b.Write, b.Holder, b.Token)
	case b.TTLMillis < 1 || b.TTLMillis > maxTTL.Milliseconds():
		return body{}, fmt.Errorf("%w: ttl_ms %d, want 1 to %d", record.ErrMalformed, b.TTLMillis, maxTTL.Milliseconds())
	}
	return b, nil
}

func put(ctx context.Context, s objstore.Store, key string, b body, cond objstore.Condition) (objstore.Info, error) {
	raw, err := record.Encode(b)
	if err != nil {
		return objstore.Info{}, err
	}
	return objstore.PutSettled(ctx, s, key, raw, cond)
}
