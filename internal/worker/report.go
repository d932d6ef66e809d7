package worker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/pause"
)

// reportEvery is how often progress is logged while there is any.
const reportEvery = 10 * time.Second

// progress is what there is to do in a region, as far as this worker has seen.
type progress struct {
	waiting  int // hosts on boxes that are gone or drain, whose move has not begun
	moving   int // hosts whose move runs
	unplaced int // of those that wait: no box may be given them
	stuck    int // of those that move: an operator has to help
	oldest   time.Duration
}

// todo is how many hosts are not yet where they should be.
func (p progress) todo() int { return p.waiting + p.moving }

// progress counts, without a request. The oldest host waits since its box was
// seen to be gone, or since its move began.
func (w *Worker) progress() progress {
	p, since := progress{unplaced: w.unplaced.count()}, time.Now()
	for _, e := range w.gone.boxes() {
		if n := w.claims.countOn(e.Box()); n > 0 {
			p.waiting += n
			since = earlier(since, e.ObservedAt())
		}
	}
	for _, box := range w.draining.list() {
		if !w.gone.has(box) {
			p.waiting += w.claims.countOn(box)
		}
	}
	for _, host := range w.claims.running() {
		e := w.claims.get(host)
		p.moving++
		if e.stuck {
			p.stuck++
		}
		since = earlier(since, e.since)
	}
	p.oldest = time.Since(since)
	return p
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// report says how far the moves are while there are any, and alerts about what
// waits for more than time.
func (w *Worker) report(ctx context.Context) error {
	var began time.Time
	var before uint64
	for pause.For(ctx, reportEvery) {
		p := w.progress()
		w.tellWaiting()
		w.queue.stir() // a move that cannot go on counts no more
		switch {
		case p.todo() == 0 && began.IsZero():
			continue
		case p.todo() == 0:
			w.log.Info("every host is where it should be", "moved", w.gauges.moved.Load()-before, "took", time.Since(began).Round(time.Second))
			began = time.Time{}
			continue
		case began.IsZero():
			began, before = time.Now().Add(-reportEvery), w.gauges.moved.Load()
		}
		w.log.Info("moving hosts", "waiting", p.waiting, "moving", p.moving, "moved", w.gauges.moved.Load()-before,
			"unplaced", p.unplaced, "stuck", p.stuck, "oldest", p.oldest.Round(time.Second), "leads", w.queue.isOpen())
	}
	return nil
}

// tellWaiting alerts about the hosts that no box may be given, all in one, and
// about each move that waits for an operator.
func (w *Worker) tellWaiting() {
	if n, host, why := w.unplaced.first(); n > 0 {
		w.alerts.Raise(alert.Unplaced, w.set.Region, "hosts should move and no box may be given them: they are tried again on each sweep",
			"hosts", n, "first", host, "why", why)
	} else {
		w.alerts.Clear(alert.Unplaced, w.set.Region)
	}
	for _, host := range w.claims.running() {
		if e := w.claims.get(host); e.stuck {
			w.tellStuck(host, e)
		}
	}
}

func (w *Worker) tellStuck(host string, e entry) {
	w.alerts.Raise(alert.Stuck, host, "a move waits for an operator: see what for with console host show", "why", e.why,
		"since", e.since)
}

// gauges is what a worker measures.
type gauges struct{ moved atomic.Uint64 }

// register adds the worker's measures to a registry.
func (g *gauges) register(r prometheus.Registerer, w *Worker) error {
	if r == nil {
		return nil
	}
	gauge := func(name, help string, state string, value func(progress) float64) prometheus.Collector {
		opts := prometheus.GaugeOpts{Name: name, Help: help}
		if state != "" {
			opts.ConstLabels = prometheus.Labels{"state": state}
		}
		return prometheus.NewGaugeFunc(opts, func() float64 { return value(w.progress()) })
	}
	const hosts, help = "regionha_worker_hosts", "Hosts that are not where they should be, by state."
	for _, c := range []prometheus.Collector{
		gauge(hosts, help, "waiting", func(p progress) float64 { return float64(p.waiting) }),
		gauge(hosts, help, "moving", func(p progress) float64 { return float64(p.moving) }),
		gauge(hosts, help, "unplaced", func(p progress) float64 { return float64(p.unplaced) }),
		gauge(hosts, help, "stuck", func(p progress) float64 { return float64(p.stuck) }),
		gauge("regionha_worker_oldest_seconds", "How long the host waits that waits for longest.", "",
			func(p progress) float64 { return p.oldest.Seconds() }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "regionha_worker_moved_total", Help: "Moves that this worker saw end."},
			func() float64 { return float64(g.moved.Load()) }),
	} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}
