package worker

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

const volumesPrefix = "control/box-volumes/"

// withDisks is a cloud that tells of disks too: each instance has its root.
type withDisks struct{ *cloud }

func (c withDisks) Describe(ctx context.Context, box boxid.Cloud) (termfence.Observation, boxvolumes.Observation, error) {
	seen, _, err := c.cloud.Describe(ctx, box)
	return seen, disksOf(box, seen.State, root(box.InstanceID)), err
}

func root(instance string) boxvolumes.Volume {
	return boxvolumes.Volume{ID: "vol-" + instance, Device: "/dev/xvda", Status: "attached", DeleteOnTermination: true}
}

func disksOf(box boxid.Cloud, state string, volumes ...boxvolumes.Volume) boxvolumes.Observation {
	return boxvolumes.Observation{Found: true, InstanceID: box.InstanceID, Account: box.Account, Region: box.Region, State: state, Volumes: volumes}
}

// noDisks is a store in which nothing about disks can be read or written.
type noDisks struct {
	hostrelocate.Store
	fail func(context.Context) error
}

func (s noDisks) Get(ctx context.Context, key string) (objstore.Object, error) {
	if strings.HasPrefix(key, volumesPrefix) {
		return objstore.Object{}, s.fail(ctx)
	}
	return s.Store.Get(ctx, key)
}

func (s noDisks) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	if strings.HasPrefix(key, volumesPrefix) {
		return objstore.Info{}, s.fail(ctx)
	}
	return s.Store.Put(ctx, key, body, cond)
}

func (s noDisks) List(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	if strings.HasPrefix(prefix, volumesPrefix) {
		return func(yield func(objstore.Info, error) bool) { yield(objstore.Info{}, s.fail(ctx)) }
	}
	return s.Store.List(ctx, prefix)
}

// driveOn drives a worker on a store, in a cloud that tells of disks.
func driveOn(sc *scene, store hostrelocate.Store) *Worker {
	w := newWorker(sc.t, store, "worker", sc.cloud)
	w.cloud.Instances, w.set.Parallel, w.set.Send = withDisks{sc.cloud}, 16, sc.crew.send
	ctx, cancel := context.WithCancel(sc.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Drive(ctx) }()
	sc.stops = append(sc.stops, func() {
		cancel()
		require.NoError(sc.t, <-ended)
	})
	return w
}

// TestARecorderThatCannotWriteOnlyAlerts: the worker starts, fences a box that
// is gone, and has its hosts moved and recovered.
func TestARecorderThatCannotWriteOnlyAlerts(t *testing.T) {
	for name, fail := range map[string]func(context.Context) error{
		"refused": func(context.Context) error { return errors.New("access denied") },
		"hangs":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"works":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			play(t, 10, []string{"box-1", "box-2", "box-3"}, func(sc *scene) {
				var store hostrelocate.Store = sc.store
				if fail != nil {
					store = noDisks{Store: sc.store, fail: fail}
				}
				w := driveOn(sc, store)
				time.Sleep(2 * time.Minute)
				for _, ref := range []string{"box-1", "box-2", "box-3"} {
					require.Equal(sc.t, fail != nil, w.alerts.Raised(alert.Recorder, ref), ref)
				}
				sc.end("box-1")
				require.Less(sc.t, sc.away(5*time.Minute, "box-1"), time.Minute)
				require.True(sc.t, w.gone.fenced("box-1"))
				require.EqualValues(sc.t, 10, w.gauges.moved.Load())
				require.Equal(sc.t, fail != nil, w.alerts.Raised(alert.Recorder, "box-2"))
				time.Sleep(time.Minute)
				require.False(sc.t, w.alerts.Raised(alert.Recorder, "box-1"), "it is gone")

				records, err := boxvolumes.List(sc.t.Context(), sc.store, "enr-box-1")
				require.NoError(sc.t, err)
				require.Equal(sc.t, fail == nil, len(records) == 1, "the sweep is where disks are seen")
			})
		})
	}
}

