package boxvolumes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

var (
	enrolled   = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	terminated = enrolled.Add(5 * time.Hour)
)

func cloud(instance string) boxid.Cloud {
	return boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: instance}
}

var shop = roster.Box{Ref: "shop-1", Enrollment: "e-1", EnrolledAt: enrolled, Region: "ie", State: roster.Active, Cloud: cloud("i-shop")}

func volume(id string) boxvolumes.Volume {
	return boxvolumes.Volume{ID: id, Device: "/dev/" + id, Status: "attached", DeleteOnTermination: true}
}

// seen is a record of shop, so long after its enrollment.
func seen(after time.Duration, volumes ...boxvolumes.Volume) boxvolumes.Record {
	return boxvolumes.Record{V: 1, Box: "shop-1", Enrollment: "e-1", Cloud: shop.Cloud, State: "running",
		ObservedAt: enrolled.Add(after), Volumes: volumes}
}

// life is a life of shop that discharges, oldest first.
func life() []boxvolumes.Record {
	return []boxvolumes.Record{
		seen(time.Minute, volume("vol-1")),
		seen(2*time.Hour, volume("vol-1"), volume("vol-2")),
		seen(4*time.Hour, volume("vol-1"), volume("vol-2")),
	}
}

func judge(records []boxvolumes.Record) boxvolumes.Verdict {
	return boxvolumes.Discharge(records, shop, enrolled, terminated)
}

func requireDischarged(t *testing.T, v boxvolumes.Verdict) {
	t.Helper()
	require.True(t, v.Discharged(), v.Reason())
	require.Empty(t, v.Reason())
	require.Equal(t, "e-1", v.Enrollment())
}

func requireKept(t *testing.T, v boxvolumes.Verdict, reason string) {
	t.Helper()
	require.False(t, v.Discharged())
	require.Contains(t, v.Reason(), reason)
}

func encode(tb testing.TB, r boxvolumes.Record) []byte {
	tb.Helper()
	body, err := record.Encode(r)
	require.NoError(tb, err)
	return body
}

func plant(tb testing.TB, store objstore.Store, key string, body []byte) {
	tb.Helper()
	_, err := store.Put(tb.Context(), key, body, objstore.IfAbsent())
	require.NoError(tb, err)
}

// store stores records where they belong.
func store(tb testing.TB, s objstore.Store, records ...boxvolumes.Record) {
	tb.Helper()
	for _, r := range records {
		plant(tb, s, boxvolumes.Key(r.Enrollment, r.ObservedAt), encode(tb, r))
	}
}
