package worker

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/membership"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// fleet is a cloud of two regions, as a worker's clients show it.
type fleet struct {
	mu        sync.Mutex
	states    map[string]string // by instance
	groups    map[string]string // name of its group, by instance
	fail      error
	described []string
	members   []string
}

func (f *fleet) Describe(_ context.Context, box boxid.Cloud) (termfence.Observation, boxvolumes.Observation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.described = append(f.described, box.InstanceID)
	state, found := f.states[box.InstanceID]
	return termfence.Observation{Via: termfence.ViaDescribe, Found: found, InstanceID: box.InstanceID, Account: box.Account,
		Region: box.Region, State: state, RequestID: "r-" + box.InstanceID}, boxvolumes.Observation{}, f.fail
}

func (f *fleet) Member(_ context.Context, region, instance string) (membership.Observation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = append(f.members, instance)
	group, found := f.groups[instance]
	return membership.Observation{Found: found, InstanceID: instance, AWSRegion: region, Zone: region + "a", GroupName: group,
		GroupARN: arn(region, group), LifecycleState: membership.InService, RequestIDs: []string{"m-" + instance}}, f.fail
}

func arn(region, group string) string {
	return "arn:aws:autoscaling:" + region + ":123456789012:autoScalingGroup:1:autoScalingGroupName/" + group
}

// control is a control store of two placements: ie with two workers, and de with
// one box.
type control struct {
	*memstore.Store
	*fleet
	private ed25519.PrivateKey
	dir     *roster.Directory
	log     bytes.Buffer
}

func newControl(t *testing.T) *control {
	t.Helper()
	c := &control{Store: memstore.New(), fleet: &fleet{states: map[string]string{}, groups: map[string]string{}}}
	var public ed25519.PublicKey
	public, c.private = roster.GenerateKey()
	c.dir = roster.Open(c.Store, public, "memory")
	r := roster.Roster{DeploymentBucket: "memory", Boxes: map[string]roster.Box{}, Regions: map[string]roster.Region{
		"ie": {Account: "123456789012", AWSRegion: "eu-west-1", GroupName: "boxes-ie", GroupARN: arn("eu-west-1", "boxes-ie")},
		"de": {Account: "123456789012", AWSRegion: "eu-central-1", GroupName: "boxes-de", GroupARN: arn("eu-central-1", "boxes-de")},
	}}
	for ref, code := range map[string]string{"worker-1": "ie", "worker-2": "ie", "de-1": "de"} {
		r.Boxes[ref] = roster.Box{Enrollment: "e-" + ref, EnrolledAt: time.Now().UTC(), Region: code, Pool: "default", State: roster.Active,
			Cloud: at(r.Regions[code].AWSRegion, "i-"+ref)}
	}
	_, err := roster.Create(t.Context(), c.Store, c.private, r)
	require.NoError(t, err)
	return c
}

func at(region, instance string) boxid.Cloud {
	return boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: region, InstanceID: instance}
}

func (c *control) worker(t *testing.T, ref string) *Worker {
	t.Helper()
	snap, err := c.dir.Read(t.Context())
	require.NoError(t, err)
	self, ok := snap.Box(ref)
	require.True(t, ok)
	log := slog.New(slog.NewTextHandler(&c.log, nil))
	w, err := New(Config{Region: self.Region, Self: self, Roster: c.dir, Control: c.Store, Cloud: Cloud{Instances: c.fleet, Groups: c.fleet},
		Certs: map[string]*x509.Certificate{"eu-west-1": boxidtest.Cert(), "eu-central-1": boxidtest.Cert()},
		Pace:  Pace{Sweep: 30 * time.Second, PinDelay: time.Second, Parallel: 1}, Log: log, Alerts: alert.New(log)})
	require.NoError(t, err)
	return w
}

// pass is one sweep's pass.
func (c *control) pass(t *testing.T, w *Worker) {
	t.Helper()
	snap, err := c.dir.Read(t.Context())
	require.NoError(t, err)
	w.confirmMembers(t.Context(), snap)
}

