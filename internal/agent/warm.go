package agent

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostrelocate"
)

// warmAgain is the pause between two looks for what the source wrote since the
// target warmed.
const warmAgain = 5 * time.Second

// Warm fetches the newest state that the store has of the host's database to
// this box, while the source still serves: the build then fetches only what came
// after. Nothing fetched here is believed beyond its digests.
//
// It costs the requests of [hostrelocate.Newest] and of [hostdb.Warm], and none
// again for a while.
func (r runtime) Warm(ctx context.Context, o hostclaim.Observed) (hostrelocate.Warmth, error) {
	h, err := r.executing(o)
	if err != nil {
		return hostrelocate.Warmth{}, err
	}
	if time.Since(h.warmedAt) < warmAgain {
		return h.warmth, nil
	}
	r.agent.crash("warming")
	b, err := hostrelocate.Newest(ctx, r.agent.data, o.Claim)
	if err != nil {
		return hostrelocate.Warmth{}, err
	}
	h.warmth = hostrelocate.Warmth{}
	if !b.Set.Empty {
		got, err := hostdb.Warm(ctx, r.agent.data, b.Set, h.warm())
		if err != nil {
			return hostrelocate.Warmth{}, err
		}
		h.warmth = hostrelocate.Warmth{Generation: b.Set.Generation, TXID: got.TXID, Bytes: got.Bytes}
	}
	h.warmedAt = time.Now()
	r.agent.crash("warmed")
	return h.warmth, nil
}

// cool removes what was fetched early, unless the claim may still make this box
// build from it.
func (h *host) cool(c *hostclaim.Claim) error {
	if hostrelocate.Takes(c, h.agent.self.Box) && c.Op.Target() == h.agent.self {
		switch c.Op.Phase {
		case hostclaim.Starting, hostclaim.Releasing, hostclaim.Pinning, hostclaim.Installing:
			return nil
		}
	}
	h.warmedAt = time.Time{}
	return os.RemoveAll(h.warm())
}

// warm is where a target keeps what it fetched early.
func (h *host) warm() string { return filepath.Join(h.dir(), "warm") }
