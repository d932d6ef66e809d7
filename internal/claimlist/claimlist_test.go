package claimlist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/claimlist"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

var ctx = context.Background()

func create(t *testing.T, s objstore.Store, host string) hostclaim.Observed {
	o, err := hostclaim.Update(ctx, s, hostclaim.Observed{Host: host}, hostclaim.BeginCreate(hostclaim.NewHost{
		Incarnation: "inc", Account: "demo", App: "notes", RecordKey: "apps/x", RecordSHA256: "aa", Region: "ie"},
		"op", "console", time.Now(), hostclaim.Member{Box: "box-1", Enrollment: "enr-1"}))
	require.NoError(t, err)
	return o
}

func hosts(list []hostclaim.Observed) (names []string) {
	for _, o := range list {
		names = append(names, o.Host)
	}
	return names
}

func TestOnlyClaimsThatChangedAreRead(t *testing.T) {
	s := memstore.New()
	a := create(t, s, "a.example")
	create(t, s, "b.example")
	r := claimlist.Reader{Store: s}
	list, err := r.Changed(ctx)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a.example", "b.example"}, hosts(list))

	list, err = r.Changed(ctx)
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = hostclaim.Update(ctx, s, a, hostclaim.CompleteCreate("op", "box-1", "enr-1"))
	require.NoError(t, err)
	list, err = r.Changed(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"a.example"}, hosts(list))
}

func TestAnUnreadableClaimHidesNoOtherAndIsReadAgain(t *testing.T) {
	s := memstore.New()
	create(t, s, "a.example")
	_, err := s.Put(ctx, hostclaim.Key("b.example"), []byte("garbage"), objstore.IfAbsent())
	require.NoError(t, err)
	r := claimlist.Reader{Store: s}
	list, err := r.Changed(ctx)
	require.ErrorIs(t, err, hostclaim.ErrMalformed)
	require.Equal(t, []string{"a.example"}, hosts(list))
	_, err = r.Changed(ctx)
	require.ErrorIs(t, err, hostclaim.ErrMalformed)
	var unread *claimlist.UnreadError
	require.ErrorAs(t, err, &unread)
	require.Equal(t, []string{"b.example"}, unread.Hosts)

	s.Inject(memstore.Once(memstore.OpList, "control/hosts/", memstore.Torn))
	_, err = r.Changed(ctx)
	require.False(t, errors.As(err, &unread), "that listing was not complete")
}

func TestAFailedListingIsNoShorterList(t *testing.T) {
	s := memstore.New()
	create(t, s, "a.example")
	r := claimlist.Reader{Store: s}
	s.Inject(memstore.Once(memstore.OpList, "control/hosts/", memstore.Torn))
	list, err := r.Changed(ctx)
	require.Error(t, err)
	require.Empty(t, list)
	list, err = r.Changed(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
}

func TestAClaimThatWentSinceItWasListedIsNotReturned(t *testing.T) {
	s := memstore.New()
	create(t, s, "a.example")
	gone := vanished{s}
	list, err := (&claimlist.Reader{Store: gone}).Changed(ctx)
	require.NoError(t, err)
	require.Empty(t, list)
}

// vanished lists what it does not hold any more.
type vanished struct{ *memstore.Store }

func (vanished) Get(context.Context, string) (objstore.Object, error) {
	return objstore.Object{}, objstore.ErrNotFound
}

func TestAClaimThatIsSkippedIsReadOnceItIsOfUse(t *testing.T) {
	s := memstore.New()
	create(t, s, "a.example")
	create(t, s, "b.example")
	skips := true
	r := claimlist.Reader{Store: s, Skip: func(host string) bool { return skips && host == "b.example" }}
	list, err := r.Changed(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"a.example"}, hosts(list))
	require.Equal(t, 1, s.Requests()[memstore.OpGet])
	require.Len(t, r.Listed(), 2)
	skips = false
	list, err = r.Changed(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"b.example"}, hosts(list))
}
