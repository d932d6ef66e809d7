package placement

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// readStands is how long what a read of a claim showed is not asked again.
	readStands = 10 * time.Minute

	// maxReads bounds the claims that one pass reads.
	maxReads = 256
)

// Claim is what one read of a host's claim showed of it.
type Claim struct {
	Exec  string // who executes; empty, or a word that is no reference: nobody
	Stamp uint64 // holder.stamp
	Gen   uint64 // of the claim; a read of an older one is forgotten
	ETag  string // of the claim; empty where there is none
}

// Claims knows the claims behind the rows of a box, decides by them which rows
// its edges file may name and under which stamp, and says which claims are to be
// read next. Its user makes the reads. All time is passed in: a read and a
// listing count from when they began. It is safe for concurrent use.
type Claims struct {
	Box string

	mu   sync.Mutex
	rows map[string]*row
}

// row is one row and what is known of its claim.
type row struct {
	claim   Claim
	read    time.Time // as of when claim is known; zero: it never was read
	tried   time.Time // when the last read began, whatever became of it
	touched time.Time // when the row last changed here
}

// due is from when on the claim is to be read.
func (r *row) due() time.Time {
	if r.read.IsZero() || r.read.Before(r.touched) {
		return time.Time{}
	}
	return r.read.Add(readStands)
}

// first reports whether the row changed since its claim was last asked for.
func (r *row) first() bool { return r.tried.Before(r.touched) }

// Keep makes the rows exactly those of hosts. Of a row that goes, nothing is
// remembered.
func (c *Claims) Keep(hosts map[string]Host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for host := range c.rows {
		if _, kept := hosts[host]; !kept {
			delete(c.rows, host)
		}
	}
	for host := range hosts {
		if c.rows[host] == nil {
			c.add(host)
		}
	}
}

// add makes a row, for who holds mu.
func (c *Claims) add(host string) *row {
	if c.rows == nil {
		c.rows = map[string]*row{}
	}
	c.rows[host] = &row{}
	return c.rows[host]
}

// Touch says that this box admitted, holds or releases the host: its claim is
// read first in the next pass.
func (c *Claims) Touch(host string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.rows[host]; r != nil {
		r.touched = later(r.touched, now)
	}
}

// Wanted lists what a pass at now reads, at most 256 claims: first those of rows
// that changed, then those never asked for, then those whose last attempt is the
// oldest. The pass calls [Claims.Try] for each that it begins to read.
func (c *Claims) Wanted(now time.Time) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for host, r := range c.rows {
		if !r.due().After(now) {
			list = append(list, host)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		x, y := c.rows[a], c.rows[b]
		switch {
		case x.first() && !y.first():
			return -1
		case y.first() && !x.first():
			return 1
		}
		return cmp.Or(x.tried.Compare(y.tried), strings.Compare(a, b))
	})
	return list[:min(len(list), maxReads)]
}

// Try says that a read of a claim begins. Whatever becomes of it, it goes to the
// back: what fails, or is cut short, keeps nobody waiting.
func (c *Claims) Try(host string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.rows[host]; r != nil {
		r.tried = now
	}
}

// Saw takes what a read showed that began at began, also of a row that is not
// kept yet: it stands until the next Keep. A read that failed is not told: what
// was decided last stands.
func (c *Claims) Saw(host string, claim Claim, began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.rows[host]
	if r == nil {
		r = c.add(host)
	}
	if claim.ETag != "" && claim.Gen < r.claim.Gen || claim.ETag == "" && began.Before(r.read) {
		return
	}
	r.claim = claim
	r.read, r.tried = later(r.read, began), later(r.tried, began)
}

// Listed takes the ETags by host of a complete listing of all claims that began
// at began. A claim that it shows as it was read needs no read: a listing sees
// every write that was answered before it. One that it shows otherwise is read.
func (c *Claims) Listed(etags map[string]string, began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for host, r := range c.rows {
		switch {
		case r.read.IsZero() || r.read.After(began):
		case etags[host] == r.claim.ETag:
			r.read = began
		default:
			r.touched = later(r.touched, began)
		}
	}
}

// Due is when the next read is due; false where there is no row.
func (c *Claims) Due() (at time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.rows {
		if due := r.due(); !ok || due.Before(at) {
			at, ok = due, true
		}
	}
	return at, ok
}

// Decide leaves in hosts what the box may publish, with its stamps. A host whose
// claim names another box or none goes, with its aliases; one whose claim was
// never read stays without a stamp.
func (c *Claims) Decide(hosts map[string]Host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for host, h := range hosts {
		r := c.rows[host]
		switch {
		case r == nil || r.read.IsZero():
			h.Stamp = 0
		case r.claim.Exec != c.Box:
			delete(hosts, host)
			continue
		default:
			h.Stamp = r.claim.Stamp
		}
		hosts[host] = h
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
