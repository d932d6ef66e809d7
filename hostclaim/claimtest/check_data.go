package claimtest

import (
	"github.com/carlosframework/regionha/hostclaim"
)

// admitted is property 4: what was promised to clients is reached by every later
// admission, or was declared lost, once.
func (k *checker) admitted(before, after *hostclaim.Claim) error {
	h := after.Holder
	if h == nil || h.Session == 0 || before.Holder == nil || h.Session == before.Holder.Session {
		return nil
	}
	r := h.Admissions[len(h.Admissions)-1]
	if err := k.opens(before, r); err != nil {
		return err
	}
	if before.Op.Journal.AcceptEmpty || before.Holder.Session == 0 {
		for i := range k.generations {
			k.generations[i].needTXID, k.generations[i].needSeq = 0, 0
		}
	}
	if err := k.declares(before, r); err != nil {
		return err
	}
	for _, g := range k.generations {
		txid, seq := k.holds(r.Baseline, g.id)
		if g.declared && txid > g.cut {
			return broken(4, "session %d restores %s, which holds %d of generation %s: what is beyond %d was declared lost",
				r.Session, r.Baseline, txid, g.id, g.cut)
		}
		if txid < g.needTXID || seq < g.needSeq {
			return broken(4, "session %d restores %s, which holds %d and %d of generation %s: %d and %d were promised and not declared lost",
				r.Session, r.Baseline, txid, seq, g.id, g.needTXID, g.needSeq)
		}
	}
	g := k.find(r.Generation)
	if g == nil {
		k.generations = append(k.generations, known{id: r.Generation})
		g = &k.generations[len(k.generations)-1]
	}
	g.session, g.from = r.Session, r.Baseline
	return nil
}

// opens is property 3 once more: a prepared generation is opened by its own
// operation only, and at most once.
func (k *checker) opens(before *hostclaim.Claim, r hostclaim.AdmissionRecord) error {
	g := k.find(r.Generation)
	switch {
	case g == nil:
		return nil
	case g.session > 0:
		return broken(3, "%s is opened by session %d after %d", g.id, r.Session, g.session)
	case g.build == "" && g.id != before.Op.Journal.Prepared:
		return broken(3, "%s is opened, and no build of it was accepted", g.id)
	case before.Op.Journal.Prepared != "" && g.id != before.Op.Journal.Prepared:
		return broken(3, "%s is opened, %s is prepared", g.id, before.Op.Journal.Prepared)
	}
	return nil
}

// declares holds what an admission says of its predecessor to what is so.
func (k *checker) declares(before *hostclaim.Claim, r hostclaim.AdmissionRecord) error {
	p := before.Holder
	if p.Session == 0 {
		if r.WritesLost != nil {
			return broken(4, "the first writer declares a loss: %+v", *r.WritesLost)
		}
		return nil
	}
	g := k.find(p.Generation)
	if r.Coverage != hostclaim.Uncovered {
		if r.WritesLost != nil {
			return broken(4, "session %d is %s and declares a loss", r.Session, r.Coverage)
		}
		g.needTXID, g.needSeq = k.promised(*g)
		return nil
	}
	lost := r.WritesLost
	switch {
	case lost == nil:
		return broken(4, "session %d does not declare that of %d lost, and nothing vouches for it", r.Session, p.Session)
	case lost.Session != p.Session || lost.Box != p.WriterBox || lost.Generation != p.Generation:
		return broken(4, "session %d declares %+v, its predecessor is %d on %s", r.Session, *lost, p.Session, p.WriterBox)
	case g.declared:
		return broken(4, "session %d is declared lost twice", p.Session)
	case undisturbed(before) && r.Generation == before.Op.Journal.Prepared:
		return broken(4, "a %s without a failure declares session %d lost", before.Op.Reason(), p.Session)
	}
	g.declared = true
	g.needTXID, g.needSeq = k.holds(r.Baseline, g.id)
	g.cut = g.needTXID
	if r.Baseline.Generation == g.id && lost.RemoteMaxTXID != r.Baseline.TXID || r.Baseline.Generation != g.id && lost.RemoteMaxTXID != 0 {
		return broken(4, "session %d declares what is beyond %d of %s lost, and restores %s", r.Session, lost.RemoteMaxTXID, g.id, r.Baseline)
	}
	return nil
}

// undisturbed reports whether a relocation off a live box went on without a
// failure.
func undisturbed(c *hostclaim.Claim) bool {
	j := c.Op.Journal
	return c.Op.Kind == hostclaim.Relocating && c.Op.Reason() != hostclaim.Failover && len(j.Fences) == 0 &&
		j.Replacements == 0 && j.Granted == 0
}

// promised is what clients were promised in a generation beyond what it began
// with.
func (k *checker) promised(g known) (txid, seq uint64) {
	now := k.w.Generation(g.id)
	if now == nil {
		return 0, 0
	}
	if txid = now.Acked; now.Prepared && txid == now.From.TXID {
		txid = 0 // its numbers go on from what it was built from
	}
	return txid, now.AckedSeq
}

// holds is how far a position reaches into a generation, each half by itself:
// what is restored from one holds all that it was restored from.
func (k *checker) holds(p hostclaim.Position, id string) (txid, seq uint64) {
	for at, n := p.Generation, p.TXID; at != ""; {
		if at == id {
			txid = n
			break
		}
		g := k.find(at)
		if g == nil {
			break
		}
		at, n = g.from.Generation, g.from.TXID
	}
	for at, n := p.FilesGeneration, p.FilesSeq; at != ""; {
		if at == id {
			seq = n
			break
		}
		g := k.find(at)
		if g == nil {
			break
		}
		at, n = g.from.FilesGeneration, g.from.FilesSeq
	}
	return txid, seq
}
