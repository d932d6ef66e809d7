package claimtest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostclaim/claimtest"
)

func TestASeedAlwaysMakesTheSameSequence(t *testing.T) {
	for seed := range uint64(50) {
		one, err := claimtest.Run(seed, claimtest.Options{Proofs: claimtest.NewProofs(t)})
		require.NoError(t, err)
		two, err := claimtest.Run(seed, claimtest.Options{Proofs: claimtest.NewProofs(t)})
		require.NoError(t, err)
		one.Took, two.Took = 0, 0
		require.Equal(t, one, two)
	}
}

// liar ends its session as soon as it may, where the store is, not where its
// clients are.
type liar struct{ box string }

func (l liar) Actor() string { return l.box }

func (l liar) Next(w *claimtest.World, o hostclaim.Observed) hostclaim.Transition {
	c := o.Claim
	b := w.Box(l.box)
	if c == nil || c.Holder == nil || c.Op.Exec != l.box || b == nil {
		if c != nil && c.Op.Kind == hostclaim.Creating && c.Op.Intent.Selected.Box == l.box {
			return hostclaim.CompleteCreate(c.Op.ID, l.box, b.Enrollment)
		}
		return nil
	}
	h := c.Holder
	baseline, ok := w.Baseline(c)
	switch {
	case h.Session == 0, h.Ended != nil && ok:
		a := hostclaim.Admission{Op: c.Op.ID, Phase: c.Op.Phase, Session: h.Session, Generation: h.Generation, Box: l.box,
			NewGeneration: w.ID("g"), KeepStamp: h.Stamp > h.Session, Baseline: baseline}
		if h.Ended != nil {
			a.Coverage = hostclaim.CleanReturn
		}
		return hostclaim.AdmitWriter(a)
	case b.Session == h.Session && h.Ended == nil:
		final := baseline // what is durable, with writes still under way
		return hostclaim.EndSession(l.box, h.Session, final)
	}
	return nil
}

// A box that ends its session short of what it promised loses it, and nothing
// declares that: the checker must say so.
func TestADriverThatLosesWhatItPromisedIsFoundOut(t *testing.T) {
	o := claimtest.Options{Proofs: claimtest.NewProofs(t), Boxes: 1, Steps: 60, Drivers: func() []claimtest.Driver {
		return []claimtest.Driver{liar{"box-1"}}
	}}
	for seed := range uint64(2000) {
		if _, err := claimtest.Run(seed, o); err != nil && strings.Contains(err.Error(), "property 4") {
			return // it also never releases, which others say
		}
	}
	t.Fatal("2000 sequences and nobody noticed")
}

func TestStepsChangeNothingAndAreTheSameTwice(t *testing.T) {
	w := claimtest.NewWorld(claimtest.NewProofs(t), 3)
	o := hostclaim.Observed{Host: w.Host}
	for range 40 {
		before := w.Clone()
		list := claimtest.Steps(w, o)
		require.True(t, w.Equal(before))
		again := claimtest.Steps(w, o)
		require.Len(t, again, len(list))
		moved := false
		for i, s := range list {
			require.Equal(t, s.Actor+s.Name, again[i].Actor+again[i].Name)
			require.NotEmpty(t, s.Calls(), s.Name)
			if c, err := o.Next("n", s.Transition); err == nil && !moved {
				moved = true
				other, err := o.Next("n", again[i].Transition)
				require.NoError(t, err)
				require.Equal(t, c, other)
				s.Send(w)
				w.Learn(s.Actor, c)
				o = hostclaim.Observed{Host: w.Host, Claim: c}
				break
			}
		}
		w.Now = w.Now.Add(hostclaim.AckDeadline)
	}
}
