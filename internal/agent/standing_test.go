package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/claimlist"
	"github.com/carlosframework/regionha/internal/proof"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// newcomer is box-1 before it has joined its region, in which box-2 serves a
// host, over a store in memory.
type newcomer struct {
	*Agent
	t     *testing.T
	store *memstore.Store
	snap  roster.Snapshot
	imds  *metadata
}

func newNewcomer(t *testing.T) *newcomer {
	n := &newcomer{t: t, store: memstore.New()}
	log := slog.New(slog.DiscardHandler)
	n.Agent = &Agent{set: Settings{BoxSettings: BoxSettings{DataDir: t.TempDir(), Box: "box-1", Region: "ie"}},
		log: log, alerts: alert.New(log), secret: boxauth.NewSecret(), control: n.store,
		self: hostclaim.Member{Box: "box-1", Enrollment: "enr-1"}, bootID: "boot", hosts: map[string]*host{}, dirty: make(chan struct{}, 1)}
	n.homes = newHomes(n.Agent)
	public, private := roster.GenerateKey()
	cloud := func(id string) boxid.Cloud {
		return boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: id}
	}
	n.imds = &metadata{cloud: cloud("i-1")}
	n.who = proof.Config{Machine: n.imds, Box: "box-1", Region: "ie", Log: log}
	list := roster.Roster{DeploymentBucket: "mem", Regions: map[string]roster.Region{"ie": {Account: "123456789012", AWSRegion: "eu-west-1"}},
		Boxes: map[string]roster.Box{
			"box-1": {Enrollment: "enr-1", EnrolledAt: time.Now().UTC(), Region: "ie", Pool: "default", State: roster.Active, Cloud: cloud("i-1")},
			"box-2": {Enrollment: "enr-2", EnrolledAt: time.Now().UTC(), Region: "ie", Pool: "default", State: roster.Active, Cloud: cloud("i-2")},
		}}
	var err error
	_, err = roster.Create(t.Context(), n.store, private, list)
	require.NoError(t, err)
	n.roster = roster.Open(n.store, public, "mem")
	n.snap, err = n.roster.Read(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(n.set.DataDir, "hosts"), 0o700))
	return n
}

// publish makes the edges file of box-2, which serves hosts.
func (n *newcomer) publish(hosts ...string) {
	e := placement.Edges{Box: "box-2", Region: "ie", Protocol: 1, Capabilities: []string{placement.CapabilityRegionHA}, Hosts: map[string]placement.Host{}}
	for _, h := range hosts {
		e.Hosts[h] = placement.Host{Role: placement.RoleHome, Stamp: 7}
	}
	_, err := placement.Publish(n.t.Context(), n.store, placement.Published{}, e)
	require.NoError(n.t, err)
	n.homes.refresh(n.t.Context())
}

// claim makes the claim of a host that is created for box.
func (n *newcomer) claim(host string, box hostclaim.Member) hostclaim.Observed {
	o, err := hostclaim.Update(n.t.Context(), n.store, hostclaim.Observed{Host: host}, hostclaim.BeginCreate(hostclaim.NewHost{
		Incarnation: "inc", Account: "demo", App: "notes", RecordKey: "apps/x", RecordSHA256: "aa", Region: "ie"}, "op-1", "console", time.Now(), box))
	require.NoError(n.t, err)
	return o
}

func (n *newcomer) joinNow(waited time.Duration) { n.join(n.t.Context(), n.snap, waited) }

func TestABoxThatIsSecondMakesNoRowBeforeItMayJoin(t *testing.T) {
	n := newNewcomer(t)
	n.homes.refresh(t.Context()) // box-2 has published nothing yet
	o := n.claim("notes.example", n.self)
	n.joinNow(time.Second)
	require.False(t, n.place.joined.Load())
	require.False(t, n.concern(o))
	require.Empty(t, n.hosts)
	require.True(t, n.edges().Accepting, "boxes that start together wait for each other")
	require.False(t, n.alerts.Raised(alert.Gate, "ie"))

	n.joinNow(joinGrace + 1)
	require.True(t, n.alerts.Raised(alert.Gate, "ie"))
	require.False(t, n.edges().Accepting)

	n.publish()
	n.joinNow(time.Minute)
	require.True(t, n.place.joined.Load())
	require.False(t, n.alerts.Raised(alert.Gate, "ie"))
	require.True(t, n.edges().Accepting)
	life, stop := context.WithCancel(t.Context())
	n.life = life
	require.True(t, n.concern(o))
	stop()
	n.loops.Wait()
}

func TestABoxJoinsOnce(t *testing.T) {
	n := newNewcomer(t)
	n.publish()
	n.joinNow(0)
	again := newNewcomer(t)
	again.set.DataDir = n.set.DataDir
	require.NoError(t, again.recallJoining())
	require.True(t, again.place.joined.Load())
	again.self.Enrollment, again.place = "enr-9", place{}
	require.NoError(t, again.recallJoining())
	require.False(t, again.place.joined.Load(), "another enrollment is another box")
}

