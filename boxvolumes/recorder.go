package boxvolumes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

const (
	// every is how old the newest record gets while nothing changes: the sweep
	// that comes next is still within the hour.
	every = 55 * time.Minute

	maxKept  = 10_000 // boxes that a recorder remembers
	maxSeen  = 256    // ids that it remembers of a box while it cannot write
	attempts = 3      // to find a nanosecond that no other worker took
)

// Recorder writes the records of a region's boxes. The zero value with a Store
// is ready, and it is safe for concurrent use: observations of one box wait for
// one another. Several recorders, in as many workers, may record one box.
type Recorder struct {
	Store objstore.Store

	mu   sync.Mutex
	kept map[string]*memory // by enrollment
}

// memory is what a recorder knows of one enrollment.
type memory struct {
	mu   sync.Mutex
	read bool     // the newest stored record was looked for
	last Record   // the newest record that this recorder knows; zero: none
	seen []string // ids that were seen since and that no record has yet
	gone []string // ids that were removed, as far as this recorder saw
}

// Saw records what was observed of the box of a roster entry, at a time, where
// the newest record does not say it: at the first sight of the enrollment, when
// a volume or the state of the instance changed, and before the newest record is
// an hour old. What is not recordable writes nothing. It returns the ids of the
// volumes that do not go with the instance: those that were removed, and those
// whose flag says so.
//
// It costs nothing where nothing changed; a PUT for a record; and one listing
// and at most one GET at the first sight. Errors: [ErrUnverified], or a failure
// of the store. Then nothing is known to be recorded, and the next observation
// tries again; what was seen until then counts as seen.
func (r *Recorder) Saw(ctx context.Context, entry roster.Box, o Observation, now time.Time) (outlive []string, err error) {
	m := r.of(entry.Enrollment)
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.recordable(entry) {
		if err := r.saw(ctx, m, entry, o, now); err != nil {
			return nil, fmt.Errorf("boxvolumes: record %q: %w", entry.Enrollment, err)
		}
	}
	return m.outlive(), nil
}

// of finds what is known of an enrollment. Where too much is remembered any
// other is forgotten, whose newest record will be read again.
func (r *Recorder) of(enrollment string) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.kept[enrollment]
	if m != nil {
		return m
	}
	if r.kept == nil {
		r.kept = map[string]*memory{}
	}
	for other := range r.kept {
		if len(r.kept) < maxKept {
			break
		}
		delete(r.kept, other)
	}
	m = &memory{}
	r.kept[enrollment] = m
	return m
}

func (r *Recorder) saw(ctx context.Context, m *memory, entry roster.Box, o Observation, now time.Time) error {
	volumes := o.sorted()
	m.see(volumes)
	if !m.read {
		last, err := newest(ctx, r.Store, entry.Enrollment)
		if err != nil {
			return err
		}
		m.last, m.read = last, true
	}
	for range attempts {
		next := Record{V: version, Box: entry.Ref, Enrollment: entry.Enrollment, Cloud: entry.Cloud, State: o.State,
			ObservedAt: now.UTC(), Volumes: volumes, RemovedVolumes: m.removed(volumes)}
		if !m.news(next) {
			return nil
		}
		err := r.write(ctx, m, next)
		if !errors.Is(err, objstore.ErrConflict) {
			return err
		}
		now = now.Add(1) // another worker's record is there; it is known now
	}
	return fmt.Errorf("%w: %d times", objstore.ErrConflict, attempts)
}

// write stores a record. Where there is another at its time, that one is the
// newest that is known, and the error is [objstore.ErrConflict].
func (r *Recorder) write(ctx context.Context, m *memory, next Record) error {
	body, err := record.Encode(next)
	if err != nil {
		return err
	}
	key := Key(next.Enrollment, next.ObservedAt)
	_, err = objstore.Create(ctx, r.Store, key, body)
	switch {
	case err == nil:
		m.wrote(next)
	case errors.Is(err, objstore.ErrConflict):
		other, readErr := get(ctx, r.Store, next.Enrollment, key)
		if readErr != nil {
			return readErr
		}
		m.see(m.last.Volumes)
		m.last = other
	}
	return err
}

// see notes what is attached, so that it is missed when it goes, even where no
// record of it could be written.
func (m *memory) see(volumes []Volume) {
	for _, v := range volumes {
		if len(m.seen) < maxSeen && !slices.Contains(m.seen, v.ID) {
			m.seen = append(m.seen, v.ID)
		}
	}
}

// removed lists what was attached and is not: of the newest record, and of what
// was seen since.
func (m *memory) removed(volumes []Volume) []string {
	before := slices.Clone(m.seen)
	for _, v := range m.last.Volumes {
		before = append(before, v.ID)
	}
	before = slices.DeleteFunc(before, func(id string) bool { return holds(volumes, id) })
	slices.Sort(before)
	return slices.Compact(before)
}

// news reports whether a record says what the newest one does not.
func (m *memory) news(next Record) bool {
	switch {
	case m.last.V == 0:
		return len(next.Volumes) > 0 || len(next.RemovedVolumes) > 0 // until then the cloud shows nothing yet
	case len(next.RemovedVolumes) > 0, next.State != m.last.State, !slices.Equal(next.Volumes, m.last.Volumes):
		return true
	}
	return next.ObservedAt.Sub(m.last.ObservedAt).Abs() >= every
}

func (m *memory) wrote(next Record) {
	m.last, m.seen = next, nil
	for _, id := range next.RemovedVolumes {
		if len(m.gone) < maxSeen && !slices.Contains(m.gone, id) {
			m.gone = append(m.gone, id)
		}
	}
}

func (m *memory) outlive() []string {
	ids := slices.Clone(m.gone)
	for _, v := range m.last.Volumes {
		if !v.DeleteOnTermination {
			ids = append(ids, v.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// newest reads the newest record of an enrollment; the zero one where there is
// none.
func newest(ctx context.Context, store objstore.Store, enrollment string) (Record, error) {
	if err := roster.CheckEnrollment(enrollment); err != nil {
		return Record{}, err
	}
	keys, err := list(ctx, store, prefix(enrollment))
	if err != nil || len(keys) == 0 {
		return Record{}, err
	}
	return get(ctx, store, enrollment, keys[len(keys)-1])
}
