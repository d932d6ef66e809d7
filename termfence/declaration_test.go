package termfence_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

// declaration is a perfect one about shop.
func declaration() termfence.Declaration {
	return termfence.Declaration{V: 1, Box: "shop-1", Enrollment: "e-shop-1", Cloud: shop.Cloud, Region: "ie",
		Who: "Ana Ortiz", Why: "its rack burned", Checked: []string{"the console shows nothing", "no ping for 2 h"},
		Confirmation: "shop-1", DeclaredAt: now}
}

// lost is a region whose shop is quarantined.
func lost(tb testing.TB) region {
	tb.Helper()
	r := newRegion(tb)
	r.become(tb, "shop-1", roster.Quarantined)
	return r
}

func (r region) declare(tb testing.TB, d termfence.Declaration) (termfence.Evidence, error) {
	tb.Helper()
	return termfence.Declare(tb.Context(), r, r.reader, d)
}

// plantDeclaration stores d as someone who can write to the bucket could.
func (r region) plantDeclaration(tb testing.TB, enrollment string, d termfence.Declaration) termfence.Ref {
	tb.Helper()
	return r.plantAt(tb, termfence.DeclarationKey(enrollment), enrollment, encode(tb, d))
}

func (r region) requireNotDeclared(t *testing.T, enrollment string, want error) {
	t.Helper()
	ev, declared, err := r.reader.Declared(t.Context(), enrollment)
	require.ErrorIs(t, err, want)
	require.False(t, declared)
	require.Zero(t, ev)
}

func TestADeclarationIsEvidenceThatSaysSo(t *testing.T) {
	r := lost(t)
	r.requireNotDeclared(t, "e-shop-1", nil)
	ev, err := r.declare(t, declaration())
	require.NoError(t, err)
	require.True(t, ev.Declared())
	require.Equal(t, "shop-1", ev.Box())
	require.Equal(t, "e-shop-1", ev.Enrollment())
	require.Equal(t, "ie", ev.Region())
	require.Equal(t, now, ev.ObservedAt())
	require.Equal(t, termfence.DeclarationKey("e-shop-1"), ev.Ref().Key)

	read, err := r.reader.Read(t.Context(), ev.Ref())
	require.NoError(t, err)
	require.Equal(t, ev, read)
	found, declared, err := r.reader.Declared(t.Context(), "e-shop-1")
	require.NoError(t, err)
	require.True(t, declared)
	require.Equal(t, ev, found)
}

func TestADeclarationIsNeverAFenceNorAFenceADeclaration(t *testing.T) {
	r := lost(t)
	_, err := r.declare(t, declaration())
	require.NoError(t, err)
	_, fenced, err := r.reader.Fenced(t.Context(), "e-shop-1")
	require.NoError(t, err)
	require.False(t, fenced)

	r = lost(t)
	ref := r.plant(t, "e-shop-1", encode(t, declaration()))
	requireNoAnswer(t, r, "e-shop-1", termfence.ErrUnverified)
	_, err = r.reader.Read(t.Context(), ref)
	require.ErrorIs(t, err, termfence.ErrUnverified)

	r = lost(t)
	ref = r.plantAt(t, termfence.DeclarationKey("e-shop-1"), "e-shop-1", encode(t, fence(t, worker, now)))
	r.requireNotDeclared(t, "e-shop-1", termfence.ErrUnverified)
	_, err = r.reader.Read(t.Context(), ref)
	require.ErrorIs(t, err, termfence.ErrUnverified)
}

