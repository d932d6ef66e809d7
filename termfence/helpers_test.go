package termfence_test

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
	"github.com/carlosframework/regionha/termfence"
)

const (
	account = "123456789012"
	bucket  = "s3://control"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func cloud(region, instance string) boxid.Cloud {
	return boxid.Cloud{Provider: boxid.AWS, Account: account, Region: region, InstanceID: instance}
}

func entry(ref, region string, c boxid.Cloud) roster.Box {
	return roster.Box{Ref: ref, Enrollment: "e-" + ref, EnrolledAt: now.Add(-time.Hour), Region: region,
		Pool: "default", State: roster.Active, Cloud: c}
}

var (
	shop    = entry("shop-1", "ie", cloud("eu-west-1", "i-shop"))
	worker  = entry("worker-1", "ie", cloud("eu-west-1", "i-worker"))
	worker2 = entry("worker-2", "ie", cloud("eu-west-1", "i-worker2"))
	distant = entry("distant-1", "de", cloud("eu-central-1", "i-distant"))
)

// described is a perfect describe of shop.
func described() termfence.Observation {
	return termfence.Observation{Via: termfence.ViaDescribe, Found: true, InstanceID: "i-shop", Account: account,
		Region: "eu-west-1", State: "terminated", RequestID: "req-1"}
}

func fence(tb testing.TB, by roster.Box, at time.Time) termfence.Record {
	tb.Helper()
	rec, err := termfence.Verify(shop, by, described(), at)
	require.NoError(tb, err)
	return rec
}

// region is a control store with a roster of four boxes.
type region struct {
	*memstore.Store
	private ed25519.PrivateKey
	reader  termfence.Reader
}

func newRegion(tb testing.TB) region {
	tb.Helper()
	store := memstore.New()
	public, private := roster.GenerateKey()
	boxes := make(map[string]roster.Box)
	for _, b := range []roster.Box{shop, worker, worker2, distant} {
		boxes[b.Ref] = b
	}
	unproven := entry("unproven", "ie", boxid.Cloud{})
	boxes["unproven"] = unproven
	_, err := roster.Create(tb.Context(), store, private, roster.Roster{
		DeploymentBucket: bucket,
		Regions: map[string]roster.Region{
			"ie": {Account: account, AWSRegion: "eu-west-1"},
			"de": {Account: account, AWSRegion: "eu-central-1"},
		},
		Boxes: boxes,
	})
	require.NoError(tb, err)
	return region{Store: store, private: private, reader: termfence.Reader{Store: store, Roster: roster.Open(store, public, bucket)}}
}

// plant stores any bytes as the fence of an enrollment, and returns what cites
// them.
func (r region) plant(tb testing.TB, enrollment string, body []byte) termfence.Ref {
	tb.Helper()
	return r.plantAt(tb, termfence.Key(enrollment), enrollment, body)
}

func (r region) plantAt(tb testing.TB, key, enrollment string, body []byte) termfence.Ref {
	tb.Helper()
	_, err := r.Put(tb.Context(), key, body, objstore.IfAbsent())
	require.NoError(tb, err)
	return termfence.Ref{Enrollment: enrollment, Key: key, SHA256: record.Digest(body)}
}

// edit changes a box's entry.
func (r region) edit(tb testing.TB, ref string, change func(*roster.Box)) {
	tb.Helper()
	_, err := roster.Update(tb.Context(), r.Store, r.private, r.reader.Roster, func(next *roster.Roster) error {
		b := next.Boxes[ref]
		change(&b)
		next.Boxes[ref] = b
		return nil
	})
	require.NoError(tb, err)
}

func (r region) become(tb testing.TB, ref string, s roster.State) {
	tb.Helper()
	r.edit(tb, ref, func(b *roster.Box) { b.State = s })
}

func encode(tb testing.TB, rec any) []byte {
	tb.Helper()
	body, err := record.Encode(rec)
	require.NoError(tb, err)
	return body
}
