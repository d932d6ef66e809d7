package placement

import "time"

const (
	// readEvery is the pause between passes while reads of claims are due.
	readEvery = 30 * time.Second

	// Changes that come together share a file: the least time between two is
	// minGap, and twice as long each time while they keep coming, up to maxGap.
	minGap = 50 * time.Millisecond
	maxGap = 500 * time.Millisecond

	// The pause after a write that failed doubles from minBackoff to maxBackoff.
	minBackoff = 2 * time.Second
	maxBackoff = 5 * time.Minute
)

// Pace decides when a publisher makes its passes, and which of them writes the
// file whatever it says. The zero Pace is that of a publisher that has not made
// one. It is for one goroutine.
type Pace struct {
	last    time.Time // when the last pass ended
	regular time.Time // when the file is written though it says nothing new
	gap     time.Duration
	backoff time.Duration
}

// Rest is when the next pass is if nothing happens before.
func (p *Pace) Rest() time.Time {
	if p.backoff > 0 {
		return p.after(0)
	}
	return p.regular
}

// Change is when the next pass is because the file would say something else.
func (p *Pace) Change() time.Time { return p.after(p.gap) }

// Read is when the next pass is because a read of a claim is due at due.
func (p *Pace) Read(due time.Time) time.Time { return later(p.after(readEvery), due) }

// after is d after the last pass, or the pause that follows a failed write:
// nothing brings a pass before that is over.
func (p *Pace) after(d time.Duration) time.Time {
	if p.backoff > 0 {
		d = p.backoff
	}
	return p.last.Add(d)
}

// Regular reports whether a pass at now writes the file even if it says nothing
// new.
func (p *Pace) Regular(now time.Time) bool { return !now.Before(p.regular) }

// Backoff is the pause that the last pass brought; zero where it did not fail.
func (p *Pace) Backoff() time.Duration { return p.backoff }

// Failed tells of a pass that ended at now without what it had to write.
func (p *Pace) Failed(now time.Time) {
	p.last, p.backoff = now, min(max(2*p.backoff, minBackoff), maxBackoff)
}

// Passed tells of a pass that had nothing to write, and ended at now.
func (p *Pace) Passed(now time.Time) {
	p.last, p.backoff = now, 0
}

// Wrote tells of a pass that wrote the file and ended at now. The next file
// comes after every at the latest.
func (p *Pace) Wrote(now time.Time, every time.Duration) {
	calm := now.Sub(p.last) > 4*p.gap
	if p.gap = min(2*p.gap, maxGap); calm {
		p.gap = minGap
	}
	p.last, p.regular, p.backoff = now, now.Add(every), 0
}
