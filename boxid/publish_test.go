package boxid_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// metadata is a metadata service that counts what it is asked.
type metadata struct {
	doc, signature       []byte
	docErr, signatureErr error
	asked                int
}

func (m *metadata) Document(context.Context) ([]byte, error) { m.asked++; return m.doc, m.docErr }

func (m *metadata) Signature(context.Context) ([]byte, error) {
	m.asked++
	return m.signature, m.signatureErr
}

func newMetadata(c boxid.Cloud) *metadata {
	doc := boxidtest.Document(c)
	return &metadata{doc: doc, signature: []byte(base64.StdEncoding.EncodeToString(boxidtest.Sign(doc)))}
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func stored(t *testing.T, s objstore.Store) boxid.Record {
	t.Helper()
	obj, err := s.Get(t.Context(), boxid.Key(ref))
	require.NoError(t, err)
	rec, err := record.Decode[boxid.Record](obj.Body)
	require.NoError(t, err)
	return rec
}

func TestPublishKeepsTheExactBytesAndJoinsAWrappedSignature(t *testing.T) {
	store, source := memstore.New(), newMetadata(self)
	whole := string(source.signature)
	source.signature = []byte(whole[:76] + "\n" + whole[76:152] + "\r\n \t" + whole[152:] + "\n")
	require.NoError(t, boxid.Publish(t.Context(), store, ref, source, now))

	require.Equal(t, map[memstore.Op]int{memstore.OpGet: 1, memstore.OpPut: 1}, store.Requests())

	rec := stored(t, store)
	require.Equal(t, source.doc, rec.IdentityDocument)
	require.Equal(t, now, rec.WrittenAt)
	obj, err := store.Get(t.Context(), boxid.Key(ref))
	require.NoError(t, err)
	require.Contains(t, string(obj.Body), `"identity_signature":"`+whole+`"`)
	a := newAttempt()
	_, err = a.verifier.Enroll(obj.Body, a.expect)
	require.NoError(t, err)
}

func TestPublishNeverRewritesARecord(t *testing.T) {
	store := memstore.New()
	require.NoError(t, boxid.Publish(t.Context(), store, ref, newMetadata(self), now))
	require.NoError(t, boxid.Publish(t.Context(), store, ref, newMetadata(self), now.Add(time.Hour)))
	require.Equal(t, now, stored(t, store).WrittenAt)
	require.Equal(t, 1, store.Requests()[memstore.OpPut])
}

func TestPublishRefusesWhatIsNotThisMachines(t *testing.T) {
	other := self
	other.InstanceID = "i-other"
	rec := boxid.Record{V: 1, Box: ref, IdentityDocument: boxidtest.Document(self), IdentitySignature: []byte("s"), WrittenAt: now}
	encode := func(change func(*boxid.Record)) string {
		r := rec
		change(&r)
		body, err := record.Encode(r)
		require.NoError(t, err)
		return string(body)
	}
	for _, c := range []struct{ name, body, reason string }{
		{"another instance", encode(func(r *boxid.Record) { r.IdentityDocument = boxidtest.Document(other) }), "eu-west-1/i-other"},
		{"another box", encode(func(r *boxid.Record) { r.Box = "box-2" }), `it names box "box-2"`},
		{"another version", encode(func(r *boxid.Record) { r.V = 2 }), "record version 2"},
		{"an unreadable document", encode(func(r *boxid.Record) { r.IdentityDocument = []byte("x") }), "identity document:"},
		{"not a record at all", "hello", "malformed record"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := memstore.New()
			_, err := store.Put(t.Context(), boxid.Key(ref), []byte(c.body), objstore.IfAbsent())
			require.NoError(t, err)
			err = boxid.Publish(t.Context(), store, ref, newMetadata(self), now)
			require.ErrorIs(t, err, boxid.ErrTaken)
			require.ErrorContains(t, err, c.reason)
			require.Len(t, store.Log(), 1)
		})
	}
}

