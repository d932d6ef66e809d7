package roster_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

// TestProperties drives consoles that edit, legally or not, over a store that
// loses and delays their writes and may be rolled back, and holds whatever any
// reader is given to the guarantees of the package.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"edit":     m.edit,
			"deliver":  m.deliver,
			"rollback": m.rollback,
			"read":     m.read,
		})
	})
}

type model struct {
	store    *memstore.Store
	private  ed25519.PrivateKey
	consoles []*roster.Directory
	readers  []*reader
	fault    memstore.Fault

	rolledBack bool // nothing is for ever then
	enrolled   map[string]roster.Box
	issued     int // enrollments so far
}

// reader is a directory with the newest roster that it returned.
type reader struct {
	dir  *roster.Directory
	seen roster.Snapshot
}

func newModel(t *rapid.T) *model {
	m := &model{store: memstore.New(), enrolled: make(map[string]roster.Box)}
	var public ed25519.PublicKey
	public, m.private = roster.GenerateKey()
	first := valid()
	first.Boxes = nil
	_, err := roster.Create(context.Background(), m.store, m.private, first)
	require.NoError(t, err)
	for range 2 {
		m.consoles = append(m.consoles, roster.Open(m.store, public, bucket))
		m.readers = append(m.readers, &reader{dir: roster.Open(m.store, public, bucket)})
	}
	m.store.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op != memstore.OpPut {
			return memstore.None
		}
		defer func() { m.fault = memstore.None }()
		return m.fault
	})
	return m
}

var refs = []string{"box-1", "box-2", "box-3", "box-4"}

// edit lets one console make one change; few of the changes are legal.
func (m *model) edit(t *rapid.T) {
	ref := rapid.SampledFrom(refs).Draw(t, "ref")
	state := rapid.SampledFrom([]roster.State{roster.Active, roster.Quarantined, roster.Retired, "gone"}).Draw(t, "state")
	as := rapid.SampledFrom(append(refs, "", "")).Draw(t, "readmitted as")
	instance := fmt.Sprintf("i-%d", rapid.IntRange(1, 3).Draw(t, "instance"))
	kind := rapid.SampledFrom([]string{"add", "replace", "delete", "state", "quarantine", "drain", "nothing"}).Draw(t, "kind")
	m.fault = rapid.SampledFrom([]memstore.Fault{memstore.None, memstore.None, memstore.None, memstore.LoseAnswer,
		memstore.Lose, memstore.Hold, memstore.Replay, memstore.Refuse}).Draw(t, "fault")
	change := func(r *roster.Roster) error {
		b, held := r.Boxes[ref]
		switch {
		case kind == "add" && !held, kind == "replace":
			m.issued++
			r.Boxes[ref] = box(fmt.Sprintf("e-%d", m.issued), instance)
		case kind == "delete":
			delete(r.Boxes, ref)
		case kind == "state" && held:
			b.State, b.ReadmittedAs = state, as
			r.Boxes[ref] = b
		case kind == "quarantine":
			return r.Quarantine(ref)
		case kind == "drain" && held:
			b.Draining = !b.Draining
			r.Boxes[ref] = b
		}
		return nil
	}
	console := rapid.SampledFrom(m.consoles).Draw(t, "console")
	_, err := roster.Update(context.Background(), m.store, m.private, console, change)
	m.fault = memstore.None
	for _, known := range []error{nil, roster.ErrInvalid, roster.ErrUntrusted,
		objstore.ErrConflict, objstore.ErrUnknown, objstore.ErrSuperseded} {
		if errors.Is(err, known) {
			return
		}
	}
	t.Fatalf("unexpected: %v", err)
}

// deliver lets a delayed write arrive.
func (m *model) deliver(t *rapid.T) {
	held := m.store.Held()
	if len(held) == 0 {
		t.Skip("nothing is held")
	}
	_, _ = rapid.SampledFrom(held).Draw(t, "held").Deliver() // a conflict or not
}

// rollback puts an older roster back, as a restored bucket would.
func (m *model) rollback(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "rarely") != 0 {
		t.Skip("not this time")
	}
	old := rapid.SampledFrom(m.store.Log()).Draw(t, "write")
	_, err := m.store.Put(context.Background(), roster.Key, old.Body, objstore.Always())
	require.NoError(t, err)
	m.rolledBack = true
}

func (m *model) read(t *rapid.T) {
	r := rapid.SampledFrom(m.readers).Draw(t, "reader")
	snap, err := r.dir.Read(context.Background())
	if err != nil {
		require.ErrorIs(t, err, roster.ErrUntrusted)
		require.True(t, m.rolledBack, "only a rollback makes a signed roster untrusted: %v", err)
		return
	}
	require.GreaterOrEqual(t, snap.Revision, r.seen.Revision)
	require.GreaterOrEqual(t, snap.Gen, r.seen.Gen)
	if snap.Gen == r.seen.Gen {
		require.Equal(t, r.seen.SHA256, snap.SHA256, "one gen is one roster")
	}
	r.seen = snap
	holder := make(map[string]string)
	for ref, b := range snap.Boxes {
		if b.ReadmittedAs != "" {
			require.Equal(t, roster.Retired, b.State)
			require.Equal(t, b.Cloud, snap.Boxes[b.ReadmittedAs].Cloud)
			continue
		}
		require.Empty(t, holder[b.Cloud.InstanceID], "one instance, one box")
		holder[b.Cloud.InstanceID] = ref
	}
	if !m.rolledBack {
		m.forEver(t, snap)
	}
}

// forEver holds every entry to what any reader was told of it before.
func (m *model) forEver(t *rapid.T, snap roster.Snapshot) {
	for ref, was := range m.enrolled {
		is, ok := snap.Box(ref)
		require.True(t, ok, "an entry goes")
		require.Equal(t, was.Enrollment, is.Enrollment)
		require.Equal(t, was.Cloud, is.Cloud)
		require.False(t, was.State == roster.Retired && is.State != roster.Retired)
		require.False(t, was.State == roster.Quarantined && is.State == roster.Active)
	}
	for ref := range snap.Boxes {
		m.enrolled[ref], _ = snap.Box(ref)
	}
}
