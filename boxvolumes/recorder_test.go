package boxvolumes_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

// running is what the cloud says of shop while it runs.
func running(volumes ...boxvolumes.Volume) boxvolumes.Observation {
	return boxvolumes.Observation{Found: true, InstanceID: "i-shop", Account: "123456789012", Region: "eu-west-1", State: "running",
		Volumes: volumes}
}

func in(state string, o boxvolumes.Observation) boxvolumes.Observation {
	o.State = state
	return o
}

// saw has a recorder see something so long after the enrollment.
func saw(t *testing.T, r *boxvolumes.Recorder, after time.Duration, o boxvolumes.Observation) []string {
	t.Helper()
	outlive, err := r.Saw(t.Context(), shop, o, enrolled.Add(after))
	require.NoError(t, err)
	return outlive
}

func stored(t *testing.T, s objstore.Store) []boxvolumes.Record {
	t.Helper()
	records, err := boxvolumes.List(t.Context(), s, "e-1")
	require.NoError(t, err)
	return records
}

func TestTheFirstSightOfAnEnrollmentIsRecorded(t *testing.T) {
	s := memstore.New()
	r := &boxvolumes.Recorder{Store: s}
	first, second := volume("vol-1"), volume("vol-2")
	first.Device, second.Device = second.Device, first.Device
	require.Empty(t, saw(t, r, time.Minute, running(second, first)))
	require.Equal(t, map[memstore.Op]int{memstore.OpList: 1, memstore.OpPut: 1}, s.Requests())
	require.Equal(t, []boxvolumes.Record{seen(time.Minute, first, second)}, stored(t, s), "by volume id")
}

// Each changes the second observation in one way alone.
func TestWhatChangesIsRecorded(t *testing.T) {
	for name, change := range map[string]func(*boxvolumes.Observation){
		"a volume more":     func(o *boxvolumes.Observation) { o.Volumes = append(o.Volumes, volume("vol-2")) },
		"another volume":    func(o *boxvolumes.Observation) { o.Volumes[0].ID = "vol-2" },
		"another device":    func(o *boxvolumes.Observation) { o.Volumes[0].Device = "/dev/x" },
		"another status":    func(o *boxvolumes.Observation) { o.Volumes[0].Status = "detaching" },
		"another flag":      func(o *boxvolumes.Observation) { o.Volumes[0].DeleteOnTermination = false },
		"no volume":         func(o *boxvolumes.Observation) { o.Volumes = nil },
		"stopping":          func(o *boxvolumes.Observation) { o.State = "stopping" },
		"stopped":           func(o *boxvolumes.Observation) { o.State = "stopped" },
		"pending":           func(o *boxvolumes.Observation) { o.State = "pending" },
		"it is going ahead": func(o *boxvolumes.Observation) { o.State = "shutting-down" },
	} {
		t.Run(name, func(t *testing.T) {
			s := memstore.New()
			r := &boxvolumes.Recorder{Store: s}
			saw(t, r, 0, running(volume("vol-1")))
			next := running(volume("vol-1"))
			change(&next)
			saw(t, r, 30*time.Second, next)
			saw(t, r, time.Minute, next)
			records := stored(t, s)
			require.Len(t, records, 2)
			require.Equal(t, next.State, records[1].State)
			require.Equal(t, next.Volumes, records[1].Volumes)
			require.Equal(t, enrolled.Add(30*time.Second), records[1].ObservedAt)
		})
	}
}

func TestWhatDoesNotChangeIsRecordedWithinTheHour(t *testing.T) {
	s := memstore.New()
	r := &boxvolumes.Recorder{Store: s}
	for at := time.Duration(0); at < 10*time.Hour; at += 30 * time.Second {
		saw(t, r, at, running(volume("vol-2"), volume("vol-1")))
	}
	records := stored(t, s)
	for i := 1; i < len(records); i++ {
		gap := records[i].ObservedAt.Sub(records[i-1].ObservedAt)
		require.Greater(t, gap, 50*time.Minute)
		require.LessOrEqual(t, gap, time.Hour)
	}
	require.Len(t, records, 11)
	require.Equal(t, 11, s.Requests()[memstore.OpPut])
}

