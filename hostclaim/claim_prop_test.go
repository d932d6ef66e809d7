package hostclaim_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostclaim/claimtest"
	"github.com/carlosframework/regionha/internal/record"
)

const (
	testHost   = "notes.demo.example"
	testRegion = "ie"
)

var (
	ctx   = context.Background()
	epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	sequences = flag.Int("sequences", walkedSequences, "how many sequences TestManySequences drives")
	seed      = flag.Uint64("seed", 0, "the first of them")
)

// TestProperties holds random sequences to every property of the claim. rapid
// makes one that fails as short as it can.
func TestProperties(t *testing.T) {
	o := claimtest.Options{Proofs: claimtest.NewProofs(t)}
	rapid.Check(t, func(t *rapid.T) { claimtest.Check(t, o) })
}

// TestManySequences does the same from seeds, many times faster. A million:
//
//	go test ./hostclaim -run TestManySequences -timeout 0 -args -sequences=1000000
func TestManySequences(t *testing.T) {
	if *sequences <= walkedSequences && *seed == 0 {
		t.Log(walk(t).report)
		return
	}
	drive(t, *seed, *sequences, claimtest.Options{Proofs: claimtest.NewProofs(t)})
}

// drive runs sequences, and tells how far it is.
func drive(t *testing.T, seed uint64, sequences int, o claimtest.Options) claimtest.Report {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // what a sequence leaves behind is half of its cost
	var all claimtest.Report
	for n := range uint64(sequences) {
		r, err := claimtest.Run(seed+n, o)
		require.NoError(t, err)
		all.Add(r)
		if (n+1)%10_000 == 0 {
			t.Log(all)
		}
	}
	return all
}

// TestTheSequencesReachWhatMattersMost holds the generator to what a weak one
// would never see.
func TestTheSequencesReachWhatMattersMost(t *testing.T) {
	r := walk(t).report
	require.NotZero(t, r.Resolved, "no operator resolved anything")
	for line := range strings.SplitSeq(strings.TrimSpace(reached), "\n") {
		where, step, _ := strings.Cut(strings.TrimSpace(line), ": ")
		step, fault, _ := strings.Cut(step, " / ")
		kind, phase, _ := strings.Cut(where, " ")
		want := claimtest.Tuple{Kind: hostclaim.Kind(kind), Phase: hostclaim.Phase(phase), Step: step, Fault: claimtest.Fault(fault)}
		assert.NotZero(t, r.Tuples[want], "%s was never reached", line)
	}
}

// reached is what must happen: the kind and phase, the step, and the fault that
// befell its write.
const reached = `
	creating: complete create
	creating: complete create / lost answer
	creating: cancel create
	creating: cancel lost create
	serving: admit / held
	serving: admit / lost answer
	serving: start failover
	serving: start failover / lost answer
	serving: start failover / stale
	serving: start drain
	serving: begin delete
	relocating starting: admit
	relocating starting: fence source
	relocating starting: replace target
	relocating starting: abandon target
	relocating starting: cancel drain
	relocating releasing: admit
	relocating releasing: fence source
	relocating releasing: journal release / lost answer
	relocating releasing: journal release / held
	relocating releasing: replace target
	relocating releasing: stuck: release overdue
	relocating releasing: resolve
	relocating pinning: journal pin / held
	relocating pinning: replace target
	relocating pinning: abandon target
	relocating pinning: stuck: pin uncovered
	relocating pinning: resolve
	relocating pinning: fence target without spare
	relocating installing: accept build / retried
	relocating installing: replace target
	relocating installing: abandon target
	relocating installed: replace target
	relocating installed: abandon target
	relocating installed: local install / retried
	relocating probing: open
	relocating probing: open / lost answer
	relocating probing: open / held
	relocating probing: install and open
	relocating probing: admit / retried
	relocating probing: replace target
	relocating probing: receipt lost
	relocating probing: to probe-failed
	relocating probing: fence target without spare
	relocating probing: complete relocation / stale
	relocating probe-failed: journal release
	relocating probe-failed: pin after release and name
	relocating probe-failed: replace target
	relocating probe-failed: abandon target
	relocating probe-failed: resolve
	deleting: journal release
	deleting: fence source
	deleting: stuck: release overdue
	parking: complete park-local
	parking: complete park-replica
	parking: disks destroyed
	parking: free host
	free: begin create
	free: begin sweep
`

// TestAClaimWhoseLossesAreReportedStaysSmall leaves everything undone but that:
// no chore is ever done, thousands of steps long, in a region that loses dozens
// of boxes.
func TestAClaimWhoseLossesAreReportedStaysSmall(t *testing.T) {
	const limit = 64 << 10
	steps := 5000
	if testing.Short() {
		steps = 1000
	}
	choice := rand.New(rand.NewPCG(1, 0))
	w := claimtest.NewWorld(claimtest.NewProofs(t), 60)
	o := hostclaim.Observed{Host: w.Host}
	largest := 0
	for range steps {
		befall(w, o.Claim, choice)
		o = reported(t, w, neglected(w, o, choice))
		body, err := record.Encode(o.Claim)
		require.NoError(t, err)
		largest = max(largest, len(body))
		require.Less(t, len(body), limit, "%d boxes lost, %d chores", len(o.Claim.Lost), len(o.Claim.Obligations))
	}
	t.Logf("the largest of %d claims has %d bytes; %d boxes are lost", o.Claim.Gen, largest, len(o.Claim.Lost))
	require.True(t, testing.Short() || len(o.Claim.Lost) > 24)
}

// befall lets boxes die and others come, time pass, and apps write.
func befall(w *claimtest.World, c *hostclaim.Claim, choice *rand.Rand) {
	w.Now = w.Now.Add(time.Duration(choice.IntN(4)) * time.Minute)
	for _, b := range w.Boxes {
		w.Write(b.Ref)
	}
	if n := len(w.Generations); n > 0 {
		w.Upload(w.Generations[n-1].ID)
	}
	if c == nil || choice.IntN(15) > 0 {
		return
	}
	able := 0 // to take the host
	for _, b := range w.Boxes {
		if !b.Gone() && !c.Owes(b.Ref, hostclaim.ParkLocal) {
			able++
		}
	}
	for _, ref := range []string{c.Op.Exec, c.Op.Target().Box} {
		if b := w.Box(ref); b != nil && !b.Gone() && able > 3 && choice.IntN(2) == 0 {
			w.Fence(ref)
		}
	}
}

// neglected makes a random step of anyone, but of nobody who puts things away.
func neglected(w *claimtest.World, o hostclaim.Observed, choice *rand.Rand) hostclaim.Observed {
	list := claimtest.Steps(w, o)
	from := choice.IntN(len(list))
	for i := range list {
		s := list[(from+i)%len(list)]
		switch s.Name {
		case "begin delete", "cancel create", "disks destroyed", "complete park-local", "complete park-generation", "complete park-replica":
			continue
		}
		c, err := o.Next("w", s.Transition)
		if err != nil {
			continue
		}
		s.Send(w)
		w.Learn(s.Actor, c)
		return hostclaim.Observed{Host: o.Host, Claim: c}
	}
	return o
}

// reported tells a person of every loss.
func reported(t *testing.T, w *claimtest.World, o hostclaim.Observed) hostclaim.Observed {
	t.Helper()
	for again := true; again; {
		again = false
		for _, s := range claimtest.Steps(w, o) {
			if strings.HasPrefix(s.Name, "report") {
				c, err := o.Next("w", s.Transition)
				require.NoError(t, err)
				o.Claim, again = c, true
				break
			}
		}
	}
	return o
}