func TestAMachineThatIsNotTheBoxAnyMoreTakesNothingNew(t *testing.T) {
	n := newNewcomer(t)
	n.place.joined.Store(true)
	n.follow(t.Context(), n.snap)
	require.Empty(t, n.dirty, "nothing changed")
	require.True(t, n.edges().Accepting)
	own := n.imds.cloud
	n.imds.cloud.InstanceID = "i-9"
	n.follow(t.Context(), n.snap)
	require.False(t, n.edges().Accepting)
	require.Len(t, n.dirty, 1, "it is published at once")
	require.False(t, n.concern(n.claim("notes.example", n.self)))
	_, err := (&host{agent: n.Agent, name: "notes.example"}).admit(t.Context(), hostclaim.Observed{})
	require.ErrorIs(t, err, errBarred)

	n.imds.err = errors.New("no metadata")
	n.follow(t.Context(), n.snap)
	require.False(t, n.edges().Accepting, "what cannot be compared says nothing")
	n.imds.cloud, n.imds.err = own, nil
	n.follow(t.Context(), n.snap)
	require.True(t, n.edges().Accepting)
}

func TestARowThatIsThereIsKeptBeforeTheBoxMayJoin(t *testing.T) {
	n := newNewcomer(t)
	require.False(t, n.mayTake("notes.example"))
	require.NoError(t, os.MkdirAll(filepath.Join(n.set.DataDir, "hosts", "notes.example"), 0o700))
	require.True(t, n.mayTake("notes.example"))
	n.place.barred.Store(true)
	require.False(t, n.mayTake("notes.example"))
	n.place.joined.Store(true)
	require.False(t, n.mayTake("notes.example"))
	require.False(t, n.edges().Accepting)
}

func TestWhatCannotBeReadIsNoAnswerOfTheGate(t *testing.T) {
	n := newNewcomer(t)
	n.joinNow(time.Hour)
	require.False(t, n.place.joined.Load(), "the edges files were not read")
	n.publish("notes.example")
	n.joinNow(time.Hour)
	require.False(t, n.place.joined.Load(), "the claims were not listed")
	n.store.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpList && r.Key == "control/hosts/" {
			return memstore.Torn
		}
		return memstore.None
	})
	list := claimlist.Reader{Store: n.store}
	n.claim("notes.example", hostclaim.Member{Box: "box-2", Enrollment: "enr-2"})
	require.False(t, n.sweepClaims(t.Context(), &list, map[string]bool{}))
	n.joinNow(time.Hour)
	require.False(t, n.place.joined.Load())
	n.store.Inject(nil)

	require.NoError(t, os.MkdirAll(filepath.Join(n.set.DataDir, "hosts", "notes.example"), 0o700))
	require.True(t, n.sweepClaims(t.Context(), &list, map[string]bool{}))
	n.joinNow(time.Hour)
	require.True(t, n.place.joined.Load())
	require.False(t, n.alerts.Raised(alert.Gate, "ie"), "nor is it a refusal")
}

func TestABoxInTheWayThatIsGoneIsNotInTheWay(t *testing.T) {
	n := newNewcomer(t)
	n.homes.refresh(t.Context())
	n.store.Inject(memstore.Once(memstore.OpGet, "control/", memstore.Lose))
	n.joinNow(time.Hour)
	require.False(t, n.place.joined.Load())
	require.False(t, n.alerts.Raised(alert.Gate, "ie"), "a fence that cannot be read is no answer")
	n.joinNow(time.Hour)
	require.True(t, n.alerts.Raised(alert.Gate, "ie"), "it is not fenced")
}

func TestAHostThatNoClaimExplainsIsAlertedAndKept(t *testing.T) {
	n := newNewcomer(t)
	n.place.joined.Store(true)
	db := filepath.Join(n.set.DataDir, "hosts", "notes.example", "db", "app.db")
	require.NoError(t, os.MkdirAll(filepath.Dir(db), 0o700))
	require.NoError(t, os.WriteFile(db, []byte("rows"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(n.set.DataDir, "hosts", "retired.example"), 0o700))
	raised := func() bool { return n.alerts.Raised(alert.Unexplained, "notes.example") }

	n.store.Inject(memstore.Once(memstore.OpGet, hostclaim.Key("notes.example"), memstore.Lose))
	n.explain(t.Context())
	require.False(t, raised(), "what cannot be read says nothing")
	n.explain(t.Context())
	require.True(t, raised())
	require.False(t, n.alerts.Raised(alert.Unexplained, "retired.example"), "nothing of it lies here")
	n.store.Inject(memstore.Once(memstore.OpGet, hostclaim.Key("notes.example"), memstore.Lose))
	n.explain(t.Context())
	require.True(t, raised())
	require.FileExists(t, db)

	n.claim("notes.example", n.self)
	life, stop := context.WithCancel(t.Context())
	n.life = life
	n.explain(t.Context())
	require.False(t, raised())
	stop()
	n.loops.Wait()
}
