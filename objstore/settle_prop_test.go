package objstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// TestEveryCertainOutcomeIsTrueForEver writes by settled writes on current and
// stale versions, under every fault, with held writes landing at any time. What
// an outcome said must hold at the end, when everything has landed.
func TestEveryCertainOutcomeIsTrueForEver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		s := memstore.New()
		seen := []string{""} // ETags that a writer may act on; "" is the absent key
		outcomes := map[string]error{}
		landedThen := map[string]bool{} // at the time of the outcome
		faults := rapid.SampledFrom([]memstore.Fault{memstore.None, memstore.None, memstore.Lose, memstore.LoseAnswer, memstore.Hold, memstore.Replay, memstore.Refuse})
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				body := fmt.Sprintf("body %d", len(outcomes))
				cond := objstore.IfAbsent()
				if etag := rapid.SampledFrom(seen).Draw(t, "on"); etag != "" {
					cond = objstore.IfMatch(etag)
				}
				s.Inject(memstore.Once(memstore.OpPut, key, faults.Draw(t, "fault")))
				_, err := objstore.PutSettled(ctx, s, key, []byte(body), cond)
				outcomes[body], landedThen[body] = err, landed(s, body)
				if o, err := s.Get(ctx, key); err == nil {
					seen = append(seen, o.ETag)
				}
			},
			"land": func(t *rapid.T) {
				held := s.Held()
				if len(held) == 0 {
					t.Skip("nothing is held")
				}
				_, _ = rapid.SampledFrom(held).Draw(t, "which").Deliver()
			},
		})
		for _, h := range s.Held() {
			_, _ = h.Deliver()
		}
		for body, err := range outcomes {
			checkOutcome(t, body, err, landedThen[body], landed(s, body))
		}
	})
}

// checkOutcome compares what was said of a write with what became of it.
func checkOutcome(t *rapid.T, body string, err error, then, finally bool) {
	switch {
	case err == nil && !then:
		t.Fatalf("%s: said to be applied, and was not", body)
	case errors.Is(err, objstore.ErrConflict) && finally:
		t.Fatalf("%s: said never to apply, and it did", body)
	case errors.Is(err, objstore.ErrSuperseded) && finally != then:
		t.Fatalf("%s: said to be able to land no more, and it did", body)
	case err != nil && !errors.Is(err, objstore.ErrConflict) && !errors.Is(err, objstore.ErrSuperseded) && !errors.Is(err, objstore.ErrUnknown):
		t.Fatalf("%s: no outcome: %v", body, err)
	}
}

func landed(s *memstore.Store, body string) bool {
	for _, w := range s.Log() {
		if string(w.Body) == body {
			return true
		}
	}
	return false
}
