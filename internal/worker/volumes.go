package worker

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/roster"
)

const (
	// recordLanes is how many boxes are recorded at a time. A box keeps to its
	// lane, so that its observations stay in their order.
	recordLanes = 4

	// laneLength bounds the observations that wait in a lane.
	laneLength = 256

	// recordWithin bounds the recording of one.
	recordWithin = 20 * time.Second
)

// volumes is the observations of disks that wait to be recorded. The zero value
// is ready.
type volumes struct {
	once  sync.Once
	lanes [recordLanes]chan sighting
}

// sighting is one observation of a box's disks.
type sighting struct {
	box  roster.Box
	seen boxvolumes.Observation
	at   time.Time
}

func (v *volumes) open() *[recordLanes]chan sighting {
	v.once.Do(func() {
		for i := range v.lanes {
			v.lanes[i] = make(chan sighting, laneLength)
		}
	})
	return &v.lanes
}

// recordVolumes has what a describe says of a box's disks recorded. It never
// waits, for the sweep must not: what does not fit is left to the next sweep.
func (w *Worker) recordVolumes(_ context.Context, box roster.Box, o boxvolumes.Observation) {
	h := fnv.New32a()
	h.Write([]byte(box.Enrollment)) // never fails
	select {
	case w.volumes.open()[h.Sum32()%recordLanes] <- sighting{box: box, seen: o, at: time.Now()}:
	default:
		w.alerts.Raise(alert.Recorder, box.Ref, "the disks of a box are not recorded: too many observations wait")
	}
}

// recordLoop records what waits, until ctx ends. Nothing else waits for it, and
// what it cannot write only raises an alert.
func (w *Worker) recordLoop(ctx context.Context) error {
	recorder := &boxvolumes.Recorder{Store: w.control}
	var lanes sync.WaitGroup
	for _, lane := range w.volumes.open() {
		lanes.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case d := <-lane:
					w.record(ctx, recorder, d)
				}
			}
		})
	}
	lanes.Wait()
	return nil
}

func (w *Worker) record(ctx context.Context, recorder *boxvolumes.Recorder, d sighting) {
	within, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	outlive, err := recorder.Saw(within, d.box, d.seen, d.at)
	switch {
	case ctx.Err() != nil:
		return
	case w.gone.fenced(d.box.Ref):
		w.forgetVolumes(d.box.Ref)
		return
	case err != nil:
		w.alerts.Raise(alert.Recorder, d.box.Ref, "the disks of a box cannot be recorded: it may keep its local chores when it is gone", "err", err)
		return
	}
	w.alerts.Clear(alert.Recorder, d.box.Ref)
	if len(outlive) == 0 {
		w.alerts.Clear(alert.Volume, d.box.Ref)
		return
	}
	w.alerts.Raise(alert.Volume, d.box.Ref, "volumes of a box outlive it: it keeps its local chores when it is gone", "volumes", outlive)
}

// forgetVolumes ends the alerts about the disks of a box that is gone: there is
// nothing more to record, and its chores say what is left to do.
func (w *Worker) forgetVolumes(ref string) {
	w.alerts.Clear(alert.Recorder, ref)
	w.alerts.Clear(alert.Volume, ref)
}
