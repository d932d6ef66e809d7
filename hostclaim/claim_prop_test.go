package hostclaim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/termfence"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

const (
	testHost   = "notes.demo.example"
	testRegion = "ie"
)

var (
	ctx   = context.Background()
	epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	refs  = []string{"box-1", "box-2", "box-3", "box-4"}
)

// world drives one claim by boxes and a worker that act on what they last saw,
// lose answers, die, and repeat themselves.
type world struct {
	t     *rapid.T
	s     *memstore.Store
	seen  map[string]hostclaim.Observed // by actor
	dead  map[string]bool
	proof map[string]termfence.Evidence

	durable map[string]uint64 // newest TXID in the store, by generation
	now     time.Time
	ids     int
	history []*hostclaim.Claim
	checked uint64
}

func newWorld(t *rapid.T, proof map[string]termfence.Evidence) *world {
	return &world{t: t, s: memstore.New(), seen: map[string]hostclaim.Observed{}, dead: map[string]bool{},
		proof: proof, durable: map[string]uint64{}, now: epoch}
}

func (w *world) id(prefix string) string { w.ids++; return fmt.Sprintf("%s-%d", prefix, w.ids) }

func (w *world) member(box string) hostclaim.Member {
	return hostclaim.Member{Box: box, Enrollment: "enr-" + box}
}

// try makes one step of an actor from its own observation, which may be stale.
func (w *world) try(actor string, t hostclaim.Transition) {
	o := w.seen[actor]
	next, err := hostclaim.Update(ctx, w.s, o, t)
	if err != nil {
		return
	}
	w.history = append(w.history, next.Claim)
	w.seen[actor] = next
	_, err = hostclaim.Update(ctx, w.s, o, t)
	require.ErrorIs(w.t, err, hostclaim.ErrConflict, "the same step from the same observation")
	_, err = next.Next("n", t)
	require.Error(w.t, err, "the same step twice")
	require.True(w.t, errors.Is(err, hostclaim.ErrAlreadyRecorded) || errors.Is(err, hostclaim.ErrWrongState), "%v", err)
}

func (w *world) observe(actor string) {
	o, err := hostclaim.Read(ctx, w.s, testHost)
	require.NoError(w.t, err)
	if o.Claim == nil {
		o = hostclaim.Observed{Host: testHost}
	}
	w.seen[actor] = o
}

// baseline is what an honest box restores: the newest generation that holds
// anything, and the newest files manifest.
func (w *world) baseline(c *hostclaim.Claim) hostclaim.Position {
	var p hostclaim.Position
	for _, l := range c.Chain() {
		if n := w.durable[l.Generation]; n > 0 {
			p.Generation, p.TXID = l.Generation, n
			if l.StopAt > 0 {
				p.TXID = l.StopAt
			}
			break
		}
	}
	if chain := c.FilesChain(); len(chain) > 0 {
		p.FilesGeneration, p.FilesSeq = chain[0], 1
	}
	return p
}

func (w *world) admission(c *hostclaim.Claim, box string) hostclaim.Admission {
	a := hostclaim.Admission{Op: c.Op.ID, Phase: c.Op.Phase, Session: c.Holder.Session, Generation: c.Holder.Generation,
		Box: box, NewGeneration: w.id("g"), Baseline: w.baseline(c)}
	if c.Op.Kind == hostclaim.Relocating && c.Op.Journal.PreparedOpened == "" {
		a.NewGeneration, a.KeepStamp = c.Op.Journal.Prepared, true
		if p := c.Op.Journal.Pin; p != nil {
			a.Baseline = p.Position
		}
	}
	if c.Holder.Ended != nil && rapid.Bool().Draw(w.t, "clean") {
		a.Coverage = hostclaim.CleanReturn
	}
	return a
}

func (w *world) boxStep(box string) {
	if steps := w.boxSteps(box); steps != nil {
		w.try(box, pick(w.t, "box step", steps)())
	}
}

// fastForward begins a sequence somewhere on the whole path: a served host whose
// box dies, again and again.
func (w *world) fastForward(steps int) {
	for range steps {
		o := w.seen["worker"]
		if c := o.Claim; c != nil && c.Holder != nil && c.Op.Kind == hostclaim.Serving && c.Holder.Session > 0 && len(refs)-len(w.dead) > 1 {
			w.durable[c.Holder.Generation]++
			w.dead[c.Op.Exec] = true
		}
		w.now = w.now.Add(time.Second)
		w.progress()
		w.check()
	}
}

