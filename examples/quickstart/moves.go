package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// moves is the verdict on all moves that were made on purpose.
type moves struct {
	outcome
	skipped string // why none was made; "": some were

	each   []move
	errors []error // what clients got instead of an acknowledgement
	kills  int     // agents that were killed meanwhile

	recorded int   // operations of the history that was checked; 0: none was
	peak     int64 // the most memory of an agent, in bytes
}

// move is one move that completed, with when each step was reached, as the claim
// showed it.
type move struct {
	op, from, to string

	started   time.Time // the operation was there
	releasing time.Time // its boxes were ready, and a copy was on the target's disk
	released  time.Time // the app had stopped, and all of it was in the store, proven
	handed    time.Time // what is carried over was fixed, and given to the target
	built     time.Time // the new generation was built from it, and verified
	installed time.Time // files and settings were in place on the target
	probed    time.Time // database in place, app started and ready
	serving   time.Time // the operation was complete

	gap time.Duration // the longest between two acknowledged notes around it
}

// movesOf finds the completed moves in the versions of the claim. Steps that are
// one write, or lie between two looks, get one time.
func movesOf(versions []version, notes []ack) (list []move) {
	var m move
	for _, v := range versions {
		op := v.Op
		switch {
		case op.Kind == hostclaim.Relocating && op.ID != m.op:
			m = move{op: op.ID, from: op.Intent.Source.Box, started: v.at}
			m.reach(v)
		case op.Kind == hostclaim.Relocating:
			m.reach(v)
		case op.Kind == hostclaim.Serving && op.ID == m.op && op.Outcome == hostclaim.Completed && m.serving.IsZero():
			m.to, m.serving = op.Exec, v.at
			m.settle()
			list = append(list, m)
		}
	}
	for i := range list {
		until := time.Time{}
		if i+1 < len(list) {
			until = list[i+1].started
		}
		list[i].gap = gapBetween(notes, list[i].started, until)
	}
	return list
}

// reach notes the steps that a version shows.
func (m *move) reach(v version) {
	j := v.Op.Journal
	for _, step := range []struct {
		at      *time.Time
		reached bool
	}{
		{&m.releasing, v.Op.Phase != hostclaim.Starting},
		{&m.released, j.Release != nil},
		{&m.handed, j.Prepared != ""},
		{&m.built, j.PreparedAuthority != nil},
		{&m.installed, j.LocalInstall != nil},
		{&m.probed, j.Probe != nil},
	} {
		if step.at.IsZero() && step.reached {
			*step.at = v.at
		}
	}
}

// settle gives a step that was not seen the time of the next.
func (m *move) settle() {
	later := m.serving
	for _, t := range []*time.Time{&m.probed, &m.installed, &m.built, &m.handed, &m.released, &m.releasing} {
		if t.IsZero() {
			*t = later
		}
		later = *t
	}
}

func (m move) steps() []step {
	return []step{
		{"started", m.started, onProtocol, "the operation began, the app serves on"},
		{"releasing", m.releasing, onBytes, "both boxes were ready, and a copy on the target's disk"},
		{"released", m.released, onBytes, "the app stopped, all of it in the store, and proven"},
		{"handed over", m.handed, onProtocol, "what is carried over was fixed and given to the target"},
		{"built", m.built, onBytes, "the new generation was built from it, and verified"},
		{"installed", m.installed, onBytes, "files and settings were put in place"},
		{"probed", m.probed, onBytes, "database in place, app started and ready"},
		{"serving", m.serving, onProtocol, "the claim names the new home"},
	}
}

// gapBetween is the longest gap between two acknowledged notes of which the
// later is in the time given; a zero until is no end.
func gapBetween(notes []ack, from, until time.Time) (longest time.Duration) {
	for i := 1; i < len(notes); i++ {
		if at := notes[i].at; at.After(from) && (until.IsZero() || at.Before(until)) {
			longest = max(longest, at.Sub(notes[i-1].at))
		}
	}
	return longest
}

// judgeMoves holds what was seen against what a move promises: it loses nothing,
// no client sees an error, and there is one writer. A client may see the agent
// die that was killed under it.
func judgeMoves(ev evidence, failed []error, chaos bool) moves {
	m := moves{outcome: outcome{evidence: ev, unavailable: gap(ev.notes)}, each: movesOf(ev.versions, ev.notes), errors: failed}
	if len(m.each) == 0 {
		m.breaks("the host was never moved")
	}
	if ev.writers > 1 {
		m.breaks("the app ran on %d boxes at one time", ev.writers)
	}
	m.judgeClaims()
	m.judgeRows()
	m.judgeNotes()
	m.judgeUploads()
	m.judgeDeclared()
	if n := len(failed); n > 0 && !chaos {
		m.breaks("clients saw %d errors, the first: %v", n, failed[0])
	}
	return m
}

// judgeDeclared: no session that a move ended is declared lost.
func (m *moves) judgeDeclared() {
	said := map[uint64]bool{}
	for _, v := range m.versions {
		if v.Holder == nil {
			continue
		}
		for _, a := range v.Holder.Admissions {
			if l := a.WritesLost; l != nil && !said[l.Session] {
				said[l.Session] = true
				m.breaks("claim %d declares writes of session %d on %s lost", v.Gen, l.Session, l.Box)
			}
		}
	}
}

// judgeHistory: what clients that append and read at once saw is what one log
// after another could have shown.
func (m *moves) judgeHistory(history []event) {
	if err := checkHistory(history); err != nil {
		m.breaks("%v", err)
	}
	m.recorded = len(history)
}

// median is the middle of what of gives for each move; 0 for none.
func (m moves) median(of func(move) time.Duration) time.Duration {
	if len(m.each) == 0 {
		return 0
	}
	var all []time.Duration
	for _, one := range m.each {
		all = append(all, of(one))
	}
	slices.SortFunc(all, cmp.Compare)
	return all[len(all)/2]
}

// took is how long the step at index i of a move took, since the one before.
func took(m move, i int) time.Duration {
	steps := m.steps()
	return max(0, steps[i].at.Sub(steps[i-1].at))
}

// String is the move in one line.
func (m move) String() string {
	return fmt.Sprintf("%s to %s: %s without a write, moved in %s", m.from, m.to, seconds(m.gap), seconds(m.serving.Sub(m.started)))
}
