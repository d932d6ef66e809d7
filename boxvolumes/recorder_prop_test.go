package boxvolumes_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// box is the model of a box: what is attached to it, and what its worker was
// shown of that.
type box struct {
	store    *memstore.Store
	recorder *boxvolumes.Recorder

	now     time.Time
	state   string
	volumes map[string]boxvolumes.Volume
	next    int // number of the next volume

	was   map[time.Time]boxvolumes.Observation // all that was shown
	shown map[string]bool                      // ids that were recorded, or that a worker saw that recorded later
	fresh map[string]bool                      // ids that this worker saw and has not recorded
	lost  string                               // a volume that was shown and then was missing, or whose flag was off
}

func newBox() *box {
	s := memstore.New()
	return &box{store: s, recorder: &boxvolumes.Recorder{Store: s}, now: enrolled, state: "running", next: 2,
		volumes: map[string]boxvolumes.Volume{"vol-1": volume("vol-1")}, was: map[time.Time]boxvolumes.Observation{},
		shown: map[string]bool{}, fresh: map[string]bool{}}
}

// look is one describe. What was shown once must be there ever after, and go
// with the instance.
func (b *box) look() error {
	o := in(b.state, running())
	for _, v := range b.volumes {
		o.Volumes = append(o.Volumes, v)
	}
	b.was[b.now.UTC()] = o
	for id := range b.volumes {
		b.fresh[id] = true
	}
	if _, err := b.recorder.Saw(context.Background(), shop, o, b.now); err != nil {
		return err
	}
	for id := range b.fresh {
		b.shown[id] = true
	}
	clear(b.fresh)
	for id := range b.shown {
		if v, there := b.volumes[id]; !there || !v.DeleteOnTermination {
			b.lost = id
		}
	}
	return nil
}

// restart is another worker process: what the old one did not record is gone
// with it.
func (b *box) restart() {
	b.recorder = &boxvolumes.Recorder{Store: b.store}
	clear(b.fresh)
}

// TestABoxIsDischargedOnlyIfEveryVolumeThatWasSeenGoesWithIt leads a random life
// of a box through the recorder: volumes and flags change, workers restart, the
// store fails, and nobody looks for a while.
func TestABoxIsDischargedOnlyIfEveryVolumeThatWasSeenGoesWithIt(t *testing.T) {
	discharged, lives := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		b := newBox()
		b.now = b.now.Add(rapid.SampledFrom([]time.Duration{0, time.Minute, time.Minute, time.Hour, time.Hour + 1}).Draw(t, "seen after"))
		id := func() string { return rapid.SampledFrom(b.ids()).Draw(t, "volume") }
		look := func(t *rapid.T) {
			b.now = b.now.Add(rapid.SampledFrom([]time.Duration{1, 30 * time.Second, 40 * time.Minute, 3 * time.Hour}).Draw(t, "later"))
			_ = b.look() // what failed is tried on the next sight
		}
		look(t)
		t.Repeat(map[string]func(*rapid.T){
			"look":    look,
			"look on": look,
			"attach": func(t *rapid.T) {
				v := volume(fmt.Sprint("vol-", b.next))
				b.volumes[v.ID], b.next = v, b.next+1
			},
			"detach": func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "seldom") == 0 {
					delete(b.volumes, id())
				}
			},
			"flip": func(t *rapid.T) {
				if v, ok := b.volumes[id()]; ok && rapid.IntRange(0, 5).Draw(t, "seldom") == 0 {
					v.DeleteOnTermination = !v.DeleteOnTermination
					b.volumes[v.ID] = v
				}
			},
			"state": func(t *rapid.T) {
				b.state = rapid.SampledFrom([]string{"running", "stopping", "stopped", "pending", "shutting-down"}).Draw(t, "state")
			},
			"restart": func(*rapid.T) { b.restart() },
			"fail": func(t *rapid.T) {
				op := rapid.SampledFrom([]memstore.Op{memstore.OpPut, memstore.OpPut, memstore.OpGet, memstore.OpList}).Draw(t, "op")
				fault := rapid.SampledFrom([]memstore.Fault{memstore.Lose, memstore.LoseAnswer, memstore.Hold, memstore.Replay, memstore.Refuse}).Draw(t, "fault")
				b.store.Inject(memstore.Once(op, "control/box-volumes/", fault))
			},
			"land": func(*rapid.T) {
				for _, h := range b.store.Held() {
					_, _ = h.Deliver()
				}
			},
		})
		b.store.Inject(nil)
		end := b.now.Add(rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour}).Draw(t, "terminated after"))
		lives++
		if b.judge(t, end) {
			discharged++
		}
	})
	require.Greater(t, discharged, lives/50, "the property says something")
}

func (b *box) ids() []string {
	ids := []string{"vol-1"}
	for i := 2; i < b.next; i++ {
		ids = append(ids, fmt.Sprint("vol-", i))
	}
	return ids
}

