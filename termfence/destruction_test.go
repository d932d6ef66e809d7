package termfence_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

// destruction is a perfect one of shop's disks.
func destruction() termfence.Destruction {
	return termfence.Destruction{V: 1, Box: "shop-1", Enrollment: "e-shop-1", Who: "Ana Ortiz", Why: "its rack burned",
		How: "shredded, certificate 17", Confirmation: "shop-1", DeclaredAt: now}
}

func (r region) destroy(tb testing.TB, d termfence.Destruction) (termfence.Destroyed, error) {
	tb.Helper()
	return termfence.DeclareDestroyed(tb.Context(), r, r.reader, d)
}

func (r region) requireNotDestroyed(t *testing.T, enrollment string, want error) {
	t.Helper()
	d, destroyed, err := r.reader.Destroyed(t.Context(), enrollment)
	require.ErrorIs(t, err, want)
	require.False(t, destroyed)
	require.Zero(t, d)
}

// declared is a region whose shop is declared lost, fenced one where it was
// read terminated.
func declared(tb testing.TB) region {
	tb.Helper()
	r := lost(tb)
	_, err := r.declare(tb, declaration())
	require.NoError(tb, err)
	return r
}

func fenced(tb testing.TB) region {
	tb.Helper()
	r := newRegion(tb)
	_, err := r.publish(tb, fence(tb, worker, now))
	require.NoError(tb, err)
	return r
}

func TestTheDisksOfABoxThatIsGoneMayBeDestroyed(t *testing.T) {
	for name, region := range map[string]func(testing.TB) region{"declared lost": declared, "fenced": fenced} {
		t.Run(name, func(t *testing.T) {
			r := region(t)
			r.requireNotDestroyed(t, "e-shop-1", nil)
			d, err := r.destroy(t, destruction())
			require.NoError(t, err)
			require.Equal(t, "shop-1", d.Box())
			require.Equal(t, "e-shop-1", d.Enrollment())
			require.Equal(t, termfence.Ref{Enrollment: "e-shop-1", Key: "control/destructions/e-shop-1.json",
				SHA256: record.Digest(encode(t, destruction()))}, d.Ref())
			read, destroyed, err := r.reader.Destroyed(t.Context(), "e-shop-1")
			require.NoError(t, err)
			require.True(t, destroyed)
			require.Equal(t, d, read)

			later := destruction()
			later.How = "burned too"
			again, err := r.destroy(t, later)
			require.NoError(t, err)
			require.Equal(t, d, again, "the first stands")
		})
	}
}

func TestTheDisksOfABoxThatIsNotKnownToBeGoneAreNot(t *testing.T) {
	for name, region := range map[string]func(testing.TB) region{"active": newRegion, "only quarantined": lost} {
		t.Run(name, func(t *testing.T) {
			r := region(t)
			before := len(r.Log())
			_, err := r.destroy(t, destruction())
			require.ErrorIs(t, err, termfence.ErrUnverified)
			require.ErrorContains(t, err, "neither fenced nor declared lost")
			require.Len(t, r.Log(), before)
			r.plantAt(t, termfence.DestructionKey("e-shop-1"), "e-shop-1", encode(t, destruction()))
			r.requireNotDestroyed(t, "e-shop-1", termfence.ErrUnverified)
		})
	}
}

func TestADestructionThatDoesNotHoldIsAnError(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(*termfence.Destruction)
		reason string
	}{
		{"another version", func(d *termfence.Destruction) { d.V = 2 }, "version 2"},
		{"another box", func(d *termfence.Destruction) { d.Box, d.Confirmation = "worker-1", "worker-1" }, `names box "worker-1"`},
		{"another enrollment", func(d *termfence.Destruction) { d.Enrollment = "e-worker-1" }, `"e-worker-1"`},
		{"another confirmation", func(d *termfence.Destruction) { d.Confirmation = "shop-2" },
			`confirmation: got "shop-2", expected the box's reference "shop-1"`},
		{"no box", func(d *termfence.Destruction) { d.Box, d.Confirmation = "", "" }, "confirmation"},
		{"no time", func(d *termfence.Destruction) { d.DeclaredAt = time.Time{} }, "declared_at"},
		{"nobody", func(d *termfence.Destruction) { d.Who = "" }, "who: got 0 bytes"},
		{"no reason", func(d *termfence.Destruction) { d.Why = "" }, "why: got 0 bytes"},
		{"no way", func(d *termfence.Destruction) { d.How = "" }, "how: got 0 bytes"},
		{"a long way", func(d *termfence.Destruction) { d.How = strings.Repeat("a", 2049) }, "how: got 2049 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := declared(t)
			d := destruction()
			c.spoil(&d)
			before := len(r.Log())
			if d.V == 1 && d.Enrollment == "e-shop-1" {
				_, err := r.destroy(t, d)
				require.ErrorIs(t, err, termfence.ErrUnverified)
				require.ErrorContains(t, err, c.reason)
				require.Len(t, r.Log(), before)
			}
			r.plantAt(t, termfence.DestructionKey("e-shop-1"), "e-shop-1", encode(t, d))
			_, _, err := r.reader.Destroyed(t.Context(), "e-shop-1")
			require.ErrorContains(t, err, c.reason)
			r.requireNotDestroyed(t, "e-shop-1", termfence.ErrUnverified)
		})
	}
}

func TestAFailedReadIsNeverNotDestroyed(t *testing.T) {
	for _, key := range []string{termfence.DestructionKey("e-shop-1"), termfence.Key("e-shop-1"), termfence.DeclarationKey("e-shop-1"), roster.Key} {
		t.Run(key, func(t *testing.T) {
			r := declared(t)
			_, err := r.destroy(t, destruction())
			require.NoError(t, err)
			r.Inject(memstore.Once(memstore.OpGet, key, memstore.Lose))
			r.requireNotDestroyed(t, "e-shop-1", memstore.ErrInjected)
		})
	}
	r := declared(t)
	r.requireNotDestroyed(t, "../e", roster.ErrInvalid)
	r.plant(t, "e-shop-1", []byte("{}\n"))
	_, err := r.destroy(t, destruction())
	require.ErrorIs(t, err, termfence.ErrUnverified, "a broken fence is never passed over")
}

func TestADestructionSaysNothingAboutTheBoxItself(t *testing.T) {
	r := fenced(t)
	d, err := r.destroy(t, destruction())
	require.NoError(t, err)
	r.requireNotDeclared(t, "e-shop-1", nil)
	_, err = r.reader.Read(t.Context(), d.Ref())
	require.ErrorIs(t, err, termfence.ErrUnverified)
}

func TestTheZeroDestroyedNamesNothing(t *testing.T) {
	var d termfence.Destroyed
	require.Zero(t, d.Ref())
	require.Empty(t, d.Box())
	require.Empty(t, d.Enrollment())
}

func TestFencetestDestroysDisks(t *testing.T) {
	d := fencetest.Destroyed(t, "shop-1", "e-1", "ie")
	require.Equal(t, "shop-1", d.Box())
	require.Equal(t, "e-1", d.Enrollment())
	require.Equal(t, termfence.DestructionKey("e-1"), d.Ref().Key)
	require.Equal(t, d, fencetest.Destroyed(t, "shop-1", "e-1", "ie"))
}

func TestGoldenDestruction(t *testing.T) { recordtest.Golden(t, "destruction", destruction()) }

func FuzzDestruction(f *testing.F) { recordtest.Fuzz(f, destruction()) }
