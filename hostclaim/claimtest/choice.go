package claimtest

import (
	"math/rand/v2"

	"pgregory.net/rapid"
)

// choices decides what happens.
type choices interface {
	// below returns a number from 0 to n-1; n is 1 or more.
	below(n int) int
}

// seeded makes its choices from a seed: cheap, and the same every time.
type seeded struct{ *rand.Rand }

func newSeeded(seed uint64) seeded { return seeded{rand.New(rand.NewPCG(seed, 0))} }

func (s seeded) below(n int) int { return s.IntN(n) }

// drawn takes its choices from rapid, which makes a failing run shorter.
type drawn struct{ t *rapid.T }

func (d drawn) below(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "choice") }