// progress makes the step that the claim waits for.
func (w *world) progress() {
	w.observe("worker")
	c := w.seen["worker"].Claim
	if c == nil || c.Holder == nil {
		w.workerStep()
		return
	}
	box := w.executor()
	w.observe(box)
	byWorker := map[hostclaim.Phase]string{hostclaim.Pinning: "hand over", hostclaim.Installing: "accept"}
	if c.Op.Kind == hostclaim.Serving && w.dead[c.Op.Exec] {
		byWorker[""] = "failover"
	}
	if c.Op.Phase == hostclaim.Starting && c.Op.Acknowledged() {
		byWorker[hostclaim.Starting] = "pin"
	}
	if c.Op.Journal.Probe != nil {
		byWorker[hostclaim.Probing] = "complete"
	}
	if step, ok := byWorker[c.Op.Phase]; ok && c.Op.Kind != hostclaim.Creating {
		w.try("worker", w.workerSteps()[step]())
		return
	}
	byBox := map[hostclaim.Phase]string{"": "admit", hostclaim.Starting: "acknowledge", hostclaim.Installed: "open", hostclaim.Probing: "probe"}
	step := byBox[c.Op.Phase]
	if c.Op.Kind == hostclaim.Creating {
		step = "complete create"
	}
	w.try(box, w.boxSteps(box)[step]())
}

func (w *world) boxSteps(box string) map[string]func() hostclaim.Transition {
	c := w.seen[box].Claim
	if c == nil || c.Holder == nil {
		return nil
	}
	return map[string]func() hostclaim.Transition{
		"complete create": func() hostclaim.Transition {
			return hostclaim.CompleteCreate(c.Op.ID, box, w.member(box).Enrollment)
		},
		"acknowledge": func() hostclaim.Transition {
			return hostclaim.Acknowledge(c.Op.ID, box, w.member(box).Enrollment)
		},
		"install": func() hostclaim.Transition { return hostclaim.RecordLocalInstall(c.Op.ID, w.install(c, box)) },
		"probing": func() hostclaim.Transition { return hostclaim.ToProbing(c.Op.ID, w.now) },
		"attempt": func() hostclaim.Transition {
			return hostclaim.BeginProbeAttempt(c.Op.ID, c.Op.Journal.ProbeAttempts+1)
		},
		"admit": func() hostclaim.Transition { return hostclaim.AdmitWriter(w.admission(c, box)) },
		"open": func() hostclaim.Transition {
			opening := w.admission(c, box)
			opening.Phase = hostclaim.Probing // where the steps before it lead
			return hostclaim.Then(hostclaim.RecordLocalInstall(c.Op.ID, w.install(c, box)), hostclaim.ToProbing(c.Op.ID, w.now),
				hostclaim.BeginProbeAttempt(c.Op.ID, 1), hostclaim.AdmitWriter(opening))
		},
		"publish": func() hostclaim.Transition { return hostclaim.PublishGeneration(box, c.Holder.Session) },
		"probe":   func() hostclaim.Transition { return hostclaim.RecordProbe(c.Op.ID, box, c.Holder.Session) },
		"end":     func() hostclaim.Transition { return hostclaim.EndSession(box, c.Holder.Session, w.final(c)) },
	}
}

func (w *world) install(c *hostclaim.Claim, box string) hostclaim.LocalInstall {
	l := hostclaim.LocalInstall{Box: box, Enrollment: w.member(box).Enrollment, InstallStamp: c.Op.Journal.InstallStamp, FilesManifest: "m"}
	if a := c.Op.Journal.PreparedAuthority; a != nil {
		l.SHA256 = a.FilesManifestSHA256
	}
	return l
}

func (w *world) final(c *hostclaim.Claim) hostclaim.Position {
	g := c.Holder.Generation
	return hostclaim.Position{Generation: g, TXID: w.durable[g], FilesGeneration: g, FilesSeq: 1}
}

func (w *world) workerStep() {
	o := w.seen["worker"]
	c := o.Claim
	if c == nil || c.Holder == nil {
		n := hostclaim.NewHost{Incarnation: w.id("inc"), Account: "demo", App: "notes", RecordKey: "apps/x", RecordSHA256: "abc", Region: testRegion}
		w.try("worker", hostclaim.BeginCreate(n, w.id("op"), "console", w.now, w.member(w.box("selected"))))
		return
	}
	w.try("worker", pick(w.t, "worker step", w.workerSteps())())
}

