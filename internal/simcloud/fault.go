package simcloud

import (
	"fmt"
	"slices"
	"sync"
)

// Kinds of faults. The first group answers with the service's own error; the
// second bends a reply; the third breaks the connection.
const (
	Throttled = "throttled" // too many requests
	Denied    = "denied"    // the policy lacks the action
	Expired   = "expired"   // the credentials' session has ended
	NotFound  = "not-found" // EC2 says so of an instance that is there
	Broken    = "broken"    // an internal error

	Empty     = "empty"     // a whole reply without the instance, or without a message that waits
	Partial   = "partial"   // the first page of several
	NoOwner   = "no-owner"  // EC2 names no owner account
	NoState   = "no-state"  // no state of the instance, or of its membership
	Duplicate = "duplicate" // the queue delivers what it delivers once more
	Reordered = "reordered" // the queue delivers the newest first

	Cut  = "cut"  // the connection ends in the middle of the body
	Hang = "hang" // no answer until the client gives up or the faults are cleared
)

// Fault answers requests wrongly: those of every service that knows the kind,
// unless it names an action. Empty Action and InstanceID match any.
type Fault struct {
	Kind       string `json:"kind"`
	Action     string `json:"action,omitempty"`      // such as DescribeInstances
	InstanceID string `json:"instance_id,omitempty"` // one that the request names
	Count      int    `json:"count,omitempty"`       // how many requests; 0: until cleared
}

func (f Fault) matches(a *api, action string, ids []string) bool {
	return a.knows(f.Kind) && (f.Action == "" || f.Action == action) &&
		(f.InstanceID == "" || slices.Contains(ids, f.InstanceID))
}

// maxFaults bounds the faults that wait at one time.
const maxFaults = 100

// faults are taken in the order in which they were added.
type faults struct {
	mu      sync.Mutex
	waiting []Fault
	cleared chan struct{} // closed by clear; made by the first wait after it
}

func (fs *faults) add(f Fault) error {
	if !slices.ContainsFunc(apis, func(a *api) bool { return a.knows(f.Kind) }) {
		return fmt.Errorf("fault kind is %q, which is none", f.Kind)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.waiting) == maxFaults {
		return fmt.Errorf("%d faults wait already", maxFaults)
	}
	fs.waiting = append(fs.waiting, f)
	return nil
}

// take returns the kind of the first fault that matches, counting it down, or "".
func (fs *faults) take(a *api, action string, ids []string) string {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := slices.IndexFunc(fs.waiting, func(f Fault) bool { return f.matches(a, action, ids) })
	if n < 0 {
		return ""
	}
	f := &fs.waiting[n]
	kind := f.Kind
	if f.Count == 1 {
		fs.waiting = slices.Delete(fs.waiting, n, n+1)
	} else if f.Count > 1 {
		f.Count--
	}
	return kind
}

func (fs *faults) clear() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.waiting = nil
	if fs.cleared != nil {
		close(fs.cleared)
		fs.cleared = nil
	}
}

// untilCleared is closed by the next clear.
func (fs *faults) untilCleared() <-chan struct{} {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.cleared == nil {
		fs.cleared = make(chan struct{})
	}
	return fs.cleared
}
