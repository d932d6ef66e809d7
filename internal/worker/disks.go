package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/termfence"
)

const (
	// judgeWithin bounds the reading of one box's records.
	judgeWithin = 2 * time.Minute

	// judgeAgain is the least time between two tries to read them.
	judgeAgain = 5 * time.Minute

	// dischargesAtOnce bounds the claims that one sweep discharges.
	dischargesAtOnce = 256
)

// disks is what is known of the disks of boxes that are gone, by enrollment. It
// only spares clean-up: nothing waits for it.
type disks struct {
	asked pending // boxes whose records are to be read

	mu        sync.Mutex
	verdicts  map[string]boxvolumes.Verdict
	tried     map[string]time.Time
	destroyed map[string]termfence.Destroyed
}

func newDisks() *disks {
	return &disks{asked: newPending(), verdicts: map[string]boxvolumes.Verdict{}, tried: map[string]time.Time{},
		destroyed: map[string]termfence.Destroyed{}}
}

// of is the verdict about a fenced box; the zero one where there is none yet,
// and then it is asked for.
func (d *disks) of(e termfence.Evidence) boxvolumes.Verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, known := d.verdicts[e.Enrollment()]
	if !known && !e.Declared() && time.Since(d.tried[e.Enrollment()]) > judgeAgain {
		d.tried[e.Enrollment()] = time.Now()
		d.asked.add(e.Box())
	}
	return v
}

// evidence is what proves that a box is gone, with what is known of its disks.
func (w *Worker) evidence(box string) (hostclaim.Gone, bool) {
	e, ok := w.gone.get(box)
	if !ok {
		return hostclaim.Gone{}, false
	}
	return hostclaim.Gone{Evidence: e, Volumes: w.disks.of(e)}, true
}

// judgeDisks reads the records of the disks of fenced boxes whose hosts move: one
// GET of the roster, one LIST, and one GET for each record, once a box.
func (w *Worker) judgeDisks(ctx context.Context) error {
	for ctx.Err() == nil {
		for _, ref := range w.disks.asked.take(ctx) {
			if err := w.judge(ctx, ref); err != nil && ctx.Err() == nil {
				w.log.Warn("what became of its disks is not known: hosts that leave it keep their chores there", "about", ref, "err", err)
			}
		}
	}
	return nil
}

func (w *Worker) judge(ctx context.Context, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, judgeWithin)
	defer cancel()
	e, gone := w.gone.get(ref)
	snap, err := w.roster.Read(ctx)
	if err != nil || !gone {
		return err
	}
	box, ok := snap.Box(ref)
	if !ok || box.Enrollment != e.Enrollment() {
		return fmt.Errorf("the roster has it as %q, the evidence as %q", box.Enrollment, e.Enrollment())
	}
	v, err := boxvolumes.Read(ctx, w.control, box, e.ObservedAt())
	if err != nil {
		return err
	}
	w.log.Info("its disks were judged", "about", ref, "gone", v.Discharged(), "why_not", v.Reason())
	w.disks.mu.Lock()
	defer w.disks.mu.Unlock()
	w.disks.verdicts[box.Enrollment] = v
	return nil
}

// discharge completes the chores of hosts on boxes whose disks an operator
// declared destroyed: one GET a sweep for each box that is gone and is owed
// something, until that is declared, and then a GET and a PUT for each claim.
func (w *Worker) discharge(ctx context.Context) {
	left := dischargesAtOnce
	for _, e := range w.gone.boxes() {
		hosts := w.claims.owing(e.Box())
		if len(hosts) == 0 {
			continue
		}
		d, ok, err := w.destroyed(ctx, e)
		if err != nil && ctx.Err() == nil {
			w.log.Warn("were its disks destroyed?", "about", e.Box(), "err", err)
		}
		if !ok {
			continue
		}
		for _, host := range hosts[:min(left, len(hosts))] {
			if err := w.dischargeHost(ctx, host, d); err != nil && ctx.Err() == nil {
				w.log.Warn("discharge a host's chores", "host", host, "about", d.Box(), "err", err)
			}
			left--
		}
	}
}

func (w *Worker) destroyed(ctx context.Context, e termfence.Evidence) (termfence.Destroyed, bool, error) {
	w.disks.mu.Lock()
	d, known := w.disks.destroyed[e.Enrollment()]
	w.disks.mu.Unlock()
	if known {
		return d, true, nil
	}
	d, ok, err := w.fences.Destroyed(ctx, e.Enrollment())
	if ok {
		w.disks.mu.Lock()
		defer w.disks.mu.Unlock()
		w.disks.destroyed[e.Enrollment()] = d
	}
	return d, ok, err
}

func (w *Worker) dischargeHost(ctx context.Context, host string, d termfence.Destroyed) error {
	o, err := hostclaim.Read(ctx, w.control, host)
	if err != nil || o.Claim == nil {
		return err
	}
	w.saw(o.Claim)
	if !o.Claim.Owes(d.Box(), hostclaim.ParkLocal) {
		return nil
	}
	next, err := hostclaim.Update(ctx, w.control, o, hostclaim.DischargeDestroyed(d))
	if errors.Is(err, hostclaim.ErrConflict) || errors.Is(err, hostclaim.ErrAlreadyRecorded) {
		return nil // the next sweep looks again
	}
	if err == nil {
		w.saw(next.Claim)
	}
	return err
}
