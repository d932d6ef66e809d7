package hostrelocate_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// claimWrites lists the claim after each write that applied, from the first.
func (w *world) claimWrites() (list []hostclaim.Claim) {
	for _, entry := range w.control.Log() {
		if entry.Key == hostclaim.Key(host) {
			c, err := record.Decode[hostclaim.Claim](entry.Body)
			require.NoError(w.tb, err)
			list = append(list, c)
		}
	}
	return list
}

func TestAFailoverIsEightClaimWrites(t *testing.T) {
	w := newWorld(t)
	before := len(w.claimWrites())
	require.True(t, w.run(50))
	require.Equal(t, 8, len(w.claimWrites())-before)

	c := w.claim().Claim
	require.Equal(t, target.Box, c.Holder.WriterBox)
	require.True(t, c.IsLost(source.Box))
	last := c.Holder.Admissions[len(c.Holder.Admissions)-1]
	require.Equal(t, source.Box, last.WritesLost.Box)
	require.True(t, last.Published)
}

func TestTheTargetHoldsTheDatabaseTheFilesAndTheKey(t *testing.T) {
	w := newWorld(t)
	require.True(t, w.run(50))
	c := w.claim().Claim
	photo, err := os.ReadFile(filepath.Join(w.disks[target.Box].root, "files", "photo"))
	require.NoError(t, err)
	require.Equal(t, "pixels", string(photo))
	key, err := os.ReadFile(filepath.Join(w.disks[target.Box].root, "platform", "instance.key"))
	require.NoError(t, err)
	require.Equal(t, w.key, key)

	set, err := hostdb.Select(ctx, w.data, c.Holder.Location, []hostdb.Link{{Generation: c.Holder.Generation}})
	require.NoError(t, err)
	_, err = hostdb.Restore(ctx, w.data, set, filepath.Join(t.TempDir(), "restored.db"), nil)
	require.NoError(t, err)
}

// TestAnyRequestMayFailAndAnyDriverTakesOver loses each request of a failover in
// turn, before and after its effect. The drivers have no memory, so each failure
// is also a crash right there.
func TestAnyRequestMayFailAndAnyDriverTakesOver(t *testing.T) {
	for when, fault := range faults {
		for where, inData := range map[string]bool{"control": false, "data": true} {
			t.Run(when+" "+where, func(t *testing.T) {
				t.Parallel()
				everyRequest(t, newWorld, inData, fault, (*world).sound)
			})
		}
	}
}

// faults are a request that is lost before and after its effect.
var faults = map[string]memstore.Fault{"before": memstore.Lose, "after": memstore.LoseAnswer}

// everyRequest loses each request to a store in turn, in a world of its own.
func everyRequest(t *testing.T, begin func(testing.TB) *world, inData bool, fault memstore.Fault, check func(*world)) {
	for n := 1; ; n++ {
		w := begin(t)
		store := w.control
		if inData {
			store = w.data
		}
		seen := loseOne(store, n, fault)
		done := w.run(100)
		store.Inject(nil)
		require.True(t, done, "request %d: %s", n, w.claim().Claim.Op.Phase)
		check(w)
		if seen() < n {
			break
		}
	}
}

// loseOne makes the nth request of a store from here fail. The result says how
// many there were.
func loseOne(store *memstore.Store, n int, fault memstore.Fault) (seen func() int) {
	var count atomic.Int64 // objects are fetched in parallel
	store.Inject(func(memstore.Request) memstore.Fault {
		if count.Add(1) == int64(n) {
			return fault
		}
		return memstore.None
	})
	return func() int { return int(count.Load()) }
}

// sound checks what must hold however the failover came about.
func (w *world) sound() {
	opened := map[string]int{}
	for _, r := range w.claim().Claim.Holder.Admissions {
		opened[r.Generation]++
		require.Equal(w.tb, 1, opened[r.Generation])
	}
	list := w.claim().Claim.Holder.Admissions
	require.Nil(w.tb, list[0].WritesLost)
	for _, r := range list[1:] {
		require.NotNil(w.tb, r.WritesLost)
	}
}

func TestAPinWaitsForTheFencesWindow(t *testing.T) {
	w := newWorld(t)
	o := w.claim()
	_, err := w.worker().StartFailover(ctx, o, hostclaim.Gone{Evidence: w.fence}, target.Box)
	require.NoError(t, err)
	_, err = w.participant().Step(ctx, w.claim())
	require.NoError(t, err)
	turn, err := w.worker().Step(ctx, w.claim())
	require.NoError(t, err)
	require.NotEmpty(t, turn.Did)
	turn, err = w.worker().Step(ctx, w.claim())
	require.NoError(t, err)
	require.Equal(t, "pinning notes.demo.example: waiting 1s for the fence's window", turn.String())
	require.Equal(t, time.Second, turn.Again, "nobody looks before it is over")
	turn, err = w.participant().Step(ctx, w.claim())
	require.NoError(t, err)
	require.Equal(t, "pinning notes.demo.example: waiting 1s for the fence's window", turn.String())
	require.Equal(t, time.Second, turn.Again)
	w.now = w.now.Add(time.Second)
	turn, err = w.worker().Step(ctx, w.claim())
	require.NoError(t, err)
	require.NotEmpty(t, turn.Did)
}

