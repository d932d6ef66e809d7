package roster_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

func TestReadReturnsWhatWasSigned(t *testing.T) {
	d := newDeployment(t)
	snap, err := d.dir.Read(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, snap.Revision)
	require.NotEmpty(t, snap.SHA256)
	require.NotEmpty(t, snap.ETag)

	b, ok := snap.Box("box-1")
	require.True(t, ok)
	require.Equal(t, "box-1", b.Ref)
	require.Equal(t, b, snap.Boxes["box-1"], "decoded entries know their reference")
	_, ok = snap.Box("box-9")
	require.False(t, ok)

	b, ok = snap.ByEnrollment("e-2")
	require.True(t, ok)
	require.Equal(t, "box-2", b.Ref)
	_, ok = snap.ByEnrollment("")
	require.False(t, ok)

	ie, ok := snap.Region("ie")
	require.True(t, ok)
	require.Equal(t, "s3://data-ie", ie.Data)
	_, ok = snap.Region("de")
	require.False(t, ok)

	require.ElementsMatch(t, []boxid.Enrolled{{Box: "box-1", Cloud: cloud("i-1")}, {Box: "box-2", Cloud: cloud("i-2")}}, snap.Enrolled())
}

func TestReadRefuses(t *testing.T) {
	type extended struct {
		roster.Roster
		Extra string `json:"extra"`
	}
	other := func(e *roster.Envelope) { // signed by another key, which says so or not
		_, private := roster.GenerateKey()
		e.Signature = ed25519.Sign(private, e.Roster)
	}
	for _, c := range []struct {
		name   string
		roster func(*roster.Roster)
		spoil  func(*roster.Envelope)
		want   error
		reason string
	}{
		{name: "not signed", spoil: func(e *roster.Envelope) { e.Signature = nil }, reason: "not signed"},
		{name: "another envelope version", spoil: func(e *roster.Envelope) { e.V = 2 }, reason: "envelope version 2"},
		{name: "signed by another key", spoil: func(e *roster.Envelope) { other(e); e.SignedBy = "AAAA" }, reason: `signed by key "AAAA"`},
		{name: "another key that names ours", spoil: other, reason: "bad signature"},
		{name: "altered after signing", spoil: func(e *roster.Envelope) {
			e.Roster = bytes.Replace(e.Roster, []byte(`"revision":7`), []byte(`"revision":8`), 1)
		}, reason: "bad signature"},
		{name: "no roster in it", spoil: func(e *roster.Envelope) { e.Roster = nil }, reason: "bad signature"},
		{name: "another version", roster: func(r *roster.Roster) { r.V = 2 }, reason: "version 2"},
		{name: "no revision", roster: func(r *roster.Roster) { r.Revision = 0 }, reason: "revision 0"},
		{name: "a gen behind its revision", roster: func(r *roster.Roster) { r.Gen = 6 }, reason: "gen 6"},
		{name: "no write nonce", roster: func(r *roster.Roster) { r.Write = "" }, reason: `write ""`},
		{name: "another bucket", roster: func(r *roster.Roster) { r.DeploymentBucket = "s3://other" }, reason: `of bucket "s3://other"`},
		{name: "one instance twice", roster: func(r *roster.Roster) { r.Boxes["box-2"] = box("e-2", "i-1") }, reason: "are one instance, i-1"},
		{name: "a newer protocol", roster: func(r *roster.Roster) { r.ProtocolFloor = roster.Protocol + 1 },
			want: roster.ErrOutdated, reason: "protocol_floor 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeployment(t)
			r := golden()
			if c.roster != nil {
				c.roster(&r)
			}
			e := sealed(t, d.private, r)
			if c.spoil != nil {
				c.spoil(&e)
			}
			d.overwrite(t, encode(t, e))
			snap, err := d.dir.Read(t.Context())
			if c.want == nil {
				c.want = roster.ErrUntrusted
			}
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.reason)
			require.Zero(t, snap)
		})
	}
	t.Run("a signed roster with one field more", func(t *testing.T) {
		d := newDeployment(t)
		d.overwrite(t, encode(t, sealed(t, d.private, extended{golden(), "x"})))
		_, err := d.dir.Read(t.Context())
		require.ErrorIs(t, err, roster.ErrUntrusted)
	})
	t.Run("not an envelope", func(t *testing.T) {
		d := newDeployment(t)
		d.overwrite(t, []byte("hello"))
		_, err := d.dir.Read(t.Context())
		require.ErrorIs(t, err, roster.ErrUntrusted)
	})
}

