package hostclaim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

// breach is one rule of a valid claim that is broken by itself.
type breach struct {
	name    string
	of      func(testing.TB) hostclaim.Observed
	want    string
	breakIt func(c *hostclaim.Claim)
}

func failoverAt(stage string) func(testing.TB) hostclaim.Observed {
	return func(tb testing.TB) hostclaim.Observed { return upTo(tb, stage) }
}

func drainAt(stage string) func(testing.TB) hostclaim.Observed {
	return func(tb testing.TB) hostclaim.Observed { return drainUpTo(tb, stage) }
}

// parked is a deleted host whose executor died.
func parked(tb testing.TB) hostclaim.Observed {
	return then(tb, deleting(tb), hostclaim.FenceSource("op-9", gone(sourceGone(tb)), epoch))
}

func refuseEach(t *testing.T, rows []breach) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			c := row.of(t).Claim
			require.NoError(t, c.Validate())
			row.breakIt(c)
			err := c.Validate()
			require.ErrorIs(t, err, hostclaim.ErrMalformed)
			require.ErrorContains(t, err, row.want)
		})
	}
}

func TestAFreeOrParkedHostNamesNobodyAtAll(t *testing.T) {
	refuseEach(t, []breach{
		{"free with an executor", freed, "a free host has executor \"none\"", func(c *hostclaim.Claim) { c.Op.Exec = hostclaim.None }},
		{"free with a participant", freed, "a free host has", func(c *hostclaim.Claim) { c.Op.Participants = []string{source.Box} }},
		{"free with a chore", freed, "and 1 chores", func(c *hostclaim.Claim) {
			c.Obligations = []hostclaim.Obligation{replicaOf("a", "inc-1")}
		}},
		{"parked with an executor", parked, "parking with executor \"box-1\"", func(c *hostclaim.Claim) {
			c.Op.Exec, c.Op.ExecEnrollment = source.Box, source.Enrollment
		}},
		{"parked with a participant", parked, "parking with executor \"none\" and participants [box-1]", func(c *hostclaim.Claim) {
			c.Op.Participants = []string{source.Box}
		}},
	})
}

func TestTheBoxesOfARelocationAreItsSourceAndItsTarget(t *testing.T) {
	refuseEach(t, []breach{
		{"no target before anything is pinned", drainAt("starting"), "the target: ", func(c *hostclaim.Claim) { c.Op.Intent.Target = hostclaim.Member{} }},
		{"no target once it is handed over", drainAt("installing"), "the target: ", func(c *hostclaim.Claim) { c.Op.Intent.Target = hostclaim.Member{} }},
		{"a target of no enrollment while pinning", drainAt("pinning"), "the target.enrollment", func(c *hostclaim.Claim) {
			c.Op.Intent.Target.Enrollment = ""
		}},
		{"a stranger", drainAt("starting"), "want each of source", func(c *hostclaim.Claim) { c.Op.Participants = append(c.Op.Participants, spare.Box) }},
		{"one box twice", drainAt("starting"), "want each of source", func(c *hostclaim.Claim) { c.Op.Participants = append(c.Op.Participants, source.Box) }},
		{"without the executor", drainAt("starting"), "without executor \"box-1\"", func(c *hostclaim.Claim) { c.Op.Participants = []string{target.Box} }},
		{"without the target", drainAt("starting"), "or target \"box-2\"", func(c *hostclaim.Claim) { c.Op.Participants = []string{source.Box} }},
		{"without the target while nobody executes", drainAt("pinning"), "or target \"box-2\"", func(c *hostclaim.Claim) {
			c.Op.Participants, c.Op.Journal.Acks = []string{source.Box}, nil
		}},
	})
}

func TestWhatWasFencedAndReplacedIsCountedExactly(t *testing.T) {
	refuseEach(t, []breach{
		{"evidence that is none", failoverAt("starting"), "neither a fence", func(c *hostclaim.Claim) {
			f := c.Op.Journal.Fences[source.Box]
			f.Key = "control/edges/x"
			c.Op.Journal.Fences[source.Box] = f
		}},
		{"no such count", failoverAt("starting"), "-1 replacements", func(c *hostclaim.Claim) { c.Op.Journal.Replacements = -1 }},
		{"no such grant", failoverAt("starting"), "granted -1", func(c *hostclaim.Claim) { c.Op.Journal.Granted = -1 }},
		{"more than there are", failoverAt("starting"), "3 replacements", func(c *hostclaim.Claim) { c.Op.Journal.Replacements = 3 }},
		{"more than there are, with a grant", failoverAt("starting"), "4 replacements", func(c *hostclaim.Claim) {
			c.Op.Journal.Replacements, c.Op.Journal.Granted = 4, 1
		}},
		{"more boxes than were counted", failoverAt("starting"), "0 replacements of [box-4]", func(c *hostclaim.Claim) { c.Op.Journal.Replaced = []string{fourth.Box} }},
		{"more after a fence that holds", failoverAt("pinned"), "3 replacements", func(c *hostclaim.Claim) { c.Op.Journal.Replacements = 3 }},
	})
	for _, granted := range []int{0, 1} {
		c := upTo(t, "starting").Claim
		c.Op.Journal.Replacements, c.Op.Journal.Granted = 2+granted, granted
		require.NoError(t, c.Validate(), "as many as there are")
	}
}