func TestAStoreErrorIsNeverNoRecord(t *testing.T) {
	store, source := memstore.New(), newMetadata(self)
	store.Inject(memstore.Once(memstore.OpGet, boxid.Key(ref), memstore.Lose))
	err := boxid.Publish(t.Context(), store, ref, source, now)
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.NotErrorIs(t, err, boxid.ErrTaken)
	require.Zero(t, source.asked, "the metadata service is not asked")
	require.Empty(t, store.Log())
}

func TestABadReferenceAsksNobody(t *testing.T) {
	store, source := memstore.New(), newMetadata(self)
	require.ErrorIs(t, boxid.Publish(t.Context(), store, "box.1", source, now), boxid.ErrBadRef)
	require.Zero(t, source.asked)
	require.Empty(t, store.Requests())
}

func TestPublishWritesNothingThatEnrollmentCouldNotUse(t *testing.T) {
	failed := errors.New("metadata service failed")
	for name, spoil := range map[string]func(*metadata){
		"no document":            func(m *metadata) { m.docErr = failed },
		"an empty document":      func(m *metadata) { m.doc = nil },
		"an incomplete document": func(m *metadata) { m.doc = boxidtest.Document(boxid.Cloud{Account: account, Region: awsRegion}) },
		"a long document":        func(m *metadata) { m.doc = append(m.doc, strings.Repeat(" ", boxid.MaxBody)...) },
		"no signature":           func(m *metadata) { m.signatureErr = failed },
		"an empty signature":     func(m *metadata) { m.signature = []byte(" \n") },
		"not base64":             func(m *metadata) { m.signature = []byte("<html>") },
		"a long signature":       func(m *metadata) { m.signature = append(m.signature, strings.Repeat("\n", boxid.MaxBody)...) },
	} {
		t.Run(name, func(t *testing.T) {
			store, source := memstore.New(), newMetadata(self)
			spoil(source)
			err := boxid.Publish(t.Context(), store, ref, source, now)
			require.Error(t, err)
			require.NotErrorIs(t, err, boxid.ErrTaken, "the caller tries again")
			require.Empty(t, store.Log())
		})
	}
}

func TestPublishTakesADocumentAndASignatureOfTheMostThatIsAllowed(t *testing.T) {
	store, source := memstore.New(), newMetadata(self)
	source.doc = append(source.doc, strings.Repeat(" ", boxid.MaxBody-len(source.doc))...)
	source.signature = append(source.signature, strings.Repeat("\n", boxid.MaxBody-len(source.signature))...)
	require.NoError(t, boxid.Publish(t.Context(), store, ref, source, now))
	require.Equal(t, source.doc, stored(t, store).IdentityDocument)
}

func TestPublishSettlesALostRaceByReading(t *testing.T) {
	other := self
	other.InstanceID = "i-other"
	for _, first := range []struct {
		name string
		by   boxid.Cloud
		want error
	}{{"another process of this machine", self, nil}, {"another machine", other, boxid.ErrTaken}} {
		t.Run(first.name, func(t *testing.T) {
			store, raced := memstore.New(), false
			store.Inject(func(r memstore.Request) memstore.Fault {
				if r.Op == memstore.OpPut && !raced {
					raced = true
					require.NoError(t, boxid.Publish(t.Context(), store, ref, newMetadata(first.by), now.Add(time.Second)))
				}
				return memstore.None
			})
			require.ErrorIs(t, boxid.Publish(t.Context(), store, ref, newMetadata(self), now), first.want)
			require.Equal(t, now.Add(time.Second), stored(t, store).WrittenAt)
		})
	}
}

func TestPublishSettlesALostAnswer(t *testing.T) {
	store := memstore.New()
	store.Inject(memstore.Once(memstore.OpPut, boxid.Key(ref), memstore.LoseAnswer))
	require.NoError(t, boxid.Publish(t.Context(), store, ref, newMetadata(self), now))
	require.Equal(t, now, stored(t, store).WrittenAt)
}
