package hostguard

import "fmt"

// ReleaseRequest is one request to release a host: an operation's, under one
// roster revision, to exactly one writer session of one installation.
type ReleaseRequest struct {
	Op          string `json:"op"`
	Revision    uint64 `json:"revision"` // of the roster
	Stamp       uint64 `json:"stamp"`
	Session     uint64 `json:"session"`    // 0 where there never was a writer
	Generation  string `json:"generation"` // of the session
	Incarnation string `json:"incarnation"`
}

// Released is where a host's data ended when its writers had stopped. It is
// journaled before what could flush more is closed, and a retry after that
// gives the same again.
type Released struct {
	Request ReleaseRequest `json:"request"`
	Final   Final          `json:"final"`
}

// releaseRecord is install/release.json.
type releaseRecord struct {
	header
	Released Released `json:"released"`
}

func (r releaseRecord) check(g *Guard) error {
	if err := r.header.check(g); err != nil {
		return err
	}
	if err := r.Released.Request.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

func (r ReleaseRequest) check() error {
	writes := r.Session != 0 && r.Generation != ""
	none := r.Session == 0
	if r.Op == "" || r.Revision == 0 || r.Stamp == 0 || r.Incarnation == "" || r.Session > r.Stamp || !writes && !none {
		return fmt.Errorf("release request %+v: op, revision, stamp and incarnation are required, the session is none or at most the stamp, and has a generation", r)
	}
	return nil
}

// same reports whether both ask the same of one session, under whichever roster
// revision.
func (r ReleaseRequest) same(o ReleaseRequest) bool {
	r.Revision = o.Revision
	return r == o
}

// JournalReleased records the positions of a release under its fence, before
// the replicator and the publisher are closed. The same again is nil. Other
// positions for the same request, or the same under another revision, are
// [ErrSession]: what is journaled is what the release says. A request of
// another fence or installation is [ErrNotFenced] or [ErrStale].
func (h *Held) JournalReleased(r Released) error {
	if err := h.check(); err != nil {
		return err
	}
	switch want := r.Request; {
	case want.check() != nil:
		return h.g.errorf("release: %w", want.check())
	case want.Stamp != h.at.Stamp || want.Incarnation != h.at.Incarnation:
		return h.g.errorf("release: %w: stamp %d of incarnation %s, held is %d of %s", ErrStale, want.Stamp, want.Incarnation, h.at.Stamp, h.at.Incarnation)
	case want.Op != h.at.Fence:
		return h.g.errorf("release: %w: the fence is of operation %q, want %q", ErrNotFenced, h.at.Fence, want.Op)
	}
	rec, _, err := read[releaseRecord](h.g, releaseFile)
	switch {
	case err != nil:
		return h.g.errorf("release: %w", err)
	case rec.Released == r:
		return nil
	case rec.Released.Request.same(r.Request):
		return h.g.errorf("release: %w: it was journaled under revision %d at %+v, not under %d at %+v",
			ErrSession, rec.Released.Request.Revision, rec.Released.Final, r.Request.Revision, r.Final)
	}
	rec.header, rec.Released = rec.next(h.g), r
	if err := h.g.disk.save(h.g.path(releaseFile), rec); err != nil {
		return h.g.errorf("release: %w", err)
	}
	return nil
}

// Released reads the positions that were journaled for exactly this request;
// found is false where there are none. Revision 0 stands for whichever it was
// made under, and the answer says which: a retry asks under that one. Those of
// another operation, session or installation are never returned. It takes no
// lock.
func (g *Guard) Released(want ReleaseRequest) (r Released, found bool, err error) {
	rec, _, err := read[releaseRecord](g, releaseFile)
	if err != nil {
		return Released{}, false, g.errorf("release: %w", err)
	}
	got := rec.Released.Request
	if !got.same(want) || want.Revision != 0 && want.Revision != got.Revision {
		return Released{}, false, nil
	}
	return rec.Released, true, nil
}
