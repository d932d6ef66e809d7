package alert

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Subject is a kind of trouble.
type Subject string

// Subjects that a process raises.
const (
	AwaitingEvidence Subject = "awaiting-evidence" // a box does not answer and nothing proves it gone: its hosts stay down
	Unplaced         Subject = "unplaced"          // no box may be given the host
	Stuck            Subject = "stuck"             // an operation waits for a person
	Recorder         Subject = "recorder"          // a box's disks cannot be recorded
	Volume           Subject = "volume"            // a volume was removed, or outlives its instance
	Queue            Subject = "queue"             // the event queue cannot be read, or holds what is no event
	Cloud            Subject = "cloud"             // the cloud does not answer about a box
	Enrollment       Subject = "enrollment"        // a box may not be enrolled
	Gate             Subject = "gate"              // the region may not have a second box yet
	Unexplained      Subject = "unexplained"       // a row that no claim explains
	Conflict         Subject = "conflict"          // two boxes claim one name under one stamp
	Held             Subject = "held"              // a stranger has a host's database open: its session cannot end
	Clock            Subject = "clock"             // this process's clock is off from the store's
	Store            Subject = "store"             // the store fails
)

// Subjects lists all of them, for the documents.
func Subjects() []Subject {
	return []Subject{AwaitingEvidence, Unplaced, Stuck, Recorder, Volume, Queue, Cloud, Enrollment, Gate, Unexplained, Conflict, Held, Clock, Store}
}

const (
	// againAfter is how often an alert that lasts is logged.
	againAfter = time.Hour

	// maxKept bounds the alerts that are raised at one time.
	maxKept = 10_000
)

// Board holds the alerts of one process. It is safe for concurrent use. Make it
// with [New]; the nil Board takes everything and says nothing.
type Board struct {
	log    *slog.Logger
	raised *prometheus.GaugeVec

	mu   sync.Mutex
	said map[alert]time.Time // when it was last logged
	full bool
}

type alert struct {
	subject Subject
	about   string
}

// New makes an empty board that logs to log.
func New(log *slog.Logger) *Board {
	return &Board{log: log, said: map[alert]time.Time{}, raised: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "regionha_alerts", Help: "Alerts that are raised now, by subject.",
	}, []string{"subject"})}
}

// Metrics is what [prometheus.Registry.MustRegister] takes.
func (b *Board) Metrics() prometheus.Collector { return b.raised }

// Raise says that there is trouble with about, a box, host or region; text says
// what, in one sentence. The first time it is logged at once, and then hourly
// as long as it is raised.
func (b *Board) Raise(subject Subject, about, text string, args ...any) {
	if b == nil {
		return
	}
	if b.due(alert{subject, about}, time.Now()) {
		b.log.Error(text, append([]any{"alert", string(subject), "about", about}, args...)...)
	}
}

func (b *Board) due(a alert, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, raised := b.said[a]
	switch {
	case raised && now.Sub(last) < againAfter:
		return false
	case !raised && len(b.said) >= maxKept:
		if !b.full {
			b.full = true
			b.log.Error("more alerts than are kept: look at the metrics and the log", "kept", maxKept)
		}
		return false
	case !raised:
		b.raised.WithLabelValues(string(a.subject)).Inc()
	}
	b.said[a] = now
	return true
}

// Clear says that the trouble is over, which is logged if it was raised.
func (b *Board) Clear(subject Subject, about string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	_, raised := b.said[alert{subject, about}]
	delete(b.said, alert{subject, about})
	b.mu.Unlock()
	if raised {
		b.raised.WithLabelValues(string(subject)).Dec()
		b.log.Info("alert is over", "alert", string(subject), "about", about)
	}
}

// Raised reports whether the trouble is raised now.
func (b *Board) Raised(subject Subject, about string) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_, raised := b.said[alert{subject, about}]
	return raised
}
