package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// failover makes this box the target of a failover of a host that never had a
// writer, and returns the worker that drives it.
func (b *bench) failover() *hostrelocate.Worker {
	t, source := b.t, hostclaim.Member{Box: "box-0", Enrollment: "enr-0"}
	public, private := roster.GenerateKey()
	r := roster.Roster{DeploymentBucket: "s3://control", Boxes: map[string]roster.Box{},
		Regions: map[string]roster.Region{"ie": {Account: "123456789012", AWSRegion: "eu-west-1", Data: "s3://data"}}}
	for _, m := range []hostclaim.Member{source, b.agent.self, {Box: "box-9", Enrollment: "enr-9"}} {
		r.Boxes[m.Box] = roster.Box{Enrollment: m.Enrollment, EnrolledAt: time.Now().UTC(), Region: "ie", Pool: "default", State: roster.Active,
			Cloud: boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: "i-" + m.Box}}
	}
	snap, err := roster.Create(t.Context(), b.control, private, r)
	require.NoError(t, err)
	dir := roster.Open(b.control, public, "s3://control")
	dead, _ := snap.Box(source.Box)
	self, _ := snap.Box("box-9")
	rec, err := termfence.Verify(dead, self, termfence.Observation{Via: termfence.ViaDescribe, Found: true, InstanceID: dead.Cloud.InstanceID,
		Account: dead.Cloud.Account, Region: dead.Cloud.Region, State: termfence.Terminated, RequestID: "r"}, time.Now())
	require.NoError(t, err)
	fence, err := termfence.Publish(t.Context(), b.control, termfence.Reader{Store: b.control, Roster: dir}, rec)
	require.NoError(t, err)
	w := &hostrelocate.Worker{Control: b.control, Data: b.data, Region: "ie", Self: hostclaim.Member{Box: "box-9", Enrollment: "enr-9"},
		Roster: dir, PinDelay: time.Millisecond}
	o, err := hostclaim.Read(t.Context(), b.control, testHost)
	require.NoError(t, err)
	_, err = w.StartFailover(t.Context(), o, fence, b.agent.self.Box)
	require.NoError(t, err)
	return w
}

// TestAFailedFirstAttemptOfAnEmptyHostLeavesAnother: nothing of the attempt
// reached the store, and that the host is empty must stay provable.
func TestAFailedFirstAttemptOfAnEmptyHostLeavesAnother(t *testing.T) {
	b := newBenchOn(t, hostclaim.Member{Box: "box-0", Enrollment: "enr-0"})
	w := b.failover()
	lose := true
	b.data.Inject(func(r memstore.Request) memstore.Fault {
		if lose && r.Op == memstore.OpPut && strings.Contains(r.Key, "/ltx/") {
			return memstore.Lose
		}
		return memstore.None
	})
	b.until(func(c *hostclaim.Claim) bool {
		o, err := hostclaim.Read(context.Background(), b.control, testHost)
		require.NoError(t, err)
		_, _ = w.Step(t.Context(), o)
		lose = lose && b.claim().Op.Journal.ProbeAttempts < 2 && b.failures == 0
		return c.Op.Kind == hostclaim.Serving
	})
	require.Equal(t, "box-1", b.claim().Op.Exec)
}