// A newest record of a clock that was ahead must not silence the others.
func TestARecordFromTheFutureIsNoReasonToBeSilent(t *testing.T) {
	s := memstore.New()
	store(t, s, seen(1000*time.Hour, volume("vol-1")))
	saw(t, &boxvolumes.Recorder{Store: s}, 0, running(volume("vol-1")))
	require.Len(t, stored(t, s), 2)
}

// Each differs from what is recorded in one way alone.
func TestWhatIsNotRecordableWritesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*boxvolumes.Observation)
		entry func(*roster.Box)
	}{
		"it is not there":             {spoil: func(o *boxvolumes.Observation) { o.Found = false }},
		"another instance":            {spoil: func(o *boxvolumes.Observation) { o.InstanceID = "i-other" }},
		"no instance":                 {spoil: func(o *boxvolumes.Observation) { o.InstanceID = "" }},
		"another owner's":             {spoil: func(o *boxvolumes.Observation) { o.Account = "999999999999" }},
		"another cloud region's":      {spoil: func(o *boxvolumes.Observation) { o.Region = "eu-central-1" }},
		"terminated with its root":    {spoil: func(o *boxvolumes.Observation) { o.State = "terminated" }},
		"a state that nobody knows":   {spoil: func(o *boxvolumes.Observation) { o.State = "Running" }},
		"no state":                    {spoil: func(o *boxvolumes.Observation) { o.State = "" }},
		"nothing is shown yet":        {spoil: func(o *boxvolumes.Observation) { o.Volumes = nil }},
		"an entry without a provider": {entry: func(b *roster.Box) { b.Cloud.Provider = "" }},
		"an entry without a region": {entry: func(b *roster.Box) { b.Cloud.Region = "" },
			spoil: func(o *boxvolumes.Observation) { o.Region = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			s, o, entry := memstore.New(), running(volume("vol-1")), shop
			if c.spoil != nil {
				c.spoil(&o)
			}
			if c.entry != nil {
				c.entry(&entry)
			}
			_, err := (&boxvolumes.Recorder{Store: s}).Saw(t.Context(), entry, o, enrolled)
			require.NoError(t, err)
			require.Empty(t, s.Log())
		})
	}
}

func TestABadEnrollmentIsAnErrorBeforeAnyRequest(t *testing.T) {
	s, entry := memstore.New(), shop
	entry.Enrollment = ".."
	_, err := (&boxvolumes.Recorder{Store: s}).Saw(t.Context(), entry, running(volume("vol-1")), enrolled)
	require.ErrorIs(t, err, roster.ErrInvalid)
	require.Empty(t, s.Requests())
}

func TestTheVolumesThatOutliveTheInstanceAreToldAndNamed(t *testing.T) {
	s := memstore.New()
	r := &boxvolumes.Recorder{Store: s}
	kept := volume("vol-3")
	kept.DeleteOnTermination = false
	require.Empty(t, saw(t, r, 0, running(volume("vol-1"), volume("vol-2"))))
	require.Equal(t, []string{"vol-3"}, saw(t, r, 1, running(volume("vol-1"), volume("vol-2"), kept)))
	require.Equal(t, []string{"vol-2", "vol-3"}, saw(t, r, 2, running(volume("vol-1"), kept)))
	require.Equal(t, []string{"vol-2"}, saw(t, r, 3, running(volume("vol-1"), volume("vol-3"))))
	require.Equal(t, []string{"vol-2"}, saw(t, r, 4, running(volume("vol-1"), volume("vol-3"))), "it is still so")
	require.Equal(t, []string{"vol-2"}, saw(t, r, 5, boxvolumes.Observation{}), "whatever the cloud shows")
	var removed [][]string
	for _, rec := range stored(t, s) {
		removed = append(removed, rec.RemovedVolumes)
	}
	require.Equal(t, [][]string{nil, nil, {"vol-2"}, nil}, removed)
}

