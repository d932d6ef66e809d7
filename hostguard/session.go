package hostguard

import "fmt"

// SessionStep is how far this box's newest writer session came.
type SessionStep string

const (
	// Asked: an admission under this generation was about to be asked for. It
	// may have been granted; nothing was written under it.
	Asked SessionStep = "asked"

	// Restored: the admission was granted and the baseline lies in place. From
	// here a replicator may have written.
	Restored SessionStep = "restored"

	// Ended: closed for ever, at Final.
	Ended SessionStep = "ended"

	// Abandoned: closed for ever, nobody says where. What it wrote and did not
	// bring to the store is never brought there.
	Abandoned SessionStep = "abandoned"
)

// Final is where a session ended. Its numbers order only within their own
// generation.
type Final struct {
	Generation      string `json:"generation"` // of the database; a baseline's where the session wrote nothing
	TXID            uint64 `json:"txid"`
	FilesGeneration string `json:"files_generation"`
	FilesSeq        uint64 `json:"files_seq"`
}

// Session is the journal of this box's newest writer session of a host.
type Session struct {
	Generation  string      `json:"generation"` // the replication lineage that it asked to write
	Number      uint64      `json:"number"`     // the stamp it runs under; 0 while only asked
	Incarnation string      `json:"incarnation"`
	BootID      string      `json:"boot_id"` // the boot of the newest step
	Step        SessionStep `json:"step"`
	Final       *Final      `json:"final"` // set once ended
}

// sessionRecord is install/session.json.
type sessionRecord struct {
	header
	Session Session `json:"session"`
}

// Session reads the journal, without a lock. found is false where this box
// never asked for an admission of the host.
func (g *Guard) Session() (s Session, found bool, err error) {
	rec, found, err := readSession(g)
	return rec.Session, found, err
}

func readSession(g *Guard) (sessionRecord, bool, error) {
	rec, found, err := read[sessionRecord](g, sessionFile)
	if err != nil {
		return sessionRecord{}, false, g.errorf("session: %w", err)
	}
	return rec, found, nil
}

func (r sessionRecord) check(g *Guard) error {
	if err := r.header.check(g); err != nil {
		return err
	}
	return r.Session.check()
}

// check refuses a journal that no sequence of steps writes.
func (s Session) check() error {
	ok := s.Generation != "" && s.Incarnation != "" && s.BootID != ""
	switch s.Step {
	case Asked:
		ok = ok && s.Number == 0 && s.Final == nil
	case Restored, Abandoned:
		ok = ok && s.Number > 0 && s.Final == nil
	case Ended:
		ok = ok && s.Number > 0 && s.Final != nil
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%w: session %d of generation %q: step %q", ErrMalformed, s.Number, s.Generation, s.Step)
	}
	return nil
}

// AskSession journals the fresh generation that an admission is about to ask
// for, before its claim write. It replaces the journal of the session before,
// so that one is finished first, or given up. A generation that went further is
// [ErrSession]: it is never asked for twice.
func (h *Held) AskSession(generation string) error {
	rec, found, err := h.session(generation)
	if err != nil {
		return err
	}
	if found && rec.Session.Generation == generation {
		if rec.Session.Step == Asked {
			return nil
		}
		return h.refuse(rec.Session, "was asked for before")
	}
	return h.saveSession(rec, Session{Generation: generation, Step: Asked})
}

// RestoredSession journals that the admitted session's baseline is in place,
// before its replicator first opens. The session's number is the stamp that is
// held. It follows AskSession of the same generation, and only once, else
// [ErrSession]: a second restore would put old pages under a generation that
// holds newer ones.
func (h *Held) RestoredSession(generation string) error {
	rec, _, err := h.session(generation)
	if err != nil {
		return err
	}
	s := rec.Session
	switch {
	case s.Generation != generation:
		return h.refuse(s, "was never asked for here")
	case s.Step != Asked:
		return h.refuse(s, "was restored before")
	}
	return h.saveSession(rec, Session{Generation: generation, Number: h.at.Stamp, Step: Restored})
}

// EndSession closes the held stamp's session for ever, before the claim is told
// so. A session that was only asked for ends at its own baseline. The same end
// again is nil, so a lost claim write is repeated with the journal's Final;
// another end is [ErrSession].
func (h *Held) EndSession(generation string, final Final) error {
	rec, _, err := h.session(generation)
	if err != nil {
		return err
	}
	s := rec.Session
	switch {
	case s.Generation != generation:
		return h.refuse(s, "was never asked for here")
	case s.Number != 0 && s.Number != h.at.Stamp:
		return h.refuse(s, "is not the held stamp's")
	case s.Step == Ended && *s.Final == final:
		return nil
	case s.Step == Ended:
		return h.refuse(s, "ended elsewhere")
	case s.Step == Abandoned:
		return h.refuse(s, "was abandoned")
	}
	return h.saveSession(rec, Session{Generation: generation, Number: h.at.Stamp, Step: Ended, Final: &final})
}

// AbandonSession gives the restored session up whose writers are proven stopped
// and whose claim has moved on without it, so that [Guard.Retire] may park its
// copy. It need not be the held stamp's. Again is nil; a session that is not
// restored is [ErrSession].
func (h *Held) AbandonSession(generation string) error {
	rec, _, err := h.session(generation)
	if err != nil {
		return err
	}
	switch s := rec.Session; {
	case s.Generation != generation:
		return h.refuse(s, "was never asked for here")
	case s.Step == Abandoned:
		return nil
	case s.Step != Restored:
		return h.refuse(s, "is not restored")
	}
	s := rec.Session
	s.Step = Abandoned
	return h.saveSession(rec, s)
}

// Flushable is nil where the local tail of the held stamp's session may still be
// uploaded to its generation: the journal names exactly that session, restored
// and not ended, in this very boot. Otherwise [ErrSession]: after another boot a
// database may be behind the store, or torn. The caller's claim read must name
// the same session.
func (h *Held) Flushable(generation string) error {
	rec, _, err := h.session(generation)
	if err != nil {
		return err
	}
	s := rec.Session
	switch {
	case s.Generation != generation || s.Number != h.at.Stamp || s.Step != Restored:
		return h.refuse(s, "is not open here")
	case s.BootID != h.g.me.BootID:
		return h.refuse(s, "was restored in another boot")
	}
	return nil
}

func (h *Held) session(generation string) (sessionRecord, bool, error) {
	if err := h.check(); err != nil {
		return sessionRecord{}, false, err
	}
	if generation == "" {
		return sessionRecord{}, false, h.g.errorf("session: an empty generation")
	}
	return readSession(h.g)
}

func (h *Held) saveSession(rec sessionRecord, s Session) error {
	s.Incarnation, s.BootID = h.at.Incarnation, h.g.me.BootID
	rec.header, rec.Session = rec.next(h.g), s
	if err := h.g.disk.save(h.g.path(sessionFile), rec); err != nil {
		return h.g.errorf("session: %w", err)
	}
	return nil
}

func (h *Held) refuse(s Session, why string) error {
	return h.g.errorf("session: %w: held stamp %d; the journal has generation %q, session %d, %s: it %s",
		ErrSession, h.at.Stamp, s.Generation, s.Number, s.Step, why)
}
