package survey_test

import (
	"context"
	"crypto/ed25519"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/survey"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

const fingerprint = "0011223344556677"

// region is three boxes that are up, of which none has a host.
func region(t *testing.T) (*memstore.Store, *survey.Surveyor) {
	t.Helper()
	s, private := memstore.New(), ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	r := roster.Roster{DeploymentBucket: "memory", Boxes: map[string]roster.Box{},
		Regions: map[string]roster.Region{"ie": {Account: "123456789012", AWSRegion: "eu-west-1", Data: "dir:///data"}}}
	for _, ref := range []string{"box-1", "box-2", "box-3"} {
		r.Boxes[ref] = roster.Box{Enrollment: "e-" + ref, EnrolledAt: time.Now().UTC(), Region: "ie", Pool: "default", State: roster.Active,
			Cloud: boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: "i-" + ref}}
		_, err := placement.Publish(t.Context(), s, placement.Published{}, placement.Edges{Box: ref, Region: "ie", Address: ref + ":80",
			Internal: ref + ":81", Capabilities: []string{placement.CapabilityRegionHA}, Accepting: true, SecretsKeyFP: fingerprint})
		require.NoError(t, err)
	}
	_, err := roster.Create(t.Context(), s, private, r)
	require.NoError(t, err)
	record(t, s, "notes.example")
	return s, &survey.Surveyor{SecretFP: fingerprint, Reader: survey.Reader{Store: s, Region: "ie",
		Roster: roster.Open(s, private.Public().(ed25519.PublicKey), "memory")}}
}

func record(t *testing.T, s *memstore.Store, host string) {
	t.Helper()
	_, err := hostrecord.Create(t.Context(), s, hostrecord.Record{V: 1, Gen: 1, Write: "w", Host: host, Account: "demo", App: "notes",
		Region: "ie", Pool: "default", Command: []string{"/bin/notes"}, Incarnation: "inc", CreatedAt: time.Now().UTC()}.WithDefaults())
	require.NoError(t, err)
}

func serving(box string) *hostclaim.Claim {
	return &hostclaim.Claim{Host: "notes.example", Holder: &hostclaim.Holder{Account: "demo", App: "notes", Region: "ie"},
		Op: hostclaim.Op{Kind: hostclaim.Serving, Exec: box}}
}

func TestWhatWasGivenAwayInAPassCounts(t *testing.T) {
	_, s := region(t)
	chosen := map[string]bool{}
	for range 2 {
		m, ok, err := s.Choose(t.Context(), serving("box-1"), nil)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "e-"+m.Box, m.Enrollment)
		chosen[m.Box] = true
	}
	require.Equal(t, map[string]bool{"box-2": true, "box-3": true}, chosen)
}

func TestNobodyThatTheOperationRefusesIsChosen(t *testing.T) {
	member := func(ref string) hostclaim.Member { return hostclaim.Member{Box: ref, Enrollment: "e-" + ref} }
	owing := serving("box-1")
	owing.Obligations = []hostclaim.Obligation{{Kind: hostclaim.ParkLocal, Box: "box-2"}}
	lost := serving("box-1")
	lost.Lost = []string{"box-2"}
	moving := serving(hostclaim.None)
	moving.Op = hostclaim.Op{Kind: hostclaim.Relocating, Exec: hostclaim.None, Intent: hostclaim.Intent{Source: member("box-1"), Target: member("box-2")}}
	replaced := moving.Clone()
	replaced.Op.Intent.Source = member("box-9")
	replaced.Op.Journal.Target, replaced.Op.Journal.Replaced = member("box-1"), []string{"box-2"}
	for name, c := range map[string]*hostclaim.Claim{"owing": owing, "lost": lost, "source and target": moving, "replaced": replaced} {
		t.Run(name, func(t *testing.T) {
			_, s := region(t)
			m, ok, err := s.Choose(t.Context(), c, nil)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, "box-3", m.Box)
			_, ok, err = s.Choose(t.Context(), c, []string{"box-3"})
			require.NoError(t, err)
			require.False(t, ok, "nor whom the caller leaves out")
		})
	}
}

