package hostclaim

import "fmt"

// Link is one generation of the chain that a baseline is chosen from. StopAt 0
// reads it to its end; otherwise a later generation was restored from exactly
// that TXID of it, and what lies beyond belongs to nobody.
type Link struct {
	Generation string
	StopAt     uint64
}

// Chain lists the generations that the next baseline may come from, newest
// first: the writer's own, then, as long as nothing was published, the baseline
// of each. A generation without an LTX file is skipped to the next link.
func (c *Claim) Chain() []Link {
	h := c.Holder
	if h == nil || h.Session == 0 {
		return nil
	}
	chain := []Link{{Generation: h.Generation}}
	for range h.Admissions {
		r, ok := c.admission(chain[len(chain)-1].Generation)
		if !ok || r.Published || r.Baseline.Generation == "" {
			break
		}
		chain = append(chain, Link{Generation: r.Baseline.Generation, StopAt: r.Baseline.TXID})
	}
	return chain
}

// FilesChain lists the generations whose files manifest may be the newest, newest
// first: the writer's own, then, as long as nothing was published, what each was
// restored from. What a session that was passed over uploads late belongs to
// nobody.
func (c *Claim) FilesChain() []string {
	h := c.Holder
	if h == nil || h.Session == 0 {
		return nil
	}
	chain := []string{h.Generation}
	for range h.Admissions {
		r, ok := c.admission(chain[len(chain)-1])
		if !ok || r.Published || r.Baseline.FilesGeneration == "" {
			break
		}
		chain = append(chain, r.Baseline.FilesGeneration)
	}
	return chain
}

// String names a position, for people.
func (p Position) String() string {
	if p == (Position{}) {
		return "nothing"
	}
	return fmt.Sprintf("%s@%d files %s@%d", p.Generation, p.TXID, p.FilesGeneration, p.FilesSeq)
}

func (c *Claim) admission(generation string) (AdmissionRecord, bool) {
	if c.Holder == nil {
		return AdmissionRecord{}, false
	}
	for _, r := range c.Holder.Admissions {
		if r.Generation == generation {
			return r, true
		}
	}
	return AdmissionRecord{}, false
}

// Reaches reports whether p holds everything that q does, each half by itself: in
// one generation by number, and at nothing of a generation by what it was
// restored from.
func (c *Claim) Reaches(p, q Position) bool {
	database := p.Generation == q.Generation && p.TXID >= q.TXID
	files := p.FilesGeneration == q.FilesGeneration && p.FilesSeq >= q.FilesSeq
	if r, ok := c.admission(q.Generation); ok && q.TXID == 0 {
		database = database || (p.Generation == r.Baseline.Generation && p.TXID == r.Baseline.TXID)
	}
	if r, ok := c.admission(q.FilesGeneration); ok && q.FilesSeq == 0 {
		files = files || (p.FilesGeneration == r.Baseline.FilesGeneration && p.FilesSeq == r.Baseline.FilesSeq)
	}
	return database && files
}

// checkBaseline refuses a position that the chain does not hold. "Nothing" is
// an empty bootstrap: it needs a host that never had a writer, a session that
// ended at nothing from nothing, or an operator who accepts it.
func (c *Claim) checkBaseline(p Position) error {
	if p.Generation == "" {
		if p.TXID != 0 {
			return wrong("baseline %s has a TXID but no generation", p)
		}
		if !c.evidencedEmpty() {
			return wrong("an empty baseline needs session 0, or a session that ended empty: session is %d", c.Holder.Session)
		}
	} else if err := c.checkLink(p); err != nil {
		return err
	}
	if p.FilesGeneration == "" {
		if p.FilesSeq != 0 {
			return wrong("baseline %s has a files sequence but no generation", p)
		}
		if !c.evidencedNoFiles() {
			return wrong("no files manifest needs session 0, or a session that ended without one: session is %d", c.Holder.Session)
		}
		return nil
	}
	if !contains(c.FilesChain(), p.FilesGeneration) {
		return wrong("files generation %q is not in the chain %v", p.FilesGeneration, c.FilesChain())
	}
	return nil
}

func (c *Claim) checkLink(p Position) error {
	for _, l := range c.Chain() {
		if l.Generation != p.Generation {
			continue
		}
		if p.TXID == 0 || (l.StopAt != 0 && p.TXID != l.StopAt) {
			return wrong("baseline %s: generation %s is read to %d", p, l.Generation, l.StopAt)
		}
		return nil
	}
	return wrong("baseline %s is not in the chain %v", p, c.Chain())
}

func (c *Claim) evidencedEmpty() bool {
	h := c.Holder
	if h.Session == 0 || c.Op.Journal.AcceptEmpty {
		return true
	}
	own, _ := c.admission(h.Generation)
	return own.Baseline.Generation == "" && h.Ended != nil && h.Ended.Final.TXID == 0
}

func (c *Claim) evidencedNoFiles() bool {
	h := c.Holder
	if h.Session == 0 || c.Op.Journal.AcceptEmpty {
		return true
	}
	own, _ := c.admission(h.Generation)
	return own.Baseline.FilesGeneration == "" && h.Ended != nil && h.Ended.Final.FilesSeq == 0
}
