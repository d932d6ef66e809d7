package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

// edit changes a box's entry in the roster.
func edit(t *testing.T, w *Worker, ref string, change func(*roster.Box)) {
	t.Helper()
	_, err := roster.Update(t.Context(), w.control, private, w.roster, func(r *roster.Roster) error {
		b := r.Boxes[ref]
		change(&b)
		r.Boxes[ref] = b
		return nil
	})
	require.NoError(t, err)
}

func become(t *testing.T, w *Worker, ref string, s roster.State) {
	t.Helper()
	edit(t, w, ref, func(b *roster.Box) { b.State = s })
}

// declare does what an operator does after the box was quarantined.
func declare(t *testing.T, w *Worker, ref string) {
	t.Helper()
	snap, err := w.roster.Read(t.Context())
	require.NoError(t, err)
	box, _ := snap.Box(ref)
	_, err = termfence.Declare(t.Context(), w.control, w.fences, termfence.Declaration{Box: ref, Enrollment: box.Enrollment,
		Cloud: box.Cloud, Region: box.Region, Who: "Ana", Why: "its rack burned", Checked: []string{"no ping"}, Confirmation: ref,
		DeclaredAt: time.Now().UTC()})
	require.NoError(t, err)
}

// declarations counts the GETs of a box's declaration.
func declarations(s *memstore.Store, ref string) *int {
	n := new(int)
	s.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpGet && r.Key == termfence.DeclarationKey("enr-"+ref) {
			*n++
		}
		return memstore.None
	})
	return n
}

func TestTheHostsOfABoxThatIsDeclaredLostFailOver(t *testing.T) {
	w, seen, _ := region(t)
	seen.say("i-box-1", state("stopped"))
	publish(t, w, "box-2")
	become(t, w, "box-1", roster.Quarantined)
	sweep(t, w)
	require.False(t, w.gone.has("box-1"), "being quarantined is no evidence")
	turn, err := w.stepHost(t.Context(), host)
	require.NoError(t, err)
	require.True(t, turn.Done())

	declare(t, w, "box-1")
	sweep(t, w)
	turn, err = w.stepHost(t.Context(), host)
	require.NoError(t, err)
	require.Equal(t, "failing over notes.demo.example from box-1 to box-2; what follows", turn.String())
	c := claim(t, w)
	require.Equal(t, hostclaim.Relocating, c.Op.Kind)
	require.True(t, c.Op.Journal.Fences["box-1"].Declared)
}

func TestADeclarationIsLookedForOncePerSweepUntilItIsThere(t *testing.T) {
	w, _, s := region(t)
	become(t, w, "box-1", roster.Quarantined)
	active := declarations(s, "box-2")
	sweep(t, w)
	require.Zero(t, *active, "it may act, so nothing that anyone says counts")
	gets := declarations(s, "box-1")
	sweep(t, w)
	sweep(t, w)
	require.Equal(t, 2, *gets)
	declare(t, w, "box-1")
	sweep(t, w)
	require.True(t, w.gone.has("box-1"))
	require.Equal(t, 3, *gets)
	sweep(t, w)
	require.Equal(t, 3, *gets)
}

func TestARetiredBoxIsLookedUpOnce(t *testing.T) {
	w, _, s := region(t)
	become(t, w, "box-1", roster.Quarantined)
	declare(t, w, "box-1")
	become(t, w, "box-1", roster.Retired)
	become(t, w, "box-2", roster.Retired)
	gets := declarations(s, "box-2")
	sweep(t, w)
	sweep(t, w)
	require.True(t, w.gone.has("box-1"), "this worker may have started since")
	require.Equal(t, 1, *gets)
}

func TestADeclarationThatCannotBeReadIsNoEvidence(t *testing.T) {
	for _, of := range []roster.State{roster.Quarantined, roster.Retired} {
		t.Run(string(of), func(t *testing.T) {
			w, _, s := region(t)
			become(t, w, "box-1", roster.Quarantined)
			declare(t, w, "box-1")
			become(t, w, "box-1", of)
			s.Inject(memstore.Once(memstore.OpGet, termfence.DeclarationKey("enr-box-1"), memstore.Lose))
			sweep(t, w)
			require.False(t, w.gone.has("box-1"))
			sweep(t, w)
			require.True(t, w.gone.has("box-1"), "nor is it the absence of one")
		})
	}
}

func TestABrokenDeclarationKeepsNoBoxFromBeingFenced(t *testing.T) {
	w, seen, s := region(t)
	become(t, w, "box-1", roster.Quarantined)
	_, err := s.Put(t.Context(), termfence.DeclarationKey("enr-box-1"), []byte("{}\n"), objstore.IfAbsent())
	require.NoError(t, err)
	sweep(t, w)
	require.False(t, w.gone.has("box-1"))
	seen.say("i-box-1", state("terminated"))
	sweep(t, w)
	require.True(t, w.gone.fenced("box-1"))
}

func TestABoxThatWasDeclaredLostIsFencedOnceItIsTerminated(t *testing.T) {
	w, seen, _ := region(t)
	become(t, w, "box-1", roster.Quarantined)
	declare(t, w, "box-1")
	sweep(t, w)
	require.True(t, w.gone.has("box-1"))
	require.False(t, w.gone.fenced("box-1"))
	seen.say("i-box-1", state("terminated"))
	sweep(t, w)
	require.True(t, w.gone.fenced("box-1"))
	_, fenced, err := w.fences.Fenced(t.Context(), "enr-box-1")
	require.NoError(t, err)
	require.True(t, fenced)
}

func TestABoxThatNeverProvedItsCloudIsNotDescribed(t *testing.T) {
	w, seen, _ := region(t)
	_, err := roster.Update(t.Context(), w.control, private, w.roster, func(r *roster.Roster) error {
		r.Boxes["old"] = roster.Box{Enrollment: "enr-old", Region: "ie", State: roster.Quarantined}
		return nil
	})
	require.NoError(t, err)
	sweep(t, w)
	declare(t, w, "old")
	sweep(t, w)
	require.True(t, w.gone.has("old"), "but it may be declared lost")
	require.Zero(t, seen.count(""))
}

func TestABoxOfAnotherRegionIsAnotherWorkers(t *testing.T) {
	w, _, s := region(t)
	become(t, w, "box-1", roster.Quarantined)
	declare(t, w, "box-1")
	w.set.Region = "de"
	gets := declarations(s, "box-1")
	sweep(t, w)
	require.False(t, w.gone.has("box-1"))
	require.Zero(t, *gets)
}

func TestWhatIsFoundTwiceIsNewsOnce(t *testing.T) {
	var g gone
	declared, fence := fencetest.Declared(t, "box-1", "e-1", "ie", time.Now()), fencetest.Evidence(t, "box-1", "e-1", "ie", time.Now())
	require.True(t, g.put(declared))
	require.False(t, g.put(declared))
	require.True(t, g.put(fence), "a fence takes the place of a declaration")
	require.False(t, g.put(fence))
}