// boots lets an instance of a group start and publish who it is.
func (c *control) boots(t *testing.T, ref, region, group string) {
	t.Helper()
	instance := "i-" + ref
	c.states[instance] = "running"
	if group != "" {
		c.groups[instance] = group
	}
	c.claims(t, ref, at(region, instance))
}

func (c *control) claims(t *testing.T, ref string, cloud boxid.Cloud) {
	t.Helper()
	doc := boxidtest.Document(cloud)
	body, err := record.Encode(boxid.Record{V: 1, Box: ref, IdentityDocument: doc, IdentitySignature: boxidtest.Sign(doc), WrittenAt: time.Now().UTC()})
	require.NoError(t, err)
	_, err = c.Put(t.Context(), boxid.Key(ref), body, objstore.IfAbsent())
	require.NoError(t, err)
}

func (c *control) confirmation(t *testing.T, ref string) (membership.Record, bool) {
	t.Helper()
	ev, found, err := membership.Reader{Store: c.Store, Roster: c.dir}.Find(t.Context(), ref)
	require.NoError(t, err)
	return ev.Record(), found
}

func (c *control) edit(t *testing.T, change func(*roster.Roster)) {
	t.Helper()
	_, err := roster.Update(t.Context(), c.Store, c.private, c.dir, func(r *roster.Roster) error { change(r); return nil })
	require.NoError(t, err)
}

func TestABoxOfTheGroupIsConfirmedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.boots(t, "new", "eu-west-1", "boxes-ie")
		w, other := c.worker(t, "worker-1"), c.worker(t, "worker-2")
		c.pass(t, w)
		rec, found := c.confirmation(t, "new")
		require.True(t, found)
		require.Equal(t, membership.Confirmer{Box: "worker-1", Enrollment: "e-worker-1", Region: "ie"}, rec.Confirmer)
		require.Empty(t, c.described, "nobody else is asked about in the own region")
		writes := len(c.Log())
		c.pass(t, other)
		for range 20 {
			time.Sleep(30 * time.Second)
			c.pass(t, w)
		}
		require.Len(t, c.Log(), writes, "one confirmation is enough for all")
		require.Len(t, c.members, 1)
	})
}

func TestAConfirmedBoxThatNoConsoleEnrollsIsAnAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.boots(t, "new", "eu-west-1", "boxes-ie")
		w := c.worker(t, "worker-1")
		for range 10 {
			c.pass(t, w)
			require.False(t, w.alerts.Raised(alert.Enrollment, "new"))
			time.Sleep(time.Minute)
		}
		c.pass(t, w)
		require.True(t, w.alerts.Raised(alert.Enrollment, "new"))
		require.Contains(t, c.log.String(), "no console enrolled it")
	})
}

func TestTwoWorkersThatConfirmAtOnceDoNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.boots(t, "new", "eu-west-1", "boxes-ie")
		workers := []*Worker{c.worker(t, "worker-1"), c.worker(t, "worker-2")}
		var group sync.WaitGroup
		for _, w := range workers {
			group.Go(func() { c.pass(t, w) })
		}
		group.Wait()
		_, found := c.confirmation(t, "new")
		require.True(t, found)
		require.NotContains(t, c.log.String(), "level=ERROR")
	})
}

func TestAConfirmationThatNoLongerHoldsIsWrittenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.boots(t, "new", "eu-west-1", "boxes-ie")
		c.pass(t, c.worker(t, "worker-1"))
		c.edit(t, func(r *roster.Roster) { require.NoError(t, r.Quarantine("worker-1")) })
		time.Sleep(time.Minute)
		c.pass(t, c.worker(t, "worker-2"))
		rec, found := c.confirmation(t, "new")
		require.True(t, found)
		require.Equal(t, "worker-2", rec.Confirmer.Box)
	})
}