func (w *world) workerSteps() map[string]func() hostclaim.Transition {
	c := w.seen["worker"].Claim
	return map[string]func() hostclaim.Transition{
		"failover": func() hostclaim.Transition {
			return hostclaim.StartFailover(hostclaim.Relocation{Op: w.id("op"), By: "worker", Now: w.now, PinDelay: time.Second,
				Source: w.member(c.Op.Exec), Target: w.member(w.box("target"))}, gone(w.evidence(c.Op.Exec)))
		},
		"cancel": func() hostclaim.Transition { return hostclaim.CancelCreate(c.Op.ID, "late") },
		"pin":    func() hostclaim.Transition { return hostclaim.PinFailover(c.Op.ID, w.now) },
		"hand over": func() hostclaim.Transition {
			return hostclaim.Then(hostclaim.JournalPin(c.Op.ID, w.pin(c)), hostclaim.ToInstalling(c.Op.ID, w.id("p"), w.now))
		},
		"accept":   func() hostclaim.Transition { return hostclaim.ToInstalled(c.Op.ID, w.authority(c), w.now) },
		"complete": func() hostclaim.Transition { return hostclaim.CompleteRelocation(c.Op.ID) },
	}
}

// evidence is only ever about a box that is dead.
func (w *world) evidence(box string) termfence.Evidence {
	if !w.dead[box] {
		return termfence.Evidence{}
	}
	return w.proof[box]
}

func (w *world) pin(c *hostclaim.Claim) hostclaim.Pin {
	p := hostclaim.Pin{Key: hostclaim.PinKey(testHost, c.Op.ID, c.Gen), SHA256: "s", ListedAt: w.now, Position: w.baseline(c)}
	if p.Position.FilesGeneration != "" {
		p.FilesSHA256 = "f"
	}
	return p
}

func (w *world) authority(c *hostclaim.Claim) hostclaim.PreparedAuthority {
	a := hostclaim.PreparedAuthority{Generation: c.Op.Journal.Prepared, InstallManifest: "k", SHA256: "s", FilesManifestSHA256: "f"}
	if p := c.Op.Journal.Pin; p != nil {
		a.SnapshotTXID, a.SourceFilesSeq = p.Position.TXID, p.Position.FilesSeq
	}
	return a
}

func (w *world) box(label string) string { return rapid.SampledFrom(refs).Draw(w.t, label) }

func pick(t *rapid.T, label string, steps map[string]func() hostclaim.Transition) func() hostclaim.Transition {
	names := make([]string, 0, len(steps))
	for name := range steps {
		names = append(names, name)
	}
	return steps[rapid.SampledFrom(slices.Sorted(slices.Values(names))).Draw(t, label)]
}

func TestProperties(t *testing.T) {
	proof := map[string]termfence.Evidence{}
	for _, b := range refs {
		proof[b] = fencetest.Evidence(t, b, "enr-"+b, testRegion, epoch)
	}
	failovers := map[int]int{} // sequences, by how many failovers they completed
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, proof)
		w.observe("worker")
		w.fastForward(rapid.IntRange(0, 30).Draw(t, "begin after"))
		t.Repeat(map[string]func(*rapid.T){
			"worker sees":   func(*rapid.T) { w.observe("worker") },
			"worker acts":   func(*rapid.T) { w.workerStep() },
			"a box sees":    func(*rapid.T) { w.observe(w.box("sees")) },
			"a box acts":    func(*rapid.T) { w.boxStep(w.box("acts")) },
			"progress":      func(*rapid.T) { w.progress() },
			"more progress": func(*rapid.T) { w.progress() },
			"a box looks and acts": func(t *rapid.T) {
				b := w.executor()
				w.observe(b)
				w.boxStep(b)
			},
			"the executor's box dies": func(*rapid.T) {
				if alive := len(refs) - len(w.dead); alive > 1 {
					w.dead[w.executor()] = true
				}
			},
			"time passes":         func(*rapid.T) { w.now = w.now.Add(time.Second) },
			"a write gets stored": func(t *rapid.T) { w.writeDurably(t) },
			"an answer is lost":   func(*rapid.T) { w.loseAnswer() },
			"":                    func(*rapid.T) { w.check() },
		})
		completed := 0
		for i, c := range w.history {
			if c.Op.Kind == hostclaim.Serving && i > 0 && w.history[i-1].Op.Kind == hostclaim.Relocating {
				completed++
			}
		}
		failovers[completed]++
	})
	require.Greater(t, failovers[1], 5, "too few sequences completed a failover: the generator is too weak")
	require.NotZero(t, failovers[2], "no sequence completed two")
}

// executor is the box that the operation waits for, or any.
func (w *world) executor() string {
	o, err := hostclaim.Read(ctx, w.s, testHost)
	require.NoError(w.t, err)
	if o.Claim != nil {
		for _, b := range []string{o.Claim.Op.Exec, o.Claim.Op.Intent.Selected.Box, o.Claim.Op.Target().Box} {
			if b != "" && b != hostclaim.None {
				return b
			}
		}
	}
	return w.box("any")
}

