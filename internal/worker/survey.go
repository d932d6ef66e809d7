package worker

import (
	"context"
	"slices"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/survey"
)

// surveyor chooses this region's targets. A box that was found gone since its
// look is none.
func (w *Worker) surveyor() *survey.Surveyor {
	return &survey.Surveyor{SecretFP: w.secret.Fingerprint(), Log: w.log,
		Reader: survey.Reader{Store: w.control, Roster: w.roster, Region: w.set.Region, Gone: w.gone.has}}
}

// peers lists the internal addresses of the boxes named, as of the last look.
func (w *Worker) peers(refs []string) []string {
	var list []string
	for _, f := range w.survey.Edges().Files {
		if e := f.Edges; e.Internal != "" && e.Region == w.set.Region && e.Box != w.self.Ref && (refs == nil || slices.Contains(refs, e.Box)) {
			list = append(list, e.Internal)
		}
	}
	return list
}

// findPeers learns where the boxes are reached that a relocation is about to
// wake, as it starts: not in its cut. Without it they find out by themselves.
func (w *Worker) findPeers(ctx context.Context, c *hostclaim.Claim) {
	if c.Op.Phase != hostclaim.Starting && len(w.survey.Edges().Files) > 0 {
		return
	}
	if err := w.survey.Refresh(ctx); err != nil {
		w.log.Warn("find out where the boxes are reached", "err", err)
	}
}