func TestABoxThatIsKnownToBeGoneIsNotChosen(t *testing.T) {
	_, s := region(t)
	s.Reader.Gone = func(ref string) bool { return ref == "box-2" }
	for range 2 {
		m, ok, err := s.Choose(t.Context(), serving("box-1"), nil)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "box-3", m.Box)
	}
}

func TestWhereAFenceCannotBeReadNobodyIsChosenNorNamed(t *testing.T) {
	store, s := region(t)
	_, err := store.Put(t.Context(), "control/box-fences/e-box-3.json", []byte("{}\n"), objstore.IfAbsent())
	require.NoError(t, err)
	_, _, err = s.Choose(t.Context(), serving("box-1"), nil)
	require.ErrorIs(t, err, termfence.ErrUnverified)
	look, err := s.Reader.Look(t.Context())
	require.NoError(t, err)
	_, err = look.Named(survey.Want(serving("box-1"), "default", fingerprint, nil), "box-2")
	require.ErrorIs(t, err, termfence.ErrUnverified)
}

// listing is a store that lists a fence which is not there.
type listing struct {
	*memstore.Store
	key string
}

func (s listing) List(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		for info, err := range s.Store.List(ctx, prefix) {
			if !yield(info, err) {
				return
			}
		}
		if strings.HasPrefix(s.key, prefix) {
			yield(objstore.Info{Key: s.key}, nil)
		}
	}
}

func TestAFenceThatIsListedAndNotThereIsAnError(t *testing.T) {
	store, s := region(t)
	s.Reader.Store = listing{store, "control/box-fences/e-box-3.json"}
	_, _, err := s.Choose(t.Context(), serving("box-1"), nil)
	require.ErrorContains(t, err, "listed and not there")
}

func TestAHostThatIsChosenForAgainCountsOnce(t *testing.T) {
	store, s := region(t)
	last := ""
	for range 5 { // its move did not begin
		m, ok, err := s.Choose(t.Context(), serving("box-1"), nil)
		require.NoError(t, err)
		require.True(t, ok)
		last = m.Box
	}
	other := serving("box-1")
	other.Host = "other.example"
	record(t, store, other.Host)
	m, ok, err := s.Choose(t.Context(), other, nil)
	require.NoError(t, err)
	require.True(t, ok)
	require.NotEqual(t, last, m.Box, "the other has none")
}

// TestABrokenFenceOfABoxThatMayNotActKeepsNobody: it is refused for that.
func TestABrokenFenceOfABoxThatMayNotActKeepsNobody(t *testing.T) {
	store, s := region(t)
	_, err := roster.Update(t.Context(), store, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), s.Reader.Roster, func(r *roster.Roster) error {
		return r.Quarantine("box-3")
	})
	require.NoError(t, err)
	_, err = store.Put(t.Context(), "control/box-fences/e-box-3.json", []byte("{}\n"), objstore.IfAbsent())
	require.NoError(t, err)
	m, ok, err := s.Choose(t.Context(), serving("box-1"), nil)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "box-2", m.Box)
}

func TestNoneSaysOfEachBoxWhyNot(t *testing.T) {
	_, s := region(t)
	look, err := s.Reader.Look(t.Context())
	require.NoError(t, err)
	_, err = look.Choose(survey.Want(serving("box-1"), "big", fingerprint, nil), "notes.example", "demo/notes")
	var none *survey.NoneError
	require.ErrorAs(t, err, &none)
	require.EqualError(t, err, `no box of region ie may take it: box-1 (pool "default", want "big"), box-2 (pool "default", want "big"), box-3 (pool "default", want "big")`)
	_, err = look.Named(survey.Want(serving("box-1"), "big", fingerprint, nil), "box-2")
	require.EqualError(t, err, `not eligible: pool "default", want "big"`)
}
