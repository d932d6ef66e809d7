package survey

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/termfence"
)

const (
	// parallel bounds a reader's requests in flight.
	parallel = 16

	// maxFences bounds the machines that ever ended.
	maxFences = 100_000
)

// fencePrefix is where every fence is, by enrollment.
var fencePrefix = strings.TrimSuffix(termfence.Key(""), ".json")

// Fence is what is known of the fence of one box.
type Fence struct {
	At       time.Time          // when its machine was read terminated; zero: not
	Evidence termfence.Evidence // the verified fence; the zero value: there is none
	Err      error              // it could not be read: nothing is known
}

// fences is the verified fences by enrollment. A fence never changes and never
// goes, so each is read once.
type fences map[string]termfence.Evidence

// readFences finds out which boxes are fenced: one LIST of all fences, and one
// GET for each that this reader has not verified yet. Only a completed listing
// says of a box that it has none.
func (r *Reader) readFences(ctx context.Context, l *Look) {
	listed, err := r.listFences(ctx)
	var fresh []string
	for ref, box := range l.Boxes {
		if r.Region != "" && box.Region != r.Region {
			continue
		}
		switch e, known := r.fences[box.Enrollment]; {
		case known:
			l.Fences[ref] = Fence{At: e.ObservedAt(), Evidence: e}
		case listed[box.Enrollment]:
			fresh = append(fresh, ref)
		default:
			l.Fences[ref] = Fence{Err: err}
		}
	}
	l.Cost += len(fresh)
	r.verify(ctx, l, fresh)
}

// verify reads the fences of the boxes named, and remembers those that hold.
func (r *Reader) verify(ctx context.Context, l *Look, refs []string) {
	read := make([]Fence, len(refs))
	reader := termfence.Reader{Store: r.Store, Roster: r.Roster}
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, ref := range refs {
		group.Go(func() error {
			e, found, err := reader.Fenced(ctx, l.Boxes[ref].Enrollment)
			if err == nil && !found {
				err = errors.New("its fence is listed and not there")
			}
			read[i] = Fence{At: e.ObservedAt(), Evidence: e, Err: err}
			return nil
		})
	}
	_ = group.Wait() // each holds its own error
	for i, ref := range refs {
		l.Fences[ref] = read[i]
		if !read[i].At.IsZero() {
			if r.fences == nil {
				r.fences = fences{}
			}
			r.fences[l.Boxes[ref].Enrollment] = read[i].Evidence
		}
	}
}

// listFences lists the enrollments that have a fence. What it lists beside an
// error is there; what it does not list is unknown then.
func (r *Reader) listFences(ctx context.Context) (map[string]bool, error) {
	listed := map[string]bool{}
	for info, err := range r.Store.List(ctx, fencePrefix) {
		if err != nil {
			return listed, fmt.Errorf("list the fences: %w", err)
		}
		if len(listed) == maxFences {
			return listed, fmt.Errorf("list the fences: there are more than %d", maxFences)
		}
		listed[strings.TrimSuffix(strings.TrimPrefix(info.Key, fencePrefix), ".json")] = true
	}
	return listed, nil
}
