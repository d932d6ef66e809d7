package hostclaim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

func storeWith(tb testing.TB, body string) *memstore.Store {
	s := memstore.New()
	_, err := s.Put(ctx, hostclaim.Key(testHost), []byte(body), objstore.IfAbsent())
	require.NoError(tb, err)
	return s
}

func TestThenPassesOverWhatIsRecorded(t *testing.T) {
	o := upTo(t, "acknowledged")
	both := hostclaim.Then(hostclaim.Acknowledge("op-2", target.Box, target.Enrollment), hostclaim.PinFailover("op-2", epoch))
	o = then(t, o, both)
	require.Equal(t, hostclaim.Pinning, o.Claim.Op.Phase)
	refused(t, upTo(t, "acknowledged"), hostclaim.Then(hostclaim.Acknowledge("op-2", target.Box, target.Enrollment)), hostclaim.ErrAlreadyRecorded, "")
	refused(t, upTo(t, "starting"), hostclaim.Then(both, hostclaim.ToInstalling("op-2", "p-1", epoch)), hostclaim.ErrWrongState, "nothing is pinned")
}

func TestATransitionMayNotRewriteWhatUpdateOwns(t *testing.T) {
	o := upTo(t, "relocated")
	for name, tr := range map[string]hostclaim.Transition{
		"host":    func(c *hostclaim.Claim) error { c.Host = "other.example"; return nil },
		"gen":     func(c *hostclaim.Claim) error { c.Gen += 5; return nil },
		"write":   func(c *hostclaim.Claim) error { c.Write = "mine"; return nil },
		"lost":    func(c *hostclaim.Claim) error { c.Lost = nil; return nil },
		"invalid": func(c *hostclaim.Claim) error { c.Op.Exec = "a.b"; return nil },
		"stamp": func(c *hostclaim.Claim) error {
			c.Holder.Stamp, c.Holder.Session = 1, 1
			c.Holder.Admissions = c.Holder.Admissions[1:]
			c.Holder.Admissions[0].Session = 1
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := o.Next("nonce", tr)
			require.ErrorIs(t, err, hostclaim.ErrMalformed)
		})
	}
}

// TestNothingIsWrittenThatNobodyCouldReadAgain: a claim is never repaired, so
// such a write would be the last one of its host.
func TestNothingIsWrittenThatNobodyCouldReadAgain(t *testing.T) {
	receipt := func(key string) func(*hostclaim.Claim) hostclaim.Transition {
		return func(c *hostclaim.Claim) hostclaim.Transition {
			r := releaseOf(t, c, pinned)
			r.Receipt = key
			return hostclaim.JournalRelease("op-2", r)
		}
	}
	for name, row := range map[string]struct {
		stage string
		step  func(*hostclaim.Claim) hostclaim.Transition
	}{
		"a time after the year 9999": {"acknowledged", always(hostclaim.ToReleasing("op-2", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)))},
		"a time before the year 0":   {"acknowledged", always(hostclaim.ToReleasing("op-2", time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)))},
		"a text of 5 MiB":            {"releasing", receipt(strings.Repeat("x", 5<<20))},
		"a text that is not UTF-8":   {"releasing", receipt("\xff")},
	} {
		t.Run(name, func(t *testing.T) {
			o := drainUpTo(t, row.stage)
			var none objstore.Store // a request would panic
			_, err := hostclaim.Update(ctx, none, o, row.step(o.Claim))
			require.ErrorIs(t, err, hostclaim.ErrMalformed)
		})
	}
}
