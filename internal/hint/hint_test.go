package hint_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/internal/regionfile"
)

// receiver is one peer that takes hints.
func receiver(t *testing.T, secret boxauth.Secret) (addr string, got chan hint.Hint) {
	got = make(chan hint.Hint, 8)
	s := httptest.NewServer(hint.Handler(&boxauth.Verifier{Secret: secret}, func(h hint.Hint) { got <- h }))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), got
}

func run(t *testing.T, s *hint.Sender) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
}

func TestAHintReachesThePeersItIsForAndBumpsTheRegion(t *testing.T) {
	secret := boxauth.NewSecret()
	addr, got := receiver(t, secret)
	bumped, asked := make(chan regionfile.Change, 1), make(chan []string, 1)
	s := hint.NewSender(hint.Sender{Secret: secret,
		Peers: func(refs []string) []string { asked <- refs; return []string{"127.0.0.1:1", addr} },
		Bump:  func(_ context.Context, changes ...regionfile.Change) error { bumped <- changes[0]; return nil }})
	run(t, s)
	s.Send(hint.Outgoing{Hint: hint.Hint{Host: "notes.example", Gen: 9}, To: []string{"box-2"}})
	require.Equal(t, []string{"box-2"}, <-asked)
	require.Equal(t, hint.Hint{V: 1, Host: "notes.example", Gen: 9}, <-got, "though another peer does not answer")
	require.Equal(t, regionfile.Change{Host: "notes.example", Boxes: []string{"box-2"}}, <-bumped)
}

func TestAHintNeedsTheDeploymentsSecret(t *testing.T) {
	addr, got := receiver(t, boxauth.NewSecret())
	body := []byte(`{"v":1,"host":"notes.example"}` + "\n")
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+hint.Path, strings.NewReader(string(body)))
	require.NoError(t, err)
	boxauth.NewSecret().Sign(req, body, time.Now())
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	require.Empty(t, got)
}

func TestSendNeverWaits(t *testing.T) {
	s := hint.NewSender(hint.Sender{Secret: boxauth.NewSecret()})
	for range 10_000 {
		s.Send(hint.Outgoing{})
	}
}

func TestHintIsStoredAsItStands(t *testing.T) {
	recordtest.Golden(t, "hint", hint.Hint{V: 1, Host: "notes.example", Gen: 9, Box: "box-1"})
}

func FuzzDecode(f *testing.F) { recordtest.Fuzz(f, hint.Hint{V: 1, Host: "notes.example"}) }