func TestWhatIsPreparedBelongsToItsPhase(t *testing.T) {
	prepared := func(c *hostclaim.Claim) { c.Op.Journal.Prepared, c.Op.Journal.PreparedStamp = "p-9", 1 }
	refuseEach(t, []breach{
		{"while pinning and not stuck", drainAt("pinned"), "prepared generation \"p-9\" in pinning", prepared},
		{"while stuck and not pinning", drainAt("starting"), "prepared generation \"p-9\" in starting", func(c *hostclaim.Claim) {
			c.Op.Journal.Stuck = &hostclaim.Stuck{Reason: hostclaim.NoSpare, Gen: c.Gen}
			prepared(c)
		}},
		{"installing without a pin", drainAt("installing"), "without a p", func(c *hostclaim.Claim) { c.Op.Journal.Pin = nil }},
		{"installing nothing", drainAt("installing"), "without a p", func(c *hostclaim.Claim) {
			c.Op.Journal.Prepared, c.Op.Journal.PreparedStamp = "", 0
		}},
		{"accepted too early", drainAt("installing"), "prepared authority present: true", func(c *hostclaim.Claim) { c.Op.Journal.PreparedAuthority = &built }},
		{"never accepted", drainAt("installed"), "prepared authority present: false", func(c *hostclaim.Claim) { c.Op.Journal.PreparedAuthority = nil }},
		{"put in place on another box", drainAt("probing"), "a local install of \"box-1\"", func(c *hostclaim.Claim) {
			c.Op.Journal.LocalInstall.Box = source.Box
		}},
		{"put in place by another installation", drainAt("probing"), "a local install of \"box-2\" at stamp 1", func(c *hostclaim.Claim) {
			c.Op.Journal.LocalInstall.InstallStamp = 1
		}},
	})
	kept := plant(drainUpTo(t, "pinned"), hostclaim.NoSpare).Claim
	prepared(kept)
	require.NoError(t, kept.Validate(), "kept for an operator")
}

func TestAChoreIsOwnedAndBoundByItsOwnKind(t *testing.T) {
	local := func(c *hostclaim.Claim) *hostclaim.Obligation { return &c.Obligations[0] }
	served := func(tb testing.TB) hostclaim.Observed {
		return owing(tb, localOf("a", spare.Box), deadOne("b", testRegion, "h-1"))
	}
	owner := func(owner string) func(*hostclaim.Claim) {
		return func(c *hostclaim.Claim) { local(c).Owner = owner }
	}
	refuseEach(t, []breach{
		{"nobody", served, "has owner", owner("")},
		{"a kind and no box", served, "has owner", owner("box:")},
		{"a kind and no region", served, "has owner", owner("region:")},
		{"a name without its kind", served, "has owner", owner("a-long-name-of-a-box")},
		{"another kind", served, "has owner", owner("people:everyone")},
		{"a bound local one", served, "a park-local of \"inc-1\", is bound", func(c *hostclaim.Claim) { *local(c) = boundOf(*local(c)) }},
		{"bound elsewhere", served, "is bound to \"instances/other\"", func(c *hostclaim.Claim) {
			c.Obligations[1] = boundOf(c.Obligations[1])
			c.Obligations[1].Park.Location = "instances/other"
		}},
	})
	for _, name := range []string{"box:b", "region:r"} {
		c := served(t).Claim
		local(c).Owner = name
		require.NoError(t, c.Validate(), name)
	}
}

func TestEachAdmissionHasASessionOfItsOwn(t *testing.T) {
	refuseEach(t, []breach{
		{"none", failoverAt("opened"), "does not come after", func(c *hostclaim.Claim) { c.Holder.Admissions[0].Session = 0 }},
		{"one twice", failoverAt("opened"), "does not come after", func(c *hostclaim.Claim) {
			c.Holder.Admissions[0].Session = c.Holder.Admissions[1].Session
		}},
	})
}

// TestNothingIsTriedBeforeProbing: each trace of an attempt by itself.
func TestNothingIsTriedBeforeProbing(t *testing.T) {
	refuseEach(t, []breach{
		{"an attempt", drainAt("received"), "a probe attempt in installed", func(c *hostclaim.Claim) { c.Op.Journal.ProbeAttempts = 1 }},
		{"a probe", drainAt("received"), "a probe attempt in installed", func(c *hostclaim.Claim) { c.Op.Journal.Probe = &hostclaim.Probe{} }},
		{"a writer of what was prepared", drainAt("received"), "a probe attempt in installed", func(c *hostclaim.Claim) {
			c.Op.Journal.PreparedOpened = c.Op.Journal.Prepared
		}},
		{"less than none", drainAt("probing"), "-1 probe attempts", func(c *hostclaim.Claim) { c.Op.Journal.ProbeAttempts = -1 }},
		{"more than there are", drainAt("probing"), "4 probe attempts", func(c *hostclaim.Claim) { c.Op.Journal.ProbeAttempts = 4 }},
		{"an admission of less than none", drainAt("probing"), "that admitted is -1", func(c *hostclaim.Claim) { c.Op.Journal.ProbeAdmission = -1 }},
		{"an admission of none that was begun", drainAt("attempt"), "that admitted is 2", func(c *hostclaim.Claim) { c.Op.Journal.ProbeAdmission = 2 }},
	})
	c := drainUpTo(t, "attempt").Claim
	c.Op.Journal.ProbeAttempts, c.Op.Journal.ProbeAdmission = hostclaim.MaxProbeAttempts, hostclaim.MaxProbeAttempts
	require.NoError(t, c.Validate(), "as many as there are")
}