func TestADirectoryThatWasToldNothingBelievesNothing(t *testing.T) {
	d := newDeployment(t)
	for name, dir := range map[string]*roster.Directory{
		"no key":    roster.Open(d.store, nil, bucket),
		"no bucket": roster.Open(d.store, d.public, ""),
		"neither":   roster.Open(d.store, nil, ""),
	} {
		_, err := dir.Read(t.Context())
		require.ErrorIs(t, err, roster.ErrUntrusted, name)
	}
}

func TestWithoutAKeyNotEvenAnEnvelopeThatNamesNoneIsBelieved(t *testing.T) {
	d := newDeployment(t)
	e := sealed(t, d.private, golden())
	e.SignedBy = ""
	d.overwrite(t, encode(t, e))
	_, err := roster.Open(d.store, nil, bucket).Read(t.Context())
	require.ErrorContains(t, err, "no public key to verify with")
}

func TestAFailedReadIsNeverAnEmptyRoster(t *testing.T) {
	d := newDeployment(t)
	d.store.Inject(memstore.Once(memstore.OpGet, roster.Key, memstore.Lose))
	snap, err := d.dir.Read(t.Context())
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.NotErrorIs(t, err, roster.ErrUntrusted)
	require.Zero(t, snap)

	_, err = roster.Open(memstore.New(), d.public, bucket).Read(t.Context())
	require.ErrorIs(t, err, objstore.ErrNotFound)
}

func TestAnOlderRosterThanOneSeenIsRefused(t *testing.T) {
	d := newDeployment(t)
	first, err := d.store.Get(t.Context(), roster.Key)
	require.NoError(t, err)
	reader := d.open()
	_, err = d.update(t, drain("box-1"))
	require.NoError(t, err)
	_, err = reader.Read(t.Context())
	require.NoError(t, err)

	d.overwrite(t, first.Body)
	_, err = reader.Read(t.Context())
	require.ErrorIs(t, err, roster.ErrUntrusted)
	require.ErrorContains(t, err, "is older than revision 2")

	d.dir = d.open() // a console that knows no better writes over it
	_, err = d.update(t, drain("box-2"))
	require.NoError(t, err)
	_, err = reader.Read(t.Context())
	require.ErrorContains(t, err, "another roster of gen 2")
}

func TestAnOlderRevisionUnderANewerGenIsRefused(t *testing.T) {
	d := newDeployment(t)
	for _, age := range [][2]uint64{{5, 9}, {4, 10}} {
		r := golden()
		r.Revision, r.Gen = age[0], age[1]
		d.overwrite(t, encode(t, sealed(t, d.private, r)))
		_, err := d.dir.Read(t.Context())
		if age[0] == 4 {
			require.ErrorContains(t, err, "is older than revision 5")
			continue
		}
		require.NoError(t, err)
	}
}

// slow is a store whose next Get is answered late.
type slow struct {
	objstore.Store
	late func()
}

func (s *slow) Get(ctx context.Context, key string) (objstore.Object, error) {
	obj, err := s.Store.Get(ctx, key)
	if late := s.late; late != nil {
		s.late = nil
		late()
	}
	return obj, err
}

func TestOfTwoReadsThatOverlapTheOlderAnswerIsNotARollback(t *testing.T) {
	d := newDeployment(t)
	store := &slow{Store: d.store}
	dir := roster.Open(store, d.public, bucket)
	store.late = func() {
		_, err := d.update(t, drain("box-1"))
		require.NoError(t, err)
		snap, err := dir.Read(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, snap.Revision)
	}
	snap, err := dir.Read(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, snap.Revision)
	snap, err = dir.Read(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, snap.Revision, "and the newer one is not forgotten")
}

func TestADirectoryIsReadByManyWhileItChanges(t *testing.T) {
	d := newDeployment(t)
	dir := d.open()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var last uint64
			for range 50 {
				snap, err := dir.Read(context.Background())
				assert.NoError(t, err)
				assert.GreaterOrEqual(t, snap.Revision, last)
				last = snap.Revision
			}
		})
	}
	for range 50 {
		_, err := d.update(t, edit("box-1", func(b *roster.Box) { b.Draining = !b.Draining }))
		require.NoError(t, err)
	}
	readers.Wait()
}
