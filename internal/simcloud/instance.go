package simcloud

import (
	"fmt"
	"net/http"
	"time"
)

// States of an instance, in EC2's words.
const (
	Pending      = "pending"
	Running      = "running"
	ShuttingDown = "shutting-down"
	Terminated   = "terminated"
	Stopping     = "stopping"
	Stopped      = "stopped"
)

// stateCodes are the low bytes that EC2 sends beside the names.
var stateCodes = map[string]int{
	Pending: 0, Running: 16, ShuttingDown: 32, Terminated: 48, Stopping: 64, Stopped: 80,
}

// Instance is what a caller of the simulation sees of one instance.
type Instance struct {
	ID      string `json:"id"`
	Account string `json:"account"`
	Region  string `json:"region"`
	State   string `json:"state"`
	Group   string `json:"group,omitempty"` // of Auto Scaling, that it was launched by
	IMDS    string `json:"imds"`            // base URL of its metadata service
}

// facts are what never changes about an instance.
type facts struct {
	id, region, account, group, address string
	launched                            time.Time
}

func (f facts) zone() string { return f.region + "a" }

// instance is guarded by the cloud's lock.
type instance struct {
	facts
	history  []change // ascending
	told     int      // how many of them the region's queue was told
	disks    []disk
	metadata *http.Server
	imds     string // the base URL of metadata
}

type change struct {
	at    time.Time
	state string
}

// seen is an instance in a describe's reply.
type seen struct {
	facts
	state string
	disks []disk
}

func newInstance(n int, want Instance, now time.Time) *instance {
	return &instance{
		facts: facts{
			id:       fmt.Sprintf("i-%017x", n),
			region:   want.Region,
			account:  want.Account,
			group:    want.Group,
			address:  fmt.Sprintf("10.0.%d.%d", n/250, n%250+4),
			launched: now,
		},
		history: []change{{now, Running}},
		disks:   []disk{newDisk(n, rootDevice, now)},
	}
}

// state is the instance's state at t, "" before it was launched.
func (i *instance) state(t time.Time) string {
	state := ""
	for _, c := range i.history {
		if c.at.After(t) {
			break
		}
		state = c.state
	}
	return state
}

// move takes the instance through to last. What was going to happen after now
// is replaced, so a termination overtakes a stop; a termination stands.
func (i *instance) move(now time.Time, takes time.Duration, through, last string) {
	if final := i.history[len(i.history)-1].state; final == Terminated || final == last {
		return
	}
	past := i.history[:0]
	for _, c := range i.history {
		if !c.at.After(now) {
			past = append(past, c)
		}
	}
	i.history = append(past, change{now, through}, change{now.Add(takes), last})
}

func (i *instance) public(now time.Time) Instance {
	return Instance{ID: i.id, Account: i.account, Region: i.region, State: i.state(now), Group: i.group, IMDS: i.imds}
}

func (i *instance) close() { i.metadata.Close() }