func (w *world) writeDurably(t *rapid.T) {
	o, err := hostclaim.Read(ctx, w.s, testHost)
	require.NoError(t, err)
	if o.Claim == nil || o.Claim.Holder == nil || o.Claim.Holder.Session == 0 || o.Claim.Holder.Ended != nil {
		return
	}
	w.durable[o.Claim.Holder.Generation]++
}

// loseAnswer applies a write whose writer never learns of it.
func (w *world) loseAnswer() {
	before := w.seen
	w.seen = map[string]hostclaim.Observed{}
	for a, o := range before {
		w.seen[a] = o
	}
	w.observe("worker")
	w.workerStep()
	w.seen = before
}

func (w *world) check() {
	o, err := hostclaim.Read(ctx, w.s, testHost)
	require.NoError(w.t, err)
	if o.Claim == nil || o.Claim.Gen == w.checked {
		return
	}
	w.checked = o.Claim.Gen
	w.oneWriter(o)
	w.onlyGrows()
	w.declaredOnce()
}

func (w *world) oneWriter(o hostclaim.Observed) {
	may := map[string]bool{}
	for _, b := range refs {
		if o.Claim.Holder == nil {
			continue
		}
		base := w.admission(o.Claim, b)
		for _, keep := range []bool{true, false} {
			for _, g := range []string{base.NewGeneration, o.Claim.Op.Journal.Prepared, "fresh"} {
				a := base
				a.KeepStamp, a.NewGeneration = keep, g
				if _, err := o.Next("n", hostclaim.AdmitWriter(a)); err == nil {
					may[b] = true
				}
			}
		}
	}
	require.LessOrEqual(w.t, len(may), 1, "%v may all be admitted", may)
	for b := range may {
		require.Equal(w.t, o.Claim.Op.Exec, b)
		require.False(w.t, o.Claim.IsLost(b) && o.Claim.Op.Kind == hostclaim.Relocating)
	}
}

func (w *world) onlyGrows() {
	generations, sessions, builds := map[string]uint64{}, map[uint64]string{}, map[string]hostclaim.PreparedAuthority{}
	for i, c := range w.history {
		require.Equal(w.t, uint64(i+1), c.Gen)
		if a := c.Op.Journal.PreparedAuthority; a != nil {
			if was, ok := builds[a.Generation]; ok {
				require.Equal(w.t, was, *a, "a prepared generation was built again")
			}
			builds[a.Generation] = *a
		}
		if c.Holder == nil {
			continue
		}
		if i > 0 && w.history[i-1].Holder != nil {
			require.GreaterOrEqual(w.t, c.Holder.Stamp, w.history[i-1].Holder.Stamp)
			require.GreaterOrEqual(w.t, c.Holder.Session, w.history[i-1].Holder.Session)
		}
		for _, r := range c.Holder.Admissions {
			if s, ok := generations[r.Generation]; ok {
				require.Equal(w.t, s, r.Session, "two sessions share %s", r.Generation)
			}
			if g, ok := sessions[r.Session]; ok {
				require.Equal(w.t, g, r.Generation, "session %d has two generations", r.Session)
			}
			generations[r.Generation], sessions[r.Session] = r.Session, r.Generation
		}
	}
}

// declaredOnce: every uncovered admission declares exactly its predecessor, no
// session is declared twice, and a covered one declares nothing.
func (w *world) declaredOnce() {
	if len(w.history) == 0 || w.history[len(w.history)-1].Holder == nil {
		return
	}
	declared := map[uint64]bool{}
	list := w.history[len(w.history)-1].Holder.Admissions
	for i, r := range list {
		if i == 0 {
			continue
		}
		before := list[i-1]
		if r.Coverage != hostclaim.Uncovered {
			require.Nil(w.t, r.WritesLost)
			require.Equal(w.t, w.durable[before.Generation] > 0, r.Baseline.Generation == before.Generation,
				"a covered admission that does not reach its predecessor")
			continue
		}
		require.NotNil(w.t, r.WritesLost)
		require.Equal(w.t, before.Session, r.WritesLost.Session)
		require.Equal(w.t, before.Generation, r.WritesLost.Generation)
		require.False(w.t, declared[before.Session])
		declared[before.Session] = true
		if r.Baseline.Generation == before.Generation {
			require.Equal(w.t, r.Baseline.TXID, r.WritesLost.RemoteMaxTXID)
		}
	}
}