func TestARestartedWorkerWritesNothingAnew(t *testing.T) {
	s := memstore.New()
	saw(t, &boxvolumes.Recorder{Store: s}, 0, running(volume("vol-1")))
	saw(t, &boxvolumes.Recorder{Store: s}, 40*time.Minute, in("stopping", running(volume("vol-1"))))
	before := s.Requests()
	r := &boxvolumes.Recorder{Store: s}
	for after := 41 * time.Minute; after < 90*time.Minute; after += time.Minute {
		saw(t, r, after, in("stopping", running(volume("vol-1"))))
	}
	require.Equal(t, before[memstore.OpPut], s.Requests()[memstore.OpPut])
	require.Equal(t, before[memstore.OpList]+1, s.Requests()[memstore.OpList])
	require.Equal(t, before[memstore.OpGet]+1, s.Requests()[memstore.OpGet], "the newest alone")
	saw(t, r, 95*time.Minute, in("stopping", running(volume("vol-1"))))
	require.Len(t, stored(t, s), 3)
}

func TestARemovalAcrossARestartIsSeen(t *testing.T) {
	s := memstore.New()
	saw(t, &boxvolumes.Recorder{Store: s}, 0, running(volume("vol-1"), volume("vol-2")))
	require.Equal(t, []string{"vol-2"}, saw(t, &boxvolumes.Recorder{Store: s}, time.Minute, running(volume("vol-1"))))
	require.Equal(t, []string{"vol-2"}, stored(t, s)[1].RemovedVolumes)
}

func TestAFailureIsTriedAgainOnTheNextSight(t *testing.T) {
	prefix := "control/box-volumes/e-1/"
	for name, fault := range map[string]struct {
		op    memstore.Op
		fault memstore.Fault
	}{
		"the listing is lost":    {memstore.OpList, memstore.Lose},
		"the listing is torn":    {memstore.OpList, memstore.Torn},
		"the newest is not read": {memstore.OpGet, memstore.Lose},
		"the write is lost":      {memstore.OpPut, memstore.Lose},
		"the write is held":      {memstore.OpPut, memstore.Hold},
	} {
		t.Run(name, func(t *testing.T) {
			s := memstore.New()
			store(t, s, seen(0, volume("vol-1")))
			r := &boxvolumes.Recorder{Store: s}
			s.Inject(memstore.Once(fault.op, prefix, fault.fault))
			o := running(volume("vol-1"), volume("vol-2"))
			_, err := r.Saw(t.Context(), shop, o, enrolled.Add(time.Second))
			require.ErrorIs(t, err, memstore.ErrInjected)
			require.Len(t, stored(t, s), 1)
			saw(t, r, time.Minute, o)
			require.Len(t, stored(t, s), 2)
		})
	}
}

// What was seen while nothing could be written is missed when it goes.
func TestAVolumeThatWasSeenBetweenTwoRecordsIsMissed(t *testing.T) {
	s := memstore.New()
	r := &boxvolumes.Recorder{Store: s}
	saw(t, r, 0, running(volume("vol-1")))
	s.Inject(memstore.Once(memstore.OpPut, "control/box-volumes/", memstore.Lose))
	_, err := r.Saw(t.Context(), shop, running(volume("vol-1"), volume("vol-2")), enrolled.Add(time.Minute))
	require.Error(t, err)
	require.Equal(t, []string{"vol-2"}, saw(t, r, 2*time.Minute, running(volume("vol-1"))))
	require.Equal(t, []string{"vol-2"}, stored(t, s)[1].RemovedVolumes)
}

// An instance that shows nothing any more showed something before.
func TestAFirstRecordMayBeOfWhatIsMissing(t *testing.T) {
	s := memstore.New()
	r := &boxvolumes.Recorder{Store: s}
	s.Inject(memstore.Once(memstore.OpPut, "control/box-volumes/", memstore.Lose))
	_, err := r.Saw(t.Context(), shop, running(volume("vol-1")), enrolled)
	require.Error(t, err)
	require.Equal(t, []string{"vol-1"}, saw(t, r, time.Minute, running()))
	require.Equal(t, []boxvolumes.Record{removed(seen(time.Minute), "vol-1")}, stored(t, s))
}