// judge reads the verdict, and holds it and every record to the model.
func (b *box) judge(t *rapid.T, end time.Time) bool {
	records, err := boxvolumes.List(context.Background(), b.store, "e-1")
	require.NoError(t, err)
	for _, r := range records {
		o, ok := b.was[r.ObservedAt]
		require.True(t, ok, "a record of a time at which nobody looked: %s", r.ObservedAt)
		require.Equal(t, o.State, r.State)
		require.ElementsMatch(t, o.Volumes, r.Volumes)
		require.True(t, slices.IsSortedFunc(r.Volumes, func(a, b boxvolumes.Volume) int { return strings.Compare(a.ID, b.ID) }))
	}
	v, err := boxvolumes.Read(context.Background(), b.store, shop, end)
	require.NoError(t, err)
	if v.Discharged() {
		require.Empty(t, b.lost, "it was shown, and is not there or does not go with the instance")
		first, newest := records[0].ObservedAt, records[len(records)-1].ObservedAt
		require.LessOrEqual(t, first.Sub(enrolled), time.Hour)
		require.LessOrEqual(t, end.Sub(newest), 2*time.Hour)
	}
	return v.Discharged()
}

// content is the verdict over records whatever their span: about what they say.
func content(t *rapid.T, s *memstore.Store) (fine bool, n int) {
	records, err := boxvolumes.List(context.Background(), s, "e-1")
	require.NoError(t, err)
	if len(records) == 0 {
		return true, 0
	}
	v := boxvolumes.Discharge(records, shop, records[0].ObservedAt, records[len(records)-1].ObservedAt)
	return v.Discharged(), len(records)
}

// TestTwoWorkersThatRecordAtOnceAreNoLessStrictThanEither has two workers record
// one box, each in the middle of the other's requests, with clocks that differ.
// Whatever speaks against a discharge in what one of them would have recorded
// alone also speaks against it in what both record.
func TestTwoWorkersThatRecordAtOnceAreNoLessStrictThanEither(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shared := memstore.New()
		now, present := enrolled, map[string]boxvolumes.Volume{"vol-1": volume("vol-1")}
		var workers [2]struct {
			shared, alone *boxvolumes.Recorder
			store         *memstore.Store
			skew          time.Duration
		}
		for i := range workers {
			w := &workers[i]
			w.store = memstore.New()
			w.shared, w.alone = &boxvolumes.Recorder{Store: shared}, &boxvolumes.Recorder{Store: w.store}
			w.skew = rapid.SampledFrom([]time.Duration{0, 0, time.Second, -time.Minute}).Draw(t, "skew")
		}
		saw := func(i int) {
			w, o := &workers[i], running()
			for _, v := range present {
				o.Volumes = append(o.Volumes, v)
			}
			at := now.Add(w.skew)
			if _, err := w.shared.Saw(context.Background(), shop, o, at); err == nil {
				_, err = w.alone.Saw(context.Background(), shop, o, at)
				require.NoError(t, err)
			}
		}
		id := rapid.SampledFrom([]string{"vol-1", "vol-2", "vol-3"})
		t.Repeat(map[string]func(*rapid.T){
			"":    func(*rapid.T) { now = now.Add(time.Microsecond) }, // no worker looks twice at one time
			"one": func(t *rapid.T) { saw(rapid.IntRange(0, 1).Draw(t, "who")) },
			"later": func(t *rapid.T) {
				now = now.Add(rapid.SampledFrom([]time.Duration{1, time.Minute, time.Hour}).Draw(t, "by"))
			},
			"both": func(t *rapid.T) {
				who, after := rapid.IntRange(0, 1).Draw(t, "who"), rapid.IntRange(0, 3).Draw(t, "requests before the other")
				shared.Inject(func(memstore.Request) memstore.Fault {
					if after--; after == -1 {
						saw(1 - who)
					}
					return memstore.None
				})
				saw(who)
				shared.Inject(nil)
			},
			"restart": func(t *rapid.T) {
				w := &workers[rapid.IntRange(0, 1).Draw(t, "who")]
				w.shared, w.alone = &boxvolumes.Recorder{Store: shared}, &boxvolumes.Recorder{Store: w.store}
			},
			"attach": func(t *rapid.T) { v := volume(id.Draw(t, "volume")); present[v.ID] = v },
			"detach": func(t *rapid.T) { delete(present, id.Draw(t, "volume")) },
			"flip": func(t *rapid.T) {
				if v, ok := present[id.Draw(t, "volume")]; ok {
					v.DeleteOnTermination = !v.DeleteOnTermination
					present[v.ID] = v
				}
			},
		})
		fine, _ := content(t, shared)
		for i := range workers {
			alone, n := content(t, workers[i].store)
			require.True(t, !fine || alone, "worker %d alone refuses by its %d records", i, n)
		}
	})
}