// Whoever can write to the bucket can write these. None is evidence, none is
// the absence of it, and none can be made with Declare.
func TestADeclarationThatDoesNotHoldIsAnError(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(*termfence.Declaration)
		reason string
	}{
		{"another box", func(d *termfence.Declaration) { d.Box, d.Confirmation = "worker-1", "worker-1" }, `names box "worker-1"`},
		{"another enrollment", func(d *termfence.Declaration) { d.Enrollment = "e-worker-1" }, `"e-worker-1"`},
		{"another region", func(d *termfence.Declaration) { d.Region = "de" }, `region "de", enrolled is "ie"`},
		{"no region", func(d *termfence.Declaration) { d.Region = "" }, `region "", enrolled is "ie"`},
		{"another instance", func(d *termfence.Declaration) { d.Cloud.InstanceID = "i-other" }, "i-other"},
		{"half a cloud", func(d *termfence.Declaration) { d.Cloud = boxid.Cloud{Provider: boxid.AWS} }, "enrolled is"},
		{"another confirmation", func(d *termfence.Declaration) { d.Confirmation = "shop-2" },
			`confirmation: got "shop-2", expected the box's reference "shop-1"`},
		{"a confirmation in capitals", func(d *termfence.Declaration) { d.Confirmation = "Shop-1" }, "confirmation"},
		{"no confirmation", func(d *termfence.Declaration) { d.Confirmation = "" }, `confirmation: got ""`},
		{"no time", func(d *termfence.Declaration) { d.DeclaredAt = time.Time{} }, "declared_at"},
		{"nobody", func(d *termfence.Declaration) { d.Who = "" }, "who: got 0 bytes, expected 1 to 128"},
		{"somebody with a long name", func(d *termfence.Declaration) { d.Who = strings.Repeat("a", 129) }, "who: got 129 bytes"},
		{"no reason", func(d *termfence.Declaration) { d.Why = "" }, "why: got 0 bytes, expected 1 to 2048"},
		{"a long reason", func(d *termfence.Declaration) { d.Why = strings.Repeat("a", 2049) }, "why: got 2049 bytes"},
		{"a blank reason", func(d *termfence.Declaration) { d.Why = " " }, `why: got " "`},
		{"a reason in two lines", func(d *termfence.Declaration) { d.Why = "a\nb" }, `why: got "a\nb"`},
		{"nothing was checked", func(d *termfence.Declaration) { d.Checked = nil }, "checked: got 0 entries, expected 1 to 32"},
		{"too much was checked", func(d *termfence.Declaration) {
			d.Checked = strings.Split(strings.Repeat("x ", 33), " ")[:33]
		}, "checked: got 33 entries"},
		{"an empty check", func(d *termfence.Declaration) { d.Checked[1] = "" }, "checked[1]: got 0 bytes, expected 1 to 512"},
		{"a long check", func(d *termfence.Declaration) { d.Checked[0] = strings.Repeat("a", 513) }, "checked[0]: got 513 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := lost(t)
			d := declaration()
			c.spoil(&d)
			before := len(r.Log())
			if d.Enrollment == "e-shop-1" {
				ev, err := r.declare(t, d)
				require.ErrorIs(t, err, termfence.ErrUnverified)
				require.ErrorContains(t, err, c.reason)
				require.Zero(t, ev)
				require.Len(t, r.Log(), before, "its key can be used only once")
			}
			ref := r.plantDeclaration(t, "e-shop-1", d)
			_, err := r.reader.Read(t.Context(), ref)
			require.ErrorIs(t, err, termfence.ErrUnverified)
			require.ErrorContains(t, err, c.reason)
			r.requireNotDeclared(t, "e-shop-1", termfence.ErrUnverified)
		})
	}
}

func TestTextsOfTheLongestLengthAreTaken(t *testing.T) {
	d := declaration()
	d.Who, d.Why = strings.Repeat("a", 128), strings.Repeat("a", 2048)
	d.Checked = make([]string, 32)
	for i := range d.Checked {
		d.Checked[i] = strings.Repeat("é", 256)
	}
	require.NoError(t, d.Check())
	_, err := lost(t).declare(t, d)
	require.NoError(t, err)
	d.Who = "\xff"
	require.ErrorContains(t, d.Check(), "UTF-8")
}

func TestADeclarationHoldsOnlyOfABoxThatMayNotAct(t *testing.T) {
	for _, c := range []struct {
		state roster.State
		want  error
	}{{roster.Active, termfence.ErrUnverified}, {roster.Quarantined, nil}, {roster.Retired, nil}} {
		t.Run(string(c.state), func(t *testing.T) {
			r := newRegion(t)
			r.become(t, "shop-1", c.state)
			before := len(r.Log())
			_, err := r.declare(t, declaration())
			require.ErrorIs(t, err, c.want)
			if c.want == nil {
				return
			}
			require.ErrorContains(t, err, `the box is "active"`)
			require.Len(t, r.Log(), before)
			ref := r.plantDeclaration(t, "e-shop-1", declaration())
			_, err = r.reader.Read(t.Context(), ref)
			require.ErrorIs(t, err, c.want)
			r.requireNotDeclared(t, "e-shop-1", c.want)

			r.become(t, "shop-1", roster.Quarantined)
			_, err = r.reader.Read(t.Context(), ref)
			require.NoError(t, err)
		})
	}
}

