package console_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

func loss() console.Loss {
	return console.Loss{Ref: "box-1", Who: "Ana", Why: "its rack burned", Checked: []string{"no ping for 2 h"}, Confirm: "box-1"}
}

func (d *deployment) entry(t *testing.T, ref string) roster.Box {
	t.Helper()
	snap, err := d.Roster.Read(t.Context())
	require.NoError(t, err)
	box, _ := snap.Box(ref)
	return box
}

func (d *deployment) become(t *testing.T, ref string, s roster.State) {
	t.Helper()
	_, err := roster.Update(t.Context(), d.mem, d.Private, d.Roster, func(r *roster.Roster) error {
		b := r.Boxes[ref]
		b.State = s
		r.Boxes[ref] = b
		return nil
	})
	require.NoError(t, err)
}

func TestABoxIsQuarantinedBeforeItIsDeclaredLost(t *testing.T) {
	d := deploy(t)
	before := len(d.mem.Log())
	evidence, err := d.DeclareLost(t.Context(), loss())
	require.NoError(t, err)
	require.True(t, evidence.Declared())
	box := d.entry(t, "box-1")
	require.Equal(t, roster.Quarantined, box.State)
	writes := d.mem.Log()[before:]
	require.Len(t, writes, 2)
	require.Equal(t, roster.Key, writes[0].Key)
	require.Equal(t, termfence.DeclarationKey(box.Enrollment), writes[1].Key)

	again, err := d.DeclareLost(t.Context(), loss())
	require.NoError(t, err)
	require.Equal(t, evidence, again)
	require.Len(t, d.mem.Log(), before+2)
	list, err := d.Boxes(t.Context())
	require.NoError(t, err)
	require.Equal(t, evidence.ObservedAt(), list[0].DeclaredAt)
	require.Contains(t, list[0].Status, "declared lost at")
}

func TestASecondRunFinishesWhatACrashLeft(t *testing.T) {
	d := deploy(t)
	d.mem.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpPut && r.Key != roster.Key {
			return memstore.Lose
		}
		return memstore.None
	})
	_, err := d.DeclareLost(t.Context(), loss())
	require.ErrorIs(t, err, objstore.ErrUnknown)
	require.ErrorContains(t, err, "is quarantined and not declared lost yet, run it again")
	d.mem.Inject(nil)
	box, err := d.Box(t.Context(), "box-1")
	require.NoError(t, err)
	require.Equal(t, "takes no part, and is not declared lost yet: run console box declare-lost box-1 again", box.Status)

	before := len(d.mem.Log())
	evidence, err := d.DeclareLost(t.Context(), loss())
	require.NoError(t, err)
	require.Equal(t, "box-1", evidence.Box())
	require.Len(t, d.mem.Log(), before+1, "only the declaration was missing")
}

func TestALossIsDeclaredOnceWhateverBecomesOfItsWrites(t *testing.T) {
	for _, prefix := range []string{roster.Key, "control/declarations/"} {
		for name, fault := range map[string]memstore.Fault{"lost": memstore.Lose, "answer lost": memstore.LoseAnswer,
			"replayed": memstore.Replay, "refused": memstore.Refuse, "late": memstore.Hold} {
			t.Run(prefix+" "+name, func(t *testing.T) {
				d := deploy(t)
				d.mem.Inject(memstore.Once(memstore.OpPut, prefix, fault))
				evidence, err := d.DeclareLost(t.Context(), loss())
				require.NoError(t, err)
				for _, held := range d.mem.Held() {
					_, _ = held.Deliver() // it lands late, and finds that it lost
				}
				found, declared, err := termfence.Reader{Store: d.mem, Roster: d.Roster}.Declared(t.Context(), evidence.Enrollment())
				require.NoError(t, err)
				require.True(t, declared)
				require.Equal(t, evidence, found)
			})
		}
	}
}

func TestALossIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(*deployment, *console.Loss)
		reason string
	}{
		"another confirmation": {func(_ *deployment, l *console.Loss) { l.Confirm = "box-2" }, "confirmation"},
		"nothing was checked":  {func(_ *deployment, l *console.Loss) { l.Checked = nil }, "checked"},
		"another box":          {func(_ *deployment, l *console.Loss) { l.Ref = "box-2" }, "it is not in the roster"},
		"a retired box":        {func(d *deployment, _ *console.Loss) { d.become(t, "box-1", roster.Retired) }, "it is retired"},
	} {
		t.Run(name, func(t *testing.T) {
			d, l := deploy(t), loss()
			c.spoil(d, &l)
			before := len(d.mem.Log())
			_, err := d.DeclareLost(t.Context(), l)
			var refusal *console.Refusal
			require.ErrorAs(t, err, &refusal)
			require.ErrorContains(t, err, c.reason)
			require.Len(t, d.mem.Log(), before)
		})
	}
	d := deploy(t)
	d.Private = nil
	before := len(d.mem.Log())
	_, err := d.DeclareLost(t.Context(), loss())
	require.ErrorContains(t, err, "private key")
	require.Len(t, d.mem.Log(), before)
}

func TestADeclarationOfABoxThatWasRetiredSinceIsTheAnswer(t *testing.T) {
	d := deploy(t)
	evidence, err := d.DeclareLost(t.Context(), loss())
	require.NoError(t, err)
	d.become(t, "box-1", roster.Retired)
	again, err := d.DeclareLost(t.Context(), loss())
	require.NoError(t, err)
	require.Equal(t, evidence, again)
}

func TestADeclarationThatCannotBeReadIsNeverTakenForNone(t *testing.T) {
	d := deploy(t)
	d.become(t, "box-1", roster.Quarantined)
	key := termfence.DeclarationKey(d.entry(t, "box-1").Enrollment)
	d.mem.Inject(memstore.Once(memstore.OpGet, key, memstore.Lose))
	before := len(d.mem.Log())
	_, err := d.DeclareLost(t.Context(), loss())
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.Len(t, d.mem.Log(), before)

	_, err = d.mem.Put(t.Context(), key, []byte("{}\n"), objstore.IfAbsent())
	require.NoError(t, err)
	_, err = d.DeclareLost(t.Context(), loss())
	require.ErrorIs(t, err, termfence.ErrUnverified)
	box, err := d.Box(t.Context(), "box-1")
	require.NoError(t, err)
	require.Contains(t, box.Status, "its declaration cannot be read")
}

func TestDisksAreDestroyedOnlyOfABoxThatIsGone(t *testing.T) {
	d := deploy(t)
	destruction := console.Destruction{Ref: "box-1", Who: "Ana", Why: "its rack burned", How: "shredded", Confirm: "box-1"}
	before := len(d.mem.Log())
	for _, spoil := range []func(*console.Destruction){
		func(*console.Destruction) {},
		func(d *console.Destruction) { d.Confirm = "box-2" },
		func(d *console.Destruction) { d.How = "" },
		func(d *console.Destruction) { d.Ref, d.Confirm = "box-2", "box-2" },
	} {
		bad := destruction
		spoil(&bad)
		_, err := d.Discharge(t.Context(), bad)
		var refusal *console.Refusal
		require.ErrorAs(t, err, &refusal)
		require.Len(t, d.mem.Log(), before)
	}
	_, err := d.DeclareLost(t.Context(), loss())
	require.NoError(t, err)
	d.mem.Inject(memstore.Once(memstore.OpPut, "control/destructions/", memstore.Lose))
	destroyed, err := d.Discharge(t.Context(), destruction)
	require.NoError(t, err)
	require.Equal(t, "box-1", destroyed.Box())
	again, err := d.Discharge(t.Context(), destruction)
	require.NoError(t, err)
	require.Equal(t, destroyed, again)
}