func TestAConfirmationThatGrowsOldIsWrittenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.boots(t, "new", "eu-west-1", "boxes-ie")
		c.pass(t, c.worker(t, "worker-1"))
		first, _ := c.confirmation(t, "new")
		time.Sleep(membership.MaxAge/2 + time.Minute)
		c.pass(t, c.worker(t, "worker-2"))
		rec, found := c.confirmation(t, "new")
		require.True(t, found)
		require.True(t, rec.ObservedAt.After(first.ObservedAt))
	})
}

func TestWhatKeepsABoxFromBeingConfirmedIsAnAlert(t *testing.T) {
	for name, c := range map[string]struct {
		boot   func(*testing.T, *control)
		at     time.Duration
		reason string
	}{
		"of no group":      {func(t *testing.T, c *control) { c.boots(t, "new", "eu-west-1", "") }, memberPatience, "absence is not evidence"},
		"of another group": {func(t *testing.T, c *control) { c.boots(t, "new", "eu-west-1", "other") }, memberPatience, "its group is"},
		"of another account": {func(t *testing.T, c *control) {
			cloud := at("eu-west-1", "i-new")
			cloud.Account = "999999999999"
			c.claims(t, "new", cloud)
		}, 0, "999999999999"},
		"of a region without a certificate": {func(t *testing.T, c *control) { c.claims(t, "new", at("eu-west-3", "i-new")) }, 0, "no certificate"},
		"an instance that is enrolled":      {func(t *testing.T, c *control) { c.claims(t, "new", at("eu-west-1", "i-worker-2")) }, 0, "is enrolled under"},
		"a cloud that does not answer": {func(t *testing.T, c *control) {
			c.boots(t, "new", "eu-west-1", "boxes-ie")
			c.fail = errors.New("throttled")
		}, memberPatience, "throttled"},
		"a record that is none": {func(t *testing.T, c *control) {
			_, err := c.Put(t.Context(), boxid.Key("new"), []byte("{}"), objstore.IfAbsent())
			require.NoError(t, err)
		}, 0, "identity not verified"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, boot := newControl(t), c
				boot.boot(t, c)
				w := c.worker(t, "worker-1")
				for waited := time.Duration(0); waited < 4*time.Minute; waited += 10 * time.Second {
					c.pass(t, w)
					if raised := w.alerts.Raised(alert.Enrollment, "new"); waited < boot.at || boot.at == 0 {
						require.Equal(t, boot.at == 0, raised, waited)
					}
					time.Sleep(10 * time.Second)
				}
				require.True(t, w.alerts.Raised(alert.Enrollment, "new"))
				require.Contains(t, c.log.String(), boot.reason)
				require.Equal(t, 1, strings.Count(c.log.String(), "alert=enrollment"), "it is said once")
				_, found := c.confirmation(t, "new")
				require.False(t, found)

				c.edit(t, func(r *roster.Roster) {
					r.Boxes["new"] = roster.Box{Enrollment: "e-new", EnrolledAt: time.Now().UTC(), Region: "ie", State: roster.Active, Cloud: at("eu-west-1", "i-9")}
				})
				c.pass(t, w)
				require.False(t, w.alerts.Raised(alert.Enrollment, "new"), "a person enrolled it")
			})
		})
	}
}

func TestABoxThatWaitsIsAskedAboutWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.boots(t, "new", "eu-west-1", "")
		gets := 0
		c.Inject(func(r memstore.Request) memstore.Fault {
			if r.Op == memstore.OpGet && r.Key == boxid.Key("new") {
				gets++
			}
			return memstore.None
		})
		w := c.worker(t, "worker-1")
		hours := func(n int) {
			for range n * 120 {
				c.pass(t, w)
				time.Sleep(30 * time.Second)
			}
		}
		hours(1)
		require.InDelta(t, 35, len(c.members), 3, "each sweep for 5 min, then after a tenth of its wait")
		hours(1)
		before := len(c.members)
		hours(1)
		require.InDelta(t, before+6, len(c.members), 1, "each 10 min")
		require.Equal(t, 1, gets, "an identity is immutable")
		require.True(t, w.alerts.Raised(alert.Enrollment, "new"))
		hours(22)
		before = len(c.members)
		require.False(t, w.alerts.Raised(alert.Enrollment, "new"), "what it published stays when its machine goes")
		hours(1)
		require.Len(t, c.members, before)
	})
}

