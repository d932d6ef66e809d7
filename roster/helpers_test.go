package roster_test

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

const bucket = "s3://control"

// word is what binds where an operator named the instance.
var word roster.OperatorsWord

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func cloud(instance string) boxid.Cloud {
	return boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: instance}
}

func box(enrollment, instance string) roster.Box {
	return roster.Box{Enrollment: enrollment, EnrolledAt: now, Region: "ie", Pool: "default", State: roster.Active,
		Cloud: cloud(instance), EvidenceSHA256: record.Digest([]byte(instance))}
}

// valid is a roster with two boxes, as [roster.Create] takes it.
func valid() roster.Roster {
	return roster.Roster{
		DeploymentBucket: bucket,
		Regions:          map[string]roster.Region{"ie": {Account: "123456789012", AWSRegion: "eu-west-1", Data: "s3://data-ie"}},
		Boxes:            map[string]roster.Box{"box-1": box("e-1", "i-1"), "box-2": box("e-2", "i-2")},
	}
}

// deployment is one control store with its key pair.
type deployment struct {
	store   *memstore.Store
	public  ed25519.PublicKey
	private ed25519.PrivateKey
	dir     *roster.Directory
}

func newDeployment(tb testing.TB) deployment {
	tb.Helper()
	d := deployment{store: memstore.New()}
	d.public, d.private = roster.GenerateKey()
	d.dir = d.open()
	_, err := roster.Create(tb.Context(), d.store, d.private, valid())
	require.NoError(tb, err)
	return d
}

func (d deployment) open() *roster.Directory { return roster.Open(d.store, d.public, bucket) }

func (d deployment) update(tb testing.TB, change func(*roster.Roster) error) (roster.Snapshot, error) {
	tb.Helper()
	return roster.Update(tb.Context(), d.store, d.private, d.dir, change)
}

// overwrite puts any bytes in the roster's place, as someone with the bucket's
// keys could.
func (d deployment) overwrite(tb testing.TB, body []byte) {
	tb.Helper()
	obj, err := d.store.Get(tb.Context(), roster.Key)
	require.NoError(tb, err)
	_, err = d.store.Put(tb.Context(), roster.Key, body, objstore.IfMatch(obj.ETag))
	require.NoError(tb, err)
}

// sealed signs any value as the roster of an envelope.
func sealed(tb testing.TB, private ed25519.PrivateKey, r any) roster.Envelope {
	tb.Helper()
	body, err := record.Encode(r)
	require.NoError(tb, err)
	body = body[:len(body)-1]
	return roster.Envelope{V: 1, Roster: body, SignedBy: roster.EncodeKey(private.Public().(ed25519.PublicKey)),
		Signature: ed25519.Sign(private, body)}
}

func encode(tb testing.TB, e roster.Envelope) []byte {
	tb.Helper()
	body, err := record.Encode(e)
	require.NoError(tb, err)
	return body
}
