package simcloud

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Config says how a cloud behaves. CertDir is required.
type Config struct {
	CertDir      string           // certificates are written here as <region>.pem
	Account      string           // the owner of launched instances; 123456789012 if empty
	ShutdownTime time.Duration    // how long pending, stopping and shutting-down last
	JoinTime     time.Duration    // how long a group's instance is Pending in its group
	Visibility   time.Duration    // how long a delivered message is hidden; 30s if zero
	LongestWait  time.Duration    // bound of a long poll, in real time; 20s if zero
	Lag          time.Duration    // how old the state is that a describe answers
	Now          func() time.Time // time.Now if nil
}

// DefaultAccount owns instances for which nobody names another account.
const DefaultAccount = "123456789012"

// MaxInstances bounds what one cloud launches: every instance holds a listener.
const MaxInstances = 1000

// ErrNoInstance: the cloud has no instance of that id.
var ErrNoInstance = errors.New("no such instance")

// Cloud is the simulated cloud. It is safe for concurrent use.
type Cloud struct {
	cfg    Config
	faults faults

	mu        sync.Mutex
	signers   map[string]*signer
	instances map[string]*instance
	queues    map[string]*queue // by region
	launched  int
	disks     int
}

// New makes an empty cloud and its certificate directory.
func New(cfg Config) (*Cloud, error) {
	if cfg.CertDir == "" {
		return nil, errors.New("simcloud: CertDir is empty")
	}
	if err := os.MkdirAll(cfg.CertDir, 0o755); err != nil {
		return nil, fmt.Errorf("simcloud: %w", err)
	}
	cfg.Account = cmp.Or(cfg.Account, DefaultAccount)
	cfg.Visibility = cmp.Or(cfg.Visibility, 30*time.Second)
	cfg.LongestWait = cmp.Or(cfg.LongestWait, 20*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Cloud{cfg: cfg, signers: map[string]*signer{}, instances: map[string]*instance{}, queues: map[string]*queue{}}, nil
}

// Launch runs a new instance in region, owned by account ("": the cloud's), and
// opens its metadata service.
func (c *Cloud) Launch(region, account string) (Instance, error) {
	return c.launch(Instance{Region: region, Account: account})
}

// LaunchInGroup is [Cloud.Launch] by the Auto Scaling group of that name, which
// is there from its first launch on; its ARN is [GroupARN].
func (c *Cloud) LaunchInGroup(region, account, group string) (Instance, error) {
	return c.launch(Instance{Region: region, Account: account, Group: group})
}

func (c *Cloud) launch(want Instance) (Instance, error) {
	if want.Region == "" {
		return Instance{}, errors.New("launch: region is empty")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.launched == MaxInstances {
		return Instance{}, fmt.Errorf("launch: %d instances were launched already", MaxInstances)
	}
	s, err := c.signer(want.Region)
	if err != nil {
		return Instance{}, fmt.Errorf("launch: %w", err)
	}
	c.launched++
	c.disks++
	want.Account = cmp.Or(want.Account, c.cfg.Account)
	i := newInstance(c.launched, want, c.cfg.Now())
	if err := i.serveMetadata(s, c.cfg.Now); err != nil {
		return Instance{}, fmt.Errorf("launch: %w", err)
	}
	c.instances[i.id] = i
	return i.public(c.cfg.Now()), nil
}

// signer returns the region's key, made and published at its first use. The
// caller holds mu.
func (c *Cloud) signer(region string) (*signer, error) {
	if s := c.signers[region]; s != nil {
		return s, nil
	}
	s, err := newSigner(region, c.cfg.CertDir, c.cfg.Now())
	if err != nil {
		return nil, err
	}
	c.signers[region] = s
	return s, nil
}

// Terminate ends an instance: shutting-down now, terminated after ShutdownTime.
// Terminating it again changes nothing.
func (c *Cloud) Terminate(id string) error {
	return c.change(id, func(i *instance, now time.Time) {
		i.move(now, c.cfg.ShutdownTime, ShuttingDown, Terminated)
	})
}

// Stop stops an instance: stopping now, stopped after ShutdownTime. Stopping a
// stopped or terminated instance changes nothing.
func (c *Cloud) Stop(id string) error {
	return c.change(id, func(i *instance, now time.Time) {
		if i.state(now) == Running {
			i.move(now, c.cfg.ShutdownTime, Stopping, Stopped)
		}
	})
}

// Start starts a stopped instance: pending now, running after ShutdownTime.
// Starting any other changes nothing.
func (c *Cloud) Start(id string) error {
	return c.change(id, func(i *instance, now time.Time) {
		if i.state(now) == Stopped {
			i.move(now, c.cfg.ShutdownTime, Pending, Running)
		}
	})
}

func (c *Cloud) change(id string, apply func(*instance, time.Time)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.instances[id]
	if i == nil {
		return fmt.Errorf("%s: %w", id, ErrNoInstance)
	}
	c.tell() // what a change after it may replace in the history
	apply(i, c.cfg.Now())
	return nil
}

// Forget drops an instance, as EC2 does some time after its termination. From
// then on a describe of it is NotFound.
func (c *Cloud) Forget(id string) {
	c.mu.Lock()
	c.tell()
	i := c.instances[id]
	delete(c.instances, id)
	c.mu.Unlock()
	if i != nil {
		i.close()
	}
}

// Instances lists every instance as it is now, by id, without the lag.
func (c *Cloud) Instances() []Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.Now()
	all := make([]Instance, 0, len(c.instances))
	for _, i := range c.instances {
		all = append(all, i.public(now))
	}
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// seenIn copies, by id, the instances that a describe in region shows: as they
// were Lag ago, without those that were launched later.
func (c *Cloud) seenIn(region string) map[string]seen {
	return c.at(region, c.cfg.Now().Add(-c.cfg.Lag))
}

// now copies, by id, the instances of region as they are.
func (c *Cloud) now(region string) map[string]seen { return c.at(region, c.cfg.Now()) }

func (c *Cloud) at(region string, t time.Time) map[string]seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]seen{}
	for id, i := range c.instances {
		if s := i.state(t); i.region == region && s != "" {
			all[id] = seen{i.facts, s, i.attached(s, t)}
		}
	}
	return all
}

// Inject adds a fault.
func (c *Cloud) Inject(f Fault) error { return c.faults.add(f) }

// ClearFaults removes every fault. Requests that hang are let go.
func (c *Cloud) ClearFaults() { c.faults.clear() }

// Close closes the metadata services.
func (c *Cloud) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.instances {
		i.close()
	}
}