func TestTheVolumesThatAreToldAreBounded(t *testing.T) {
	r := &boxvolumes.Recorder{Store: memstore.New()}
	for i := range 300 {
		saw(t, r, time.Duration(i), running(volume(fmt.Sprint("vol-", i))))
	}
	require.Len(t, saw(t, r, 300, running(volume("vol-root"))), 256)
}

func TestANewestRecordThatDoesNotVerifyIsAnError(t *testing.T) {
	s := memstore.New()
	plant(t, s, boxvolumes.Key("e-1", enrolled), []byte("{}"))
	_, err := (&boxvolumes.Recorder{Store: s}).Saw(t.Context(), shop, running(volume("vol-1")), enrolled.Add(time.Minute))
	require.ErrorIs(t, err, boxvolumes.ErrUnverified)
	require.Len(t, s.Log(), 1)
}

func TestTwoRecordersAtOneNanosecond(t *testing.T) {
	two, one := running(volume("vol-1"), volume("vol-2")), running(volume("vol-1"))
	for _, c := range []struct {
		name          string
		first, second boxvolumes.Observation
		want          []boxvolumes.Record
	}{
		{"the same", one, one, []boxvolumes.Record{seen(time.Hour, volume("vol-1"))}},
		{"more", one, two, []boxvolumes.Record{seen(time.Hour, volume("vol-1")), seen(time.Hour+1, volume("vol-1"), volume("vol-2"))}},
		{"less", two, one, []boxvolumes.Record{seen(time.Hour, volume("vol-1"), volume("vol-2")), removed(seen(time.Hour+1, volume("vol-1")), "vol-2")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memstore.New()
			store(t, s, seen(0, volume("vol-1")))
			a, b := &boxvolumes.Recorder{Store: s}, &boxvolumes.Recorder{Store: s}
			saw(t, a, time.Minute, one)
			saw(t, b, time.Minute, one)
			saw(t, a, time.Hour, c.first)
			saw(t, b, time.Hour, c.second)
			require.Equal(t, c.want, stored(t, s)[1:])
		})
	}
}

func removed(r boxvolumes.Record, ids ...string) boxvolumes.Record {
	r.RemovedVolumes = ids
	return r
}

// What the loser of a nanosecond knew is not forgotten for what the winner knew.
func TestALostNanosecondForgetsNoVolume(t *testing.T) {
	s := memstore.New()
	r := &boxvolumes.Recorder{Store: s}
	saw(t, r, 0, running(volume("vol-1"), volume("vol-2")))
	store(t, s, seen(time.Minute, volume("vol-1")))
	saw(t, r, time.Minute, running(volume("vol-1")))
	require.Equal(t, []string{"vol-2"}, stored(t, s)[2].RemovedVolumes)
}

func TestTheSearchForAFreeNanosecondEnds(t *testing.T) {
	s := memstore.New()
	r := &boxvolumes.Recorder{Store: s}
	saw(t, r, 0, running(volume("vol-1")))
	for i := range 10 {
		store(t, s, seen(time.Minute+time.Duration(i), volume("vol-1")))
	}
	o := running(volume("vol-1"), volume("vol-2"))
	_, err := r.Saw(t.Context(), shop, o, enrolled.Add(time.Minute))
	require.ErrorIs(t, err, objstore.ErrConflict)
	require.Equal(t, 4, s.Requests()[memstore.OpPut]-10)
	saw(t, r, time.Hour, o)
}

func TestAConflictWithWhatIsNoRecordIsAnError(t *testing.T) {
	s := memstore.New()
	r := &boxvolumes.Recorder{Store: s}
	saw(t, r, 0, running(volume("vol-1")))
	plant(t, s, boxvolumes.Key("e-1", enrolled.Add(time.Hour)), []byte("x"))
	_, err := r.Saw(t.Context(), shop, running(volume("vol-1")), enrolled.Add(time.Hour))
	require.ErrorIs(t, err, boxvolumes.ErrUnverified)
}