// TestAnotherWorkersFenceWaitsForTheSkewToo: its time is of another clock.
func TestAnotherWorkersFenceWaitsForTheSkewToo(t *testing.T) {
	w := newWorld(t)
	_, err := w.worker().StartFailover(ctx, w.claim(), hostclaim.Gone{Evidence: w.fence}, target.Box)
	require.NoError(t, err)
	_, err = w.participant().Step(ctx, w.claim())
	require.NoError(t, err)
	_, err = w.worker().Step(ctx, w.claim())
	require.NoError(t, err)
	other := w.worker()
	other.Self.Enrollment = "enr-8"
	for _, wait := range []string{"1s", "30s"} {
		turn, err := other.Step(ctx, w.claim())
		require.NoError(t, err)
		require.Equal(t, "pinning notes.demo.example: waiting "+wait+" for the fence's window", turn.String())
		w.now = w.now.Add(time.Second)
	}
	w.now = w.now.Add(29 * time.Second)
	w.control.Inject(func(r memstore.Request) memstore.Fault {
		require.NotContains(t, r.Key, "control/box-fences/", "whose clock it was never changes")
		return memstore.None
	})
	turn, err := other.Step(ctx, w.claim())
	require.NoError(t, err)
	require.NotEmpty(t, turn.Did)
}

// TestAHostOfADeclaredBoxIsServedElsewhere: the declaration's time is of an
// operator's clock.
func TestAHostOfADeclaredBoxIsServedElsewhere(t *testing.T) {
	w := newWorld(t)
	w.fence = w.declare()
	_, err := w.worker().StartFailover(ctx, w.claim(), hostclaim.Gone{Evidence: w.fence}, target.Box)
	require.NoError(t, err)
	_, err = w.participant().Step(ctx, w.claim())
	require.NoError(t, err)
	_, err = w.worker().Step(ctx, w.claim())
	require.NoError(t, err)
	for _, wait := range []string{"1s", "30s"} {
		turn, err := w.worker().Step(ctx, w.claim())
		require.NoError(t, err)
		require.Equal(t, "pinning notes.demo.example: waiting "+wait+" for the fence's window", turn.String())
		w.now = w.now.Add(time.Second)
	}
	w.now = w.now.Add(29 * time.Second)
	require.True(t, w.run(50))
	require.Equal(t, target.Box, w.claim().Claim.Op.Exec)
	require.Equal(t, "unknown", w.claim().Claim.EvidenceRefs[0].Timers)
}

// TestALateUploadAfterThePinChangesNothing: what the dead writer sent before it
// died and lands now belongs to nobody.
func TestALateUploadAfterThePinChangesNothing(t *testing.T) {
	w := newWorld(t)
	require.False(t, w.run(6), "stop once the host was handed over")
	c := w.claim().Claim
	require.Equal(t, hostclaim.Installing, c.Op.Phase)
	late := c.Holder.Location + "/db/g-1/ltx/0000/00000000000000ff-00000000000000ff.ltx"
	_, err := w.data.Put(ctx, late, []byte("late"), objstore.IfAbsent())
	require.NoError(t, err)
	manifest := hostfiles.ManifestKey(c.Holder.Location, "g-1")
	was, err := w.data.Get(ctx, manifest)
	require.NoError(t, err)
	_, err = w.data.Put(ctx, manifest, []byte("late"), objstore.IfMatch(was.ETag))
	require.NoError(t, err)
	require.True(t, w.run(50))
}

func TestAWorkerThatIsNotEnrolledStartsNothing(t *testing.T) {
	w := newWorld(t)
	worker := w.worker()
	worker.Self.Enrollment = "enr-0"
	_, err := worker.StartFailover(ctx, w.claim(), hostclaim.Gone{Evidence: w.fence}, target.Box)
	require.ErrorContains(t, err, "worker box-9")
	_, err = w.worker().StartFailover(ctx, w.claim(), hostclaim.Gone{Evidence: w.fence}, "box-7")
	require.ErrorContains(t, err, "not an active box")
	require.Equal(t, hostclaim.Serving, w.claim().Claim.Op.Kind)
}

func TestAHostWithoutItsKeyIsNotPinned(t *testing.T) {
	w := newWorld(t)
	c := w.claim().Claim
	// A manifest of the newest generation that holds no instance key.
	manifest := hostfiles.ManifestKey(c.Holder.Location, "g-1")
	was, err := w.data.Get(ctx, manifest)
	require.NoError(t, err)
	m, err := record.Decode[hostfiles.Manifest](was.Body)
	require.NoError(t, err)
	kept := m.Changes[:0]
	for _, e := range m.Changes {
		if !strings.HasPrefix(e.Path, "platform/") {
			kept = append(kept, e)
		}
	}
	m.Changes = kept
	body, err := record.Encode(m)
	require.NoError(t, err)
	_, err = w.data.Put(ctx, manifest, body, objstore.IfMatch(was.ETag))
	require.NoError(t, err)

	require.False(t, w.run(20))
	require.Equal(t, hostclaim.PinUncovered, w.claim().Claim.Op.Journal.Stuck.Reason)
}

func TestPinIsStoredAsItStands(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	recordtest.Golden(t, "pin", hostrelocate.Pin{V: 1, Host: host, Op: "op-2", Gen: 9, ListedAt: at, By: driver,
		Set:   hostdb.RecoverySet{Generation: "g-1", MaxTXID: 41, Objects: []hostdb.ObjectRef{{Key: "k", ETag: `"e"`, Size: 7}}},
		Files: hostrelocate.FilesPin{Generation: "g-1", Key: "m", Seq: 3, SHA256: "aa", Retained: "r"}})
}

func FuzzDecodePin(f *testing.F) { recordtest.Fuzz(f, hostrelocate.Pin{V: 1, Host: host}) }
