package objstore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
)

func TestTheZeroConditionIsRefused(t *testing.T) {
	require.ErrorIs(t, objstore.Condition{}.Check(), objstore.ErrBadCondition)
	require.ErrorIs(t, objstore.IfMatch("").Check(), objstore.ErrBadCondition)
	for _, c := range []objstore.Condition{objstore.IfAbsent(), objstore.IfMatch(`"a"`), objstore.Always()} {
		require.NoError(t, c.Check())
	}
}

func TestAConditionSaysWhatItIs(t *testing.T) {
	etag, match := objstore.IfMatch(`"a"`).ETag()
	require.Equal(t, `"a"`, etag)
	require.True(t, match)
	require.True(t, objstore.IfAbsent().IsAbsent())
	_, match = objstore.IfAbsent().ETag()
	require.False(t, match)
	require.False(t, objstore.Always().IsAbsent())
	for c, text := range map[objstore.Condition]string{
		{}:                      "no condition",
		objstore.IfAbsent():     "if absent",
		objstore.IfMatch(`"a"`): `if "a"`,
		objstore.Always():       "always",
	} {
		require.Equal(t, text, c.String())
	}
}

func TestBadKeys(t *testing.T) {
	for _, key := range []string{"", "\x00", "a\x00b", "\xff", strings.Repeat("k", objstore.MaxKey+1), strings.Repeat("é", objstore.MaxKey/2+1)} {
		require.ErrorIs(t, objstore.CheckKey(key), objstore.ErrBadKey, "%.20q", key)
	}
	for _, key := range []string{"a", "/", "..", "é%+ #?", strings.Repeat("k", objstore.MaxKey)} {
		require.NoError(t, objstore.CheckKey(key), "%.20q", key)
	}
}
