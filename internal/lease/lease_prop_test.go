package lease_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// move is one step of a world of three candidates and a bad network.
type move struct {
	kind string
	who  int
	wait time.Duration
}

// TestAtMostOneHolds drives three candidates through lost, held, refused and
// late writes, and checks after each step that no two leases hold.
func TestAtMostOneHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		moves := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) move {
			return move{
				kind: rapid.SampledFrom([]string{"acquire", "acquire", "release", "deliver", "lose", "hold", "refuse", "lose answer", "mend"}).Draw(rt, "kind"),
				who:  rapid.IntRange(0, 2).Draw(rt, "who"),
				wait: time.Duration(rapid.IntRange(0, 20_000).Draw(rt, "ms")) * time.Millisecond,
			}
		}), 1, 40).Draw(rt, "moves")
		var broken error
		synctest.Test(t, func(t *testing.T) { broken = play(moves) })
		if broken != nil {
			rt.Fatal(broken)
		}
	})
}

func play(moves []move) error {
	s := memstore.New()
	var cs [3]*lease.Candidate
	var ls [3]*lease.Lease
	for i := range cs {
		cs[i] = candidate(s, fmt.Sprint(i))
	}
	defer func() {
		for _, l := range ls {
			if l != nil {
				_ = l.Release(context.Background())
			}
		}
	}()
	faults := map[string]memstore.Fault{"lose": memstore.Lose, "hold": memstore.Hold,
		"refuse": memstore.Refuse, "lose answer": memstore.LoseAnswer, "mend": memstore.None}
	for i, m := range moves {
		switch m.kind {
		case "acquire":
			if ls[m.who] == nil || ls[m.who].Check() != nil {
				if l, err := cs[m.who].Acquire(context.Background()); err == nil {
					ls[m.who] = l
				}
			}
		case "release":
			if ls[m.who] != nil {
				_ = ls[m.who].Release(context.Background())
			}
		case "deliver":
			for _, late := range s.Held() {
				_, _ = late.Deliver()
			}
		default:
			s.Inject(failing(memstore.OpPut, faults[m.kind]))
		}
		time.Sleep(m.wait)
		holders := 0
		for _, l := range ls {
			if l != nil && l.Check() == nil {
				holders++
			}
		}
		if holders > 1 {
			return fmt.Errorf("%d leases hold after move %d of %v", holders, i, moves)
		}
	}
	return nil
}
