package hostguard

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// machine drives one host's guard through steps, crashes and reboots, and knows
// what must never be seen afterwards.
type machine struct {
	dir  string
	boot int
	g    *Guard

	stamp  uint64            // the highest stamp that was ever active
	fenced map[uint64]bool   // stamps whose fence was seen or answered
	ended  map[string]bool   // generations whose end was seen or answered
	opened map[string]string // generation to the boot it was restored in
	gens   int
}

func (m *machine) reopen(t *rapid.T) {
	g, err := Open(m.dir, "h.example", Identity{Box: "box-1", Enrollment: "e-1", BootID: m.bootID()})
	require.NoError(t, err)
	m.g = g
}

func (m *machine) bootID() string { return fmt.Sprint("boot-", m.boot) }
func (m *machine) newest() string { return fmt.Sprint("g-", m.gens) }
func (m *machine) at() uint64     { s, _ := m.g.Active(); return s.Stamp }
func (m *machine) crashing() bool { return m.g.disk.before != nil }
func (m *machine) maybe(t *rapid.T) { // the next write may be cut at any step
	if n := rapid.IntRange(-12, 6).Draw(t, "crash at"); n > 0 {
		m.g.disk.before = crashAt(n)
	}
}

// do runs one step in the session journal under the active stamp, under
// whichever authority is there.
func (m *machine) do(t *rapid.T, fn func(*Held) error) error {
	at, err := m.g.Active()
	require.NoError(t, err)
	if at.Fence != "" {
		return m.g.WithFence(t.Context(), at.Stamp, at.Fence, fn)
	}
	return m.g.With(t.Context(), at.Stamp, fn)
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"activate": func(t *rapid.T) {
			m.maybe(t)
			stamp := rapid.Uint64Range(max(m.stamp, 2)-1, m.stamp+2).Draw(t, "stamp")
			if m.g.Activate(t.Context(), "i-1", stamp) == nil {
				require.GreaterOrEqual(t, stamp, m.stamp)
			}
		},
		"fence": func(t *rapid.T) {
			m.maybe(t)
			if at := m.at(); m.g.BeginFence(t.Context(), at, "op-1") == nil {
				m.fenced[at] = true
			}
		},
		"admit": func(t *rapid.T) {
			m.maybe(t)
			m.gens++
			at := m.at()
			if m.g.With(t.Context(), at, func(h *Held) error { return h.AskSession(m.newest()) }) == nil {
				require.False(t, m.fenced[at])
			}
		},
		"restored": func(t *rapid.T) {
			m.maybe(t)
			gen := m.newest()
			if m.do(t, func(h *Held) error { return h.RestoredSession(gen) }) == nil {
				require.False(t, m.ended[gen])
				require.Empty(t, m.opened[gen], "restored twice")
				m.opened[gen] = m.bootID()
			}
		},
		"end": func(t *rapid.T) {
			m.maybe(t)
			gen := m.newest()
			if m.do(t, func(h *Held) error { return h.EndSession(gen, Final{TXID: 9}) }) == nil {
				m.ended[gen] = true
			}
		},
		"flush": func(t *rapid.T) {
			gen := m.newest()
			if m.do(t, func(h *Held) error { return h.Flushable(gen) }) == nil {
				require.False(t, m.ended[gen])
				require.Equal(t, m.bootID(), m.opened[gen])
			}
		},
		"reboot": func(t *rapid.T) { m.boot++; m.reopen(t) },
		"":       m.check,
	}
}

// check lets a crashed process be followed by another, and holds what that one
// reads to everything that was seen or answered before.
func (m *machine) check(t *rapid.T) {
	if m.crashing() {
		m.reopen(t)
	}
	at, err := m.g.Active()
	require.NoError(t, err)
	require.GreaterOrEqual(t, at.Stamp, m.stamp)
	m.stamp = at.Stamp
	require.False(t, m.fenced[at.Stamp] && at.Fence == "", "a fence was lifted")
	m.fenced[at.Stamp] = at.Fence != ""
	s, found, err := m.g.Session()
	require.NoError(t, err)
	if found {
		require.False(t, m.ended[s.Generation] && s.Step != Ended, "an ended session is open again")
		m.ended[s.Generation] = s.Step == Ended
		if s.Step == Restored {
			m.opened[s.Generation] = s.BootID
		}
	}
}

// memoryDir is a directory where a sync costs nothing, if there is one.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "hostguard")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestTheGuardNeverGoesBack(t *testing.T) {
	root := memoryDir(t)
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		require.NoError(t, err)
		m := &machine{dir: dir, fenced: map[uint64]bool{}, ended: map[string]bool{}, opened: map[string]string{}}
		m.reopen(t)
		t.Repeat(m.actions())
	})
}
