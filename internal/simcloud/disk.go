package simcloud

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// rootDevice is where an instance's own volume is, which goes with it.
const rootDevice = "/dev/xvda"

// maxDisks bounds the volumes that one instance ever had.
const maxDisks = 20

// ErrNoVolume: the instance has no volume of that id attached.
var ErrNoVolume = errors.New("no such volume at the instance")

// Volume is one attached EBS volume.
type Volume struct {
	ID                  string `json:"id,omitempty"`
	Device              string `json:"device,omitempty"`
	DeleteOnTermination bool   `json:"delete_on_termination,omitempty"`
}

// disk is a volume of an instance, while it is attached and after.
type disk struct {
	Volume
	attached, detached time.Time // detached is zero while it is attached
}

func newDisk(n int, device string, now time.Time) disk {
	return disk{Volume{fmt.Sprintf("vol-%017x", n), device, true}, now, time.Time{}}
}

// Attach attaches a new volume to an instance, at the next free device. With the
// id of one that is attached it sets that one's DeleteOnTermination instead.
func (c *Cloud) Attach(id string, v Volume) (attached Volume, err error) {
	failed := c.change(id, func(i *instance, now time.Time) {
		if v.ID == "" {
			attached, err = c.attach(i, v, now)
		} else {
			attached, err = i.set(v)
		}
	})
	return attached, errors.Join(failed, err)
}

// attach is [Cloud.Attach] of a new volume. The caller holds mu.
func (c *Cloud) attach(i *instance, v Volume, now time.Time) (Volume, error) {
	if len(i.disks) == maxDisks {
		return Volume{}, fmt.Errorf("%s had %d volumes already", i.id, maxDisks)
	}
	c.disks++
	d := newDisk(c.disks, fmt.Sprintf("/dev/sd%c", 'f'+len(i.disks)), now)
	d.DeleteOnTermination = v.DeleteOnTermination
	i.disks = append(i.disks, d)
	return d.Volume, nil
}

func (i *instance) set(v Volume) (Volume, error) {
	d := i.disk(v.ID)
	if d == nil {
		return Volume{}, fmt.Errorf("%s at %s: %w", v.ID, i.id, ErrNoVolume)
	}
	d.DeleteOnTermination = v.DeleteOnTermination
	return d.Volume, nil
}

// Detach takes a volume off an instance; it lives on.
func (c *Cloud) Detach(id, volume string) (err error) {
	failed := c.change(id, func(i *instance, now time.Time) {
		if d := i.disk(volume); d != nil {
			d.detached = now
		} else {
			err = fmt.Errorf("%s at %s: %w", volume, id, ErrNoVolume)
		}
	})
	return errors.Join(failed, err)
}

// disk finds a volume that is attached.
func (i *instance) disk(volume string) *disk {
	n := slices.IndexFunc(i.disks, func(d disk) bool { return d.ID == volume && d.detached.IsZero() })
	if n < 0 {
		return nil
	}
	return &i.disks[n]
}

// attached lists what a describe shows of an instance in a state: nothing once it
// is terminated, whatever became of the volumes.
func (i *instance) attached(state string, t time.Time) []disk {
	if state == Terminated {
		return nil
	}
	var all []disk
	for _, d := range i.disks {
		if !d.attached.After(t) && (d.detached.IsZero() || d.detached.After(t)) {
			all = append(all, d)
		}
	}
	return all
}

// attachment is the state of every attachment of an instance.
func (s seen) attachment() string {
	if s.state == ShuttingDown {
		return "detaching"
	}
	return "attached"
}