func TestNothingIsAskedWhereNoPlacementHasAGroup(t *testing.T) {
	c := newControl(t)
	c.edit(t, func(r *roster.Roster) {
		for code, place := range r.Regions {
			place.GroupName, place.GroupARN = "", ""
			r.Regions[code] = place
		}
	})
	c.boots(t, "new", "eu-west-1", "boxes-ie")
	lists := 0
	c.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpList {
			lists++
		}
		return memstore.None
	})
	w := c.worker(t, "worker-1")
	c.pass(t, w)
	require.Zero(t, lists)
	w.cloud.Groups = nil
	c.pass(t, w)
	require.Empty(t, c.members)
}

func TestAListingThatFailsForgetsNobody(t *testing.T) {
	c := newControl(t)
	c.boots(t, "new", "eu-west-1", "boxes-ie")
	w := c.worker(t, "worker-1")
	c.Inject(memstore.Once(memstore.OpList, "control/boxes/", memstore.Lose))
	c.pass(t, w)
	require.Empty(t, w.members.tries)
	c.pass(t, w)
	require.Len(t, w.members.tries, 1)
	c.Inject(memstore.Once(memstore.OpList, "control/boxes/", memstore.Lose))
	c.pass(t, w)
	require.Len(t, w.members.tries, 1)
}

// endless is a store that lists identities without end.
type endless struct{ *memstore.Store }

func (endless) List(context.Context, string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		for i := 0; yield(objstore.Info{Key: boxid.Key(fmt.Sprintf("new-%d", i)), ModTime: time.Now()}, nil); i++ {
		}
	}
}

func TestAnEndlessListingEnds(t *testing.T) {
	c := newControl(t)
	w := c.worker(t, "worker-1")
	w.control = endless{c.Store}
	c.pass(t, w)
	require.Empty(t, w.members.tries)
	require.Contains(t, c.log.String(), "more than 10000 boxes are not enrolled")
}

func TestAConfirmationThatCannotBeReadIsNotWrittenAnew(t *testing.T) {
	c := newControl(t)
	c.boots(t, "new", "eu-west-1", "boxes-ie")
	c.Inject(memstore.Once(memstore.OpList, "control/box-memberships/", memstore.Lose))
	c.pass(t, c.worker(t, "worker-1"))
	require.Empty(t, c.members)
	_, found := c.confirmation(t, "new")
	require.False(t, found)
}

func TestAPassIsBoundedAndFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		for i := range membersPerPass + 10 {
			c.boots(t, fmt.Sprintf("new-%03d", i), "eu-west-1", "")
		}
		w := c.worker(t, "worker-1")
		c.pass(t, w)
		require.Len(t, c.members, membersPerPass)
		time.Sleep(30 * time.Second)
		c.pass(t, w)
		require.Contains(t, c.members, fmt.Sprintf("i-new-%03d", membersPerPass+9), "those that were not tried come first")
	})
}

func TestABoxOfALivingRegionIsItsOwnWorkersBusiness(t *testing.T) {
	c := newControl(t)
	c.boots(t, "new", "eu-central-1", "boxes-de")
	c.states["i-de-1"] = "running"
	w := c.worker(t, "worker-1")
	c.pass(t, w)
	require.Equal(t, []string{"i-de-1"}, c.described, "the first that runs ends the question")
	require.Empty(t, c.members)
	require.False(t, w.alerts.Raised(alert.Enrollment, "new"))
	_, found := c.confirmation(t, "new")
	require.False(t, found)
}

