package boxid_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/internal/record/recordtest"
)

var golden = boxid.Record{
	V: 1, Box: ref, IdentityDocument: boxidtest.Document(self), IdentitySignature: []byte{0xfb, 0xff, 0xfe, 0x00},
	WrittenAt: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
}

func TestGolden(t *testing.T) { recordtest.Golden(t, "box", golden) }

func FuzzRecord(f *testing.F) { recordtest.Fuzz(f, golden) }

// FuzzEnroll holds the whole verifier to its promise: whatever bytes are
// stored, an unsigned record never enrolls.
func FuzzEnroll(f *testing.F) {
	a := newAttempt()
	a.tampered = true
	f.Add(a.raw(f))
	a.unstrict = true
	f.Add(a.raw(f))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := a.verifier.Enroll(raw, a.expect)
		require.ErrorIs(t, err, boxid.ErrUnverified)
	})
}

func TestKey(t *testing.T) {
	require.Equal(t, "control/boxes/box-1.json", boxid.Key("box-1"))
	ref, ok := boxid.ParseKey(boxid.Key("box-1"))
	require.True(t, ok)
	require.Equal(t, "box-1", ref)
	for _, key := range []string{"", "box-1.json", "control/boxes/box-1", "control/boxes/.json", "control/boxes/a/b.json", "control/boxes/Box.json",
		"control/edges/box-1.json"} {
		ref, ok := boxid.ParseKey(key)
		require.False(t, ok, key)
		require.Empty(t, ref)
	}
}

func TestCheckRef(t *testing.T) {
	long := "a23456789-123456789-123456789-123456789-123456789-123456789-123"
	require.Len(t, long, 63)
	for _, good := range []string{"a", "7", "box-1", "a--b", "az-09", long} {
		require.NoError(t, boxid.CheckRef(good), good)
	}
	for _, bad := range []string{"", "a.b", "Box", "box_1", "-a", "a-", "-", "a/b", "..", "a b", "é", "a\n", long + "4", "none"} {
		require.ErrorIs(t, boxid.CheckRef(bad), boxid.ErrBadRef, bad)
	}
}

func TestParseDocument(t *testing.T) {
	c, err := boxid.ParseDocument(boxidtest.Document(self))
	require.NoError(t, err)
	require.Equal(t, self, c)
	for name, doc := range map[string]string{
		"empty":          "",
		"no instance":    string(boxidtest.Document(boxid.Cloud{Account: account, Region: awsRegion})),
		"no account":     string(boxidtest.Document(boxid.Cloud{Region: awsRegion, InstanceID: instance})),
		"no region":      string(boxidtest.Document(boxid.Cloud{Account: account, InstanceID: instance})),
		"a list":         "[]",
		"null":           "null",
		"two documents":  string(boxidtest.Document(self)) + string(boxidtest.Document(self)),
		"duplicate name": `{"accountId":"1","accountId":"2","region":"r","instanceId":"i"}`,
		"another case":   `{"accountid":"1","region":"r","instanceId":"i"}`,
		"a number":       `{"accountId":1,"region":"r","instanceId":"i"}`,
	} {
		_, err := boxid.ParseDocument([]byte(doc))
		require.Error(t, err, name)
	}
}

func TestCompleteNeedsEveryField(t *testing.T) {
	require.True(t, self.Complete())
	for i, clear := range []func(*boxid.Cloud){
		func(c *boxid.Cloud) { c.Provider = "" },
		func(c *boxid.Cloud) { c.Account = "" },
		func(c *boxid.Cloud) { c.Region = "" },
		func(c *boxid.Cloud) { c.InstanceID = "" },
	} {
		c := self
		clear(&c)
		require.False(t, c.Complete(), i)
	}
}