func TestVolumesThatCannotBeWrittenAreAnError(t *testing.T) {
	s := memstore.New()
	_, err := (&boxvolumes.Recorder{Store: s}).Saw(t.Context(), shop, running(volume("\xff")), enrolled)
	require.ErrorContains(t, err, "encode record")
	require.Empty(t, s.Log())
}

// Observations of one box wait for one another: one of them makes the record.
func TestObservationsOfOneBoxAreRecordedOneAfterTheOther(t *testing.T) {
	s := memstore.New()
	r := &boxvolumes.Recorder{Store: s}
	var asking, most atomic.Int32
	s.Inject(func(memstore.Request) memstore.Fault {
		most.Store(max(most.Load(), asking.Add(1)))
		for range 100 {
			runtime.Gosched()
		}
		asking.Add(-1)
		return memstore.None
	})
	var saws sync.WaitGroup
	for i := range 16 {
		saws.Go(func() {
			_, err := r.Saw(t.Context(), shop, running(volume("vol-1")), enrolled.Add(time.Duration(i)))
			require.NoError(t, err)
		})
	}
	saws.Wait()
	require.EqualValues(t, 1, most.Load())
	require.Equal(t, map[memstore.Op]int{memstore.OpList: 1, memstore.OpPut: 1}, s.Requests())
}

// TestARecorderRemembersABoundedNumberOfBoxes: what it forgot it reads again.
func TestARecorderRemembersABoundedNumberOfBoxes(t *testing.T) {
	s := &emptyStore{}
	r := &boxvolumes.Recorder{Store: s}
	entry := shop
	for range 2 {
		for i := range 10_001 {
			entry.Enrollment = fmt.Sprint("e-", i)
			_, err := r.Saw(t.Context(), entry, running(volume("vol-1")), enrolled)
			require.NoError(t, err)
		}
	}
	require.Greater(t, s.lists, 10_001)
	require.Less(t, s.lists, 12_000)
}

// emptyStore keeps nothing.
type emptyStore struct {
	objstore.Store
	lists int
}

func (s *emptyStore) List(context.Context, string) iter.Seq2[objstore.Info, error] {
	s.lists++
	return func(func(objstore.Info, error) bool) {}
}

func (*emptyStore) Put(context.Context, string, []byte, objstore.Condition) (objstore.Info, error) {
	return objstore.Info{}, nil
}

// A store that never answers while volumes come and go fills no memory.
func TestWhatIsSeenWhileNothingIsWrittenIsBounded(t *testing.T) {
	s := memstore.New()
	r := &boxvolumes.Recorder{Store: s}
	s.Inject(func(memstore.Request) memstore.Fault { return memstore.Lose })
	for i := range 1000 {
		_, err := r.Saw(t.Context(), shop, running(volume(fmt.Sprint("vol-", i))), enrolled.Add(time.Duration(i)))
		require.Error(t, err)
	}
	s.Inject(nil)
	require.Len(t, saw(t, r, time.Hour, running(volume("vol-root"))), 256)
	require.Len(t, stored(t, s)[0].RemovedVolumes, 256)
}

func TestARecordedLifeIsDischarged(t *testing.T) {
	s := memstore.New()
	r := &boxvolumes.Recorder{Store: s}
	disks := []boxvolumes.Volume{volume("vol-1"), volume("vol-2")}
	for at := time.Duration(0); at < 5*time.Hour; at += 30 * time.Second {
		saw(t, r, at, running(disks...))
	}
	for i := range disks {
		disks[i].Status = "detaching"
	}
	saw(t, r, 5*time.Hour, in("shutting-down", running(disks...)))
	saw(t, r, 5*time.Hour+time.Minute, in("terminated", running()))
	v, err := boxvolumes.Read(t.Context(), s, shop, enrolled.Add(5*time.Hour+time.Minute))
	require.NoError(t, err)
	requireDischarged(t, v)
	require.Equal(t, "shutting-down", slices.Collect(slices.Values(stored(t, s)))[6].State)
}
