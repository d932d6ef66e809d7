package roster_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

func TestAnEnrollmentIsAnyOfItsAlphabetAndNothingElse(t *testing.T) {
	for _, good := range []string{"a", "z", "A", "Z", "0", "9", ".a", "a..b", "_", "-", strings.Repeat("e", 128)} {
		require.NoError(t, roster.CheckEnrollment(good), good)
	}
	for _, bad := range []string{"", ".", "..", "`", "{", "@", "[", "/", ":", "a b", "é", "a\x00", strings.Repeat("e", 129)} {
		require.ErrorIs(t, roster.CheckEnrollment(bad), roster.ErrInvalid, bad)
	}
}

func TestAnEntryWithoutACloudHidesNoInstanceThatIsThereTwice(t *testing.T) {
	store := memstore.New()
	_, private := roster.GenerateKey()
	r := valid()
	unproven := box("e-0", "")
	unproven.Cloud = boxid.Cloud{}
	r.Boxes["a-first"], r.Boxes["box-3"] = unproven, box("e-3", "i-1")
	_, err := roster.Create(t.Context(), store, private, r)
	require.ErrorIs(t, err, roster.ErrInvalid)
	require.ErrorContains(t, err, "are one instance, i-1")
	require.Empty(t, store.Log())
}

// A restored bucket that was written again has another roster of the same gen.
// The overlap of two reads may show both, and the one that was seen first is
// the one that every later read is held to.
func TestOfTwoRostersOfOneGenTheOneSeenFirstCounts(t *testing.T) {
	d := newDeployment(t)
	store := &slow{Store: d.store}
	dir := roster.Open(store, d.public, bucket)
	bodies := make([][]byte, 2)
	for i, ref := range []string{"box-1", "box-2"} {
		r := golden()
		r.Boxes = map[string]roster.Box{ref: box("e-"+ref, "i-1")}
		bodies[i] = encode(t, sealed(t, d.private, r))
	}
	d.overwrite(t, bodies[1])
	store.late = func() {
		d.overwrite(t, bodies[0])
		first, err := dir.Read(t.Context())
		require.NoError(t, err)
		require.Contains(t, first.Boxes, "box-1")
	}
	overlapping, err := dir.Read(t.Context())
	require.NoError(t, err)
	require.Contains(t, overlapping.Boxes, "box-2")

	_, err = dir.Read(t.Context())
	require.NoError(t, err, "it is the one that was seen first")
	d.overwrite(t, bodies[1])
	_, err = dir.Read(t.Context())
	require.ErrorIs(t, err, roster.ErrUntrusted)
	require.ErrorContains(t, err, "another roster of gen")
}
