package roster_test

import (
	"crypto/ed25519"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

func golden() roster.Roster {
	r := valid()
	r.V, r.Revision, r.Gen, r.Write, r.ProtocolFloor = 1, 7, 9, "00112233445566778899aabbccddeeff", 1
	ie := r.Regions["ie"]
	ie.GroupName, ie.GroupARN = "boxes-ie", "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:0:autoScalingGroupName/boxes-ie"
	r.Regions["ie"] = ie
	gone := box("e-0", "i-1")
	gone.State, gone.ReadmittedAs, gone.Draining = roster.Retired, "box-1", true
	r.Boxes["box-0"] = gone
	r.Consoles = map[string]roster.Console{"console-1": {Enrollment: "c-1", Compute: roster.Compute{Box: "box-2", Enrollment: "e-2"}}}
	return r
}

func TestGolden(t *testing.T) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	recordtest.Golden(t, "roster", golden())
	recordtest.Golden(t, "envelope", sealed(t, private, golden()))
}

func FuzzRoster(f *testing.F) { recordtest.Fuzz(f, golden()) }

func FuzzEnvelope(f *testing.F) {
	_, private := roster.GenerateKey()
	recordtest.Fuzz(f, sealed(f, private, golden()))
}

// FuzzRead: whatever bytes are stored, a directory believes none that its key
// did not sign.
func FuzzRead(f *testing.F) {
	public, _ := roster.GenerateKey()
	_, other := roster.GenerateKey()
	e := sealed(f, other, golden())
	f.Add(encode(f, e))
	e.SignedBy = roster.EncodeKey(public)
	f.Add(encode(f, e))
	f.Fuzz(func(t *testing.T, body []byte) {
		store := memstore.New()
		_, err := store.Put(t.Context(), roster.Key, body, objstore.IfAbsent())
		require.NoError(t, err)
		_, err = roster.Open(store, public, bucket).Read(t.Context())
		require.ErrorIs(t, err, roster.ErrUntrusted)
	})
}

func TestKeys(t *testing.T) {
	public, private := roster.GenerateKey()
	p, err := roster.ParsePublicKey(" " + roster.EncodeKey(public) + "\n")
	require.NoError(t, err)
	require.Equal(t, public, p)
	s, err := roster.ParsePrivateKey(roster.EncodeKey(private) + "\n")
	require.NoError(t, err)
	require.Equal(t, private, s)

	for _, bad := range []string{"", "hello", roster.EncodeKey(private), roster.EncodeKey(public[:31]), roster.EncodeKey(public) + "AA"} {
		_, err := roster.ParsePublicKey(bad)
		require.Error(t, err, bad)
	}
	other, _ := roster.GenerateKey()
	mixed := append(append(ed25519.PrivateKey{}, private[:32]...), other...)
	for _, bad := range []string{"", "hello", roster.EncodeKey(public), roster.EncodeKey(mixed)} {
		_, err := roster.ParsePrivateKey(bad)
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), roster.EncodeKey(private[:32]), "no part of a key in a message")
	}
}