func TestABoxThatItsLivingRegionDoesNotConfirmIsAnAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.boots(t, "new", "eu-central-1", "boxes-de")
		c.states["i-de-1"] = "running" // and no worker runs there
		w := c.worker(t, "worker-1")
		time.Sleep(10*time.Minute - 1)
		c.pass(t, w)
		require.False(t, w.alerts.Raised(alert.Enrollment, "new"))
		time.Sleep(2 * time.Minute)
		c.pass(t, w)
		require.True(t, w.alerts.Raised(alert.Enrollment, "new"))
		require.Contains(t, c.log.String(), "its region is not empty")
	})
}

func TestABoxOfAnEmptiedRegionIsConfirmedFromAnother(t *testing.T) {
	c := newControl(t)
	c.edit(t, func(r *roster.Roster) {
		r.Boxes["de-0"] = roster.Box{Enrollment: "e-de-0", EnrolledAt: time.Now().UTC().Add(-time.Hour), Region: "de", State: roster.Quarantined,
			Cloud: at("eu-central-1", "i-de-0")}
	})
	c.boots(t, "new", "eu-central-1", "boxes-de")
	c.states["i-de-0"], c.states["i-de-1"] = "terminated", "terminated"
	c.pass(t, c.worker(t, "worker-1"))
	rec, found := c.confirmation(t, "new")
	require.True(t, found)
	require.Equal(t, "de", rec.TargetPlacement)
	require.Len(t, rec.TerminatedEnrollments, 2)
	require.Equal(t, []string{"i-de-1", "i-de-0", "i-new"}, c.described)
	fences := 0
	for _, write := range c.Log() {
		if strings.HasPrefix(write.Key, "control/box-fences/") {
			fences++
		}
	}
	require.Zero(t, fences, "it fences nothing")
}

func TestAnAlertEndsAsSoonAsTheRegionLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.boots(t, "new", "eu-central-1", "boxes-de")
		c.states["i-de-1"] = "stopped"
		w := c.worker(t, "worker-1")
		time.Sleep(5 * time.Minute)
		c.pass(t, w)
		require.True(t, w.alerts.Raised(alert.Enrollment, "new"))
		c.states["i-de-1"] = "running"
		time.Sleep(time.Minute)
		c.pass(t, w)
		require.False(t, w.alerts.Raised(alert.Enrollment, "new"))
	})
}

func TestARegionIsNotEmptyWhileOneBoxOfItIsNotTerminated(t *testing.T) {
	for name, spoil := range map[string]func(*control){
		"stopped":          func(c *control) { c.states["i-de-1"] = "stopped" },
		"shutting down":    func(c *control) { c.states["i-de-1"] = "shutting-down" },
		"not found":        func(c *control) { delete(c.states, "i-de-1") },
		"an error":         func(c *control) { c.fail = errors.New("throttled") },
		"no cloud":         func(c *control) {},
		"new box ends too": func(c *control) { c.states["i-new"] = "shutting-down" },
		"another group":    func(c *control) { c.groups["i-new"] = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newControl(t)
				if name == "no cloud" {
					c.edit(t, func(r *roster.Roster) {
						r.Boxes["old"] = roster.Box{Enrollment: "e-old", EnrolledAt: time.Now().UTC(), Region: "de", State: roster.Active}
					})
				}
				c.boots(t, "new", "eu-central-1", "boxes-de")
				c.states["i-de-1"] = "terminated"
				spoil(c)
				w := c.worker(t, "worker-1")
				c.pass(t, w)
				require.False(t, w.alerts.Raised(alert.Enrollment, "new"))
				time.Sleep(5 * time.Minute)
				c.pass(t, w)
				require.True(t, w.alerts.Raised(alert.Enrollment, "new"))
				require.NotContains(t, c.described, "", "a box without a cloud cannot be asked about")
				_, found := c.confirmation(t, "new")
				require.False(t, found)
			})
		})
	}
}
