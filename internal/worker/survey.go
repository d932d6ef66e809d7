package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// surveyFor is how long one look at the boxes serves the hosts of one pass.
const surveyFor = 2 * time.Second

// surveyor chooses targets from one look at the region's boxes at a time. What
// it gave away since that look counts.
type surveyor struct {
	worker *Worker
	reader placement.Reader

	mu         sync.Mutex
	at         time.Time
	roster     roster.Snapshot
	edges      placement.Snapshot
	candidates []placement.Candidate
	loads      map[string]placement.Box
}

// choose picks the box for a host whose own is gone; "" where none may be given
// it. A fence that cannot be read is an error: then nobody is chosen. The first
// choice of a pass costs one GET of the roster, one LIST and a GET of each
// edges file that changed, and a GET of each fence; each choice one of the
// record.
func (s *surveyor) choose(ctx context.Context, c *hostclaim.Claim) (string, error) {
	h := c.Holder
	rec, err := hostrecord.Read(ctx, s.worker.control, h.Account, h.App, c.Host)
	if err != nil {
		return "", fmt.Errorf("choose a box for %s: %w", c.Host, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.look(ctx); err != nil {
		return "", fmt.Errorf("choose a box for %s: %w", c.Host, err)
	}
	region, _ := s.roster.Region(h.Region)
	want := placement.Want{
		Region: h.Region, RosterRegion: region, Pool: rec.Pool, SecretsKeyFP: s.worker.secret.Fingerprint(),
		Lost: c.Lost, Owing: owing(c), Excluded: []string{c.Op.Exec}, Now: time.Now(),
	}
	var eligible []placement.Box
	for _, candidate := range s.candidates {
		candidate.Fenced = candidate.Fenced || s.worker.gone.has(candidate.Ref) // since that look
		err := placement.Eligible(want, candidate)
		switch {
		case err == nil:
			eligible = append(eligible, s.loads[candidate.Ref])
		case errors.Is(err, placement.ErrIneligible):
			s.worker.log.Debug("not a target", "host", c.Host, "about", candidate.Ref, "err", err)
		default:
			return "", fmt.Errorf("choose a box for %s: %w", c.Host, err)
		}
	}
	app := h.Account + "/" + h.App
	ref, ok := placement.Choose(c.Host, app, eligible)
	if !ok {
		return "", nil
	}
	load := s.loads[ref]
	load.Add(app)
	s.loads[ref] = load
	return ref, nil
}

func owing(c *hostclaim.Claim) (list []string) {
	for _, o := range c.Obligations {
		if o.Kind == hostclaim.ParkLocal {
			list = append(list, o.Box)
		}
	}
	return list
}

// look reads the roster, the edges files and the fences of the region's boxes,
// unless it did so for this pass. The caller holds mu.
func (s *surveyor) look(ctx context.Context) error {
	if time.Since(s.at) < surveyFor {
		return nil
	}
	w := s.worker
	var err error
	if s.roster, err = w.roster.Read(ctx); err != nil {
		return err
	}
	s.reader.Store = w.control
	if s.edges, err = s.reader.Read(ctx); err != nil {
		return err
	}
	s.candidates, s.loads = nil, map[string]placement.Box{}
	for ref := range s.roster.Boxes {
		box, _ := s.roster.Box(ref)
		if box.Region != w.set.Region || box.State != roster.Active {
			continue
		}
		file, _ := s.edges.File(ref)
		s.candidates = append(s.candidates, placement.Candidate{Ref: ref, Box: box, File: file})
		s.loads[ref] = placement.Load(file.Edges)
	}
	slices.SortFunc(s.candidates, func(a, b placement.Candidate) int { return cmp.Compare(a.Ref, b.Ref) })
	s.readFences(ctx)
	s.at = time.Now()
	return nil
}

func (s *surveyor) readFences(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(s.worker.set.Parallel)
	for i := range s.candidates {
		c := &s.candidates[i]
		if s.worker.gone.has(c.Ref) {
			c.Fenced = true
			continue
		}
		group.Go(func() error {
			_, c.Fenced, c.FenceErr = s.worker.fences.Fenced(ctx, c.Box.Enrollment)
			return nil
		})
	}
	_ = group.Wait() // each candidate holds its own error
}

// peers lists the internal addresses of the boxes named, as of the last look.
func (s *surveyor) peers(refs []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, f := range s.edges.Files {
		if e := f.Edges; e.Internal != "" && e.Region == s.worker.set.Region && e.Box != s.worker.self.Ref && (refs == nil || slices.Contains(refs, e.Box)) {
			list = append(list, e.Internal)
		}
	}
	return list
}