// recording runs a worker's recorder alone, and tells it what is seen of box-1.
func recording(t *testing.T, act func(t *testing.T, w *Worker, s *memstore.Store, see func(state string, volumes ...boxvolumes.Volume))) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		enroll(t, s)
		w := newWorker(t, s, "worker", newCloud())
		snap, err := w.roster.Read(t.Context())
		require.NoError(t, err)
		box, _ := snap.Box("box-1")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.recordLoop(ctx) }()
		act(t, w, s, func(state string, volumes ...boxvolumes.Volume) {
			time.Sleep(time.Second)
			w.recordVolumes(ctx, box, disksOf(box.Cloud, state, volumes...))
			synctest.Wait()
		})
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestAVolumeThatOutlivesItsBoxIsTold(t *testing.T) {
	recording(t, func(t *testing.T, w *Worker, _ *memstore.Store, see func(string, ...boxvolumes.Volume)) {
		raised := func() bool { return w.alerts.Raised(alert.Volume, "box-1") }
		kept := boxvolumes.Volume{ID: "vol-2", Device: "/dev/sdf", Status: "attached"}
		see("running", root("i"))
		require.False(t, raised())
		see("running", root("i"), kept)
		require.True(t, raised(), "its flag says so")
		kept.DeleteOnTermination = true
		see("running", root("i"), kept)
		require.False(t, raised(), "it says so no more")
		see("running", root("i"))
		require.True(t, raised(), "it was removed")
		see("running", root("i"))
		see("terminated")
		require.True(t, raised(), "which nothing undoes")
		require.False(t, w.alerts.Raised(alert.Recorder, "box-1"))
		w.forgetVolumes("box-1")
		require.False(t, raised())
	})
}

func TestAFailureToRecordIsToldUntilItIsOver(t *testing.T) {
	recording(t, func(t *testing.T, w *Worker, s *memstore.Store, see func(string, ...boxvolumes.Volume)) {
		s.Inject(memstore.Once(memstore.OpPut, volumesPrefix, memstore.Lose))
		see("running", root("i"))
		require.True(t, w.alerts.Raised(alert.Recorder, "box-1"))
		see("running", root("i"))
		require.False(t, w.alerts.Raised(alert.Recorder, "box-1"))
	})
}

// What waits at the end of a box must not raise an alert that nobody ends.
func TestABoxThatIsGoneIsNotToldOf(t *testing.T) {
	recording(t, func(t *testing.T, w *Worker, s *memstore.Store, see func(string, ...boxvolumes.Volume)) {
		see("running", root("i"), boxvolumes.Volume{ID: "vol-2", Device: "/dev/sdf", Status: "attached"})
		require.True(t, w.alerts.Raised(alert.Volume, "box-1"))
		fenceBox1(t, w)
		s.Inject(func(r memstore.Request) memstore.Fault { return memstore.Lose })
		see("shutting-down", root("i"))
		require.False(t, w.alerts.Raised(alert.Volume, "box-1"))
		require.False(t, w.alerts.Raised(alert.Recorder, "box-1"))
	})
}

func fenceBox1(t *testing.T, w *Worker) {
	snap, err := w.roster.Read(t.Context())
	require.NoError(t, err)
	box, _ := snap.Box("box-1")
	seen, err := state("terminated")(box.Cloud)
	require.NoError(t, err)
	rec, err := termfence.Verify(box, w.self, seen, time.Now())
	require.NoError(t, err)
	e, err := termfence.Publish(t.Context(), w.control, w.fences, rec)
	require.NoError(t, err)
	w.gone.put(e)
}

// TestTheSweepNeverWaitsForTheRecorder: nobody takes what is handed over.
func TestTheSweepNeverWaitsForTheRecorder(t *testing.T) {
	w, _, _ := region(t)
	for range laneLength + 1 {
		require.False(t, w.alerts.Raised(alert.Recorder, "box-1"))
		w.recordVolumes(t.Context(), roster.Box{Ref: "box-1", Enrollment: "enr-box-1"}, boxvolumes.Observation{})
	}
	require.True(t, w.alerts.Raised(alert.Recorder, "box-1"), "what does not fit is told")
}

func TestObservationsOfABoxAreRecordedInTheirOrder(t *testing.T) {
	recording(t, func(t *testing.T, w *Worker, s *memstore.Store, see func(string, ...boxvolumes.Volume)) {
		gate := make(chan struct{})
		s.Inject(func(r memstore.Request) memstore.Fault {
			if strings.HasPrefix(r.Key, volumesPrefix) {
				<-gate
			}
			return memstore.None
		})
		see("pending", root("i"))
		see("running", root("i"))
		see("stopping", root("i"))
		close(gate)
		synctest.Wait()
		records, err := boxvolumes.List(t.Context(), s, "enr-box-1")
		require.NoError(t, err)
		require.Len(t, records, 3)
		for i, state := range []string{"pending", "running", "stopping"} {
			require.Equal(t, state, records[i].State)
			require.Equal(t, time.Duration(i)*time.Second, records[i].ObservedAt.Sub(records[0].ObservedAt), "when it was seen")
		}
	})
}
