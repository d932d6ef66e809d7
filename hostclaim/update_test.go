package hostclaim_test

import (
	"testing"

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