func TestAVersionOrAnEnrollmentThatIsNotKnownIsAnError(t *testing.T) {
	r := lost(t)
	d := declaration()
	d.V = 2
	r.plantDeclaration(t, "e-shop-1", d)
	r.requireNotDeclared(t, "e-shop-1", termfence.ErrUnverified)

	d = declaration()
	d.Enrollment = "e-nobody"
	r.plantDeclaration(t, "e-nobody", d)
	r.requireNotDeclared(t, "e-nobody", termfence.ErrUnverified)
	_, err := r.declare(t, d)
	require.ErrorIs(t, err, termfence.ErrUnverified)
	r.requireNotDeclared(t, "../e", roster.ErrInvalid)
}

func TestABoxThatNeverProvedItsCloudCanBeDeclaredLost(t *testing.T) {
	r := newRegion(t)
	r.become(t, "unproven", roster.Quarantined)
	d := declaration()
	d.Box, d.Enrollment, d.Confirmation, d.Cloud = "unproven", "e-unproven", "unproven", boxid.Cloud{}
	ev, err := r.declare(t, d)
	require.NoError(t, err)

	r.edit(t, "unproven", func(b *roster.Box) { b.Cloud = cloud("eu-west-1", "i-late") })
	_, err = r.reader.Read(t.Context(), ev.Ref())
	require.NoError(t, err, "what a claim cites does not cease to hold")
}

func TestTheFirstDeclarationStands(t *testing.T) {
	r := lost(t)
	first, err := r.declare(t, declaration())
	require.NoError(t, err)
	d := declaration()
	d.Who, d.DeclaredAt = "Bo", now.Add(time.Hour)
	second, err := r.declare(t, d)
	require.NoError(t, err)
	require.Equal(t, first, second)

	r = lost(t)
	bad := declaration()
	bad.Confirmation = ""
	r.plantDeclaration(t, "e-shop-1", bad)
	_, err = r.declare(t, declaration())
	require.ErrorIs(t, err, termfence.ErrUnverified)
}

func TestAFailedReadIsNeverNotDeclared(t *testing.T) {
	for name, key := range map[string]string{"the declaration": termfence.DeclarationKey("e-shop-1"), "the roster": roster.Key} {
		t.Run(name, func(t *testing.T) {
			r := lost(t)
			_, err := r.declare(t, declaration())
			require.NoError(t, err)
			r.Inject(memstore.Once(memstore.OpGet, key, memstore.Lose))
			r.requireNotDeclared(t, "e-shop-1", memstore.ErrInjected)
		})
	}
	r := lost(t)
	body := encode(t, declaration())
	r.plantAt(t, termfence.DeclarationKey("e-shop-1"), "e-shop-1", append(bytes.Clone(body[:len(body)-2]), ",\"x\":1}\n"...))
	r.requireNotDeclared(t, "e-shop-1", termfence.ErrUnverified)
}

func TestACitationOfADeclarationHoldsExactly(t *testing.T) {
	r := lost(t)
	ev, err := r.declare(t, declaration())
	require.NoError(t, err)
	for name, spoil := range map[string]func(*termfence.Ref){
		"other bytes":        func(f *termfence.Ref) { f.SHA256 = f.SHA256[1:] + "0" },
		"another enrollment": func(f *termfence.Ref) { f.Enrollment = "e-worker-1" },
		"another prefix":     func(f *termfence.Ref) { f.Key = "control/destructions/e-shop-1.json" },
	} {
		ref := ev.Ref()
		spoil(&ref)
		_, err := r.reader.Read(t.Context(), ref)
		require.ErrorIs(t, err, termfence.ErrUnverified, name)
	}
	ref := ev.Ref()
	ref.Key = termfence.Key("e-shop-1")
	_, err = r.reader.Read(t.Context(), ref)
	require.ErrorIs(t, err, objstore.ErrNotFound)
}

func TestFencetestDeclaresABoxLost(t *testing.T) {
	ev := fencetest.Declared(t, "shop-1", "e-1", "ie", now)
	require.True(t, ev.Declared())
	require.Equal(t, "shop-1", ev.Box())
	require.Equal(t, "e-1", ev.Enrollment())
	require.Equal(t, "ie", ev.Region())
	require.Equal(t, now, ev.ObservedAt())
	require.Equal(t, ev, fencetest.Declared(t, "shop-1", "e-1", "ie", now))
}

func TestGoldenDeclaration(t *testing.T) { recordtest.Golden(t, "declaration", declaration()) }

func FuzzDeclaration(f *testing.F) { recordtest.Fuzz(f, declaration()) }
