package hostclaim_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

// stuckFrom is a stage of an operation with the time from which a reason
// applies to it.
type stuckFrom struct {
	o   hostclaim.Observed
	due time.Time
}

func beingDeleted(t *testing.T) hostclaim.Observed {
	t.Helper()
	return then(t, upTo(t, "serving"), hostclaim.BeginDelete("op-2", "console", source, phaseAt))
}

// deletionReleased is a deletion whose executor has released.
func deletionReleased(t *testing.T) hostclaim.Observed {
	t.Helper()
	o := beingDeleted(t)
	return then(t, o, hostclaim.JournalRelease("op-2", releaseOf(t, o.Claim, pinned)))
}

// withoutTarget is a failover in pinning as a move leaves it whose region lost
// its only box.
func withoutTarget(t *testing.T) hostclaim.Observed {
	t.Helper()
	o := upTo(t, "pinning")
	o.Claim.Op.Intent.Target, o.Claim.Op.Participants, o.Claim.Op.Journal.Acks = hostclaim.Member{}, nil, nil
	require.NoError(t, o.Claim.Validate())
	return o
}

// reasons is where each reason applies, and from when on.
func reasons(t *testing.T) map[hostclaim.StuckReason]map[string]stuckFrom {
	t.Helper()
	named, install := relocation.Now.Add(hostclaim.AckDeadline), phaseAt.Add(15*time.Minute)
	large := drainUpTo(t, "installed")
	large.Claim.Op.Journal.Pin.Size = 7e9
	notReady := drainUpTo(t, "installing")
	notReady.Claim = replaced(t, notReady)
	spent := func(o hostclaim.Observed) hostclaim.Observed {
		o.Claim.Op.Journal.Replacements = hostclaim.MaxReplacements
		return o
	}
	return map[hostclaim.StuckReason]map[string]stuckFrom{
		hostclaim.ReplacementsUsedUp: {
			"not ready in starting": {exhausted(t, "source ready"), named},
			"installing":            {exhausted(t, "installing"), install},
			"probing":               {exhausted(t, "attempt"), probeFailedAt},
			"probing, opened":       {exhausted(t, "opened"), probeFailedAt},
			"probe-failed":          {spent(failedProbe(t, "opened")), probeFailedAt},
			"released":              {spent(targetReleased(t)), probeFailedAt},
		},
		hostclaim.NoSpare: {
			"not ready in starting":       {drainUpTo(t, "source ready"), named.Add(10 * time.Minute)},
			"not ready after the release": {drainUpTo(t, "starting"), named.Add(10 * time.Minute)},
			"installed":                   {drainUpTo(t, "installed"), install.Add(10 * time.Minute)},
			"probing, opened":             {drainUpTo(t, "opened"), probeFailedAt.Add(10 * time.Minute)},
			"probe-failed unopened":       {failedProbe(t, "attempt"), probeFailedAt.Add(10 * time.Minute)},
			"probe-failed":                {failedProbe(t, "opened"), probeFailedAt.Add(10 * time.Minute)},
			"released":                    {targetReleased(t), probeFailedAt.Add(10 * time.Minute)},
			"no target":                   {withoutTarget(t), epoch.Add(10 * time.Minute)},
		},
		hostclaim.ReleaseOverdue: {
			"releasing":              {drainUpTo(t, "releasing"), phaseAt.Add(10 * time.Minute)},
			"released":               {drainUpTo(t, "released"), phaseAt.Add(10 * time.Minute)},
			"probe-failed":           {failedProbe(t, "opened"), probeFailedAt.Add(10 * time.Minute)},
			"probe-failed, released": {targetReleased(t), probeFailedAt.Add(10 * time.Minute)},
			"deleting":               {beingDeleted(t), phaseAt.Add(10 * time.Minute)},
			"deleting, released":     {deletionReleased(t), phaseAt.Add(10 * time.Minute)},
		},
		hostclaim.InstallOverdue: {
			"installing":                 {drainUpTo(t, "installing"), install},
			"installed":                  {drainUpTo(t, "installed"), install},
			"installed, from 7 GB":       {large, install.Add(7 * time.Minute)},
			"its next is not ready":      {notReady, notReady.Claim.Op.Journal.PhaseSince.Add(15 * time.Minute)},
			"installing with none spare": {exhausted(t, "installing"), install},
		},
		hostclaim.PinUncovered: {"pinning": {drainUpTo(t, "pinning"), time.Time{}},
			"a failover": {upTo(t, "pinning"), epoch.Add(relocation.PinDelay)}},
		hostclaim.ReceiptLost: {"probing": {drainUpTo(t, "opened"), time.Time{}}},
	}
}

func TestAnOperationIsStuckFromTheSecondThatItsReasonApplies(t *testing.T) {
	for why, rows := range reasons(t) {
		for name, row := range rows {
			t.Run(string(why)+": "+name, func(t *testing.T) {
				now := row.due
				if now.IsZero() {
					now = phaseAt
				} else {
					refused(t, row.o, hostclaim.MarkStuck("op-2", why, now.Add(-time.Second)), hostclaim.ErrWrongState, "applies from")
				}
				mark := hostclaim.MarkStuck("op-2", why, now)
				o := then(t, row.o, mark)
				before, c := row.o.Claim.Clone(), o.Claim
				require.Equal(t, &hostclaim.Stuck{Reason: why, Gen: c.Gen, Since: now}, c.Op.Journal.Stuck)
				before.Gen, before.Op.Journal.Stuck = c.Gen, c.Op.Journal.Stuck
				if before.Op.Phase == hostclaim.Probing {
					before.Op.Phase, before.Op.Journal.PhaseSince = hostclaim.ProbeFailed, now
					if before.Op.Journal.PreparedOpened != "" {
						before.Op.Journal.Release = nil
					}
				}
				if why == hostclaim.ReleaseOverdue {
					before.Op.Journal.Release = nil
				}
				require.Equal(t, before, c.Clone(), "nothing else changes, but that a live target is to release, and whoever did so once more")
				refused(t, o, mark, hostclaim.ErrAlreadyRecorded, "")
				other := hostclaim.PinUncovered
				if why == other {
					other = hostclaim.ReleaseOverdue
				}
				refused(t, o, hostclaim.MarkStuck("op-2", other, now), hostclaim.ErrWrongState, "which is stuck: "+string(why))
			})
		}
	}
}

func TestAReasonThatDoesNotApplyIsRefused(t *testing.T) {
	late := phaseAt.Add(240 * time.Hour)
	everywhere := map[string]hostclaim.Observed{"deleting": beingDeleted(t), "probe-failed unopened": failedProbe(t, "attempt"),
		"probe-failed": failedProbe(t, "opened")}
	for _, stage := range []string{"acknowledged", "releasing", "released", "pinning", "pinned", "installing", "installed", "received", "attempt", "opened"} {
		everywhere[stage] = exhausted(t, stage)
	}
	for why, stages := range map[hostclaim.StuckReason][]string{
		hostclaim.ReplacementsUsedUp: {"installing", "installed", "attempt", "opened"},
		hostclaim.NoSpare:            {"installing", "installed", "attempt", "opened", "probe-failed", "probe-failed unopened"},
		hostclaim.ReleaseOverdue:     {"releasing", "released", "probe-failed", "deleting"},
		hostclaim.InstallOverdue:     {"installing", "installed"},
		hostclaim.PinUncovered:       {"pinning"},
		hostclaim.ReceiptLost:        {"opened"},
		"bad luck":                   {},
	} {
		for name, o := range everywhere {
			if slices.Contains(stages, name) {
				then(t, o, hostclaim.MarkStuck("op-2", why, late))
				continue
			}
			_, err := o.Next("nonce", hostclaim.MarkStuck("op-2", why, late))
			require.ErrorIs(t, err, hostclaim.ErrWrongState, "%s in %s", why, name)
		}
	}
	refused(t, exhausted(t, "received"), hostclaim.MarkStuck("op-2", hostclaim.ReplacementsUsedUp, late), hostclaim.ErrWrongState, "can be probed: nothing is missing")
	refused(t, drainUpTo(t, "releasing"), hostclaim.MarkStuck("op-2", "bad luck", late), hostclaim.ErrWrongState, "unknown reason")
	refused(t, drainUpTo(t, "probed"), hostclaim.MarkStuck("op-2", hostclaim.NoSpare, late), hostclaim.ErrWrongState, "has passed its probe")
	refused(t, failedProbe(t, "opened"), hostclaim.MarkStuck("op-2", hostclaim.ReplacementsUsedUp, late), hostclaim.ErrWrongState, "0 of 2")
	refused(t, drainUpTo(t, "releasing"), hostclaim.MarkStuck("op-1", hostclaim.ReleaseOverdue, late), hostclaim.ErrStaleOp, "")
	refused(t, upTo(t, "serving"), hostclaim.MarkStuck("op-1", hostclaim.ReleaseOverdue, late), hostclaim.ErrWrongState, "serving")
}

func TestAStuckTargetThatHasWrittenIsToRelease(t *testing.T) {
	o := then(t, drainUpTo(t, "opened"), hostclaim.MarkStuck("op-2", hostclaim.ReceiptLost, probeFailedAt))
	c := o.Claim
	require.Equal(t, hostclaim.ProbeFailed, c.Op.Phase)
	require.Equal(t, probeFailedAt, c.Op.Journal.PhaseSince)
	require.Equal(t, target.Box, c.Op.Exec)
	require.Nil(t, c.Op.Journal.Release, "the source's is not the target's")
	refused(t, o, hostclaim.AdmitWriter(fresh(c, "g-2")), hostclaim.ErrWrongState, "nobody is admitted")
	then(t, o, hostclaim.JournalRelease("op-2", releaseOf(t, c, written)))
}

// plant makes an operation stuck that would go on otherwise.
func plant(o hostclaim.Observed, why hostclaim.StuckReason) hostclaim.Observed {
	o.Claim = o.Claim.Clone()
	o.Claim.Op.Journal.Stuck = &hostclaim.Stuck{Reason: why, Gen: o.Claim.Gen, Since: phaseAt}
	return o
}

// TestNothingButFactsGoesOnWhileAnOperationIsStuck pairs each step that is no
// fact with a stage in which it is legal.
func TestNothingButFactsGoesOnWhileAnOperationIsStuck(t *testing.T) {
	released, opened := drainUpTo(t, "released"), drainUpTo(t, "opened")
	deleted, untargeted := deletionReleased(t), withoutTarget(t)
	for name, row := range map[string]struct {
		o    hostclaim.Observed
		step hostclaim.Transition
	}{
		"acknowledge":          {drainUpTo(t, "starting"), ack(target)},
		"to releasing":         {drainUpTo(t, "acknowledged"), hostclaim.ToReleasing("op-2", phaseAt)},
		"pin a failover":       {upTo(t, "acknowledged"), hostclaim.PinFailover("op-2", phaseAt)},
		"pin after a release":  {released, hostclaim.PinAfterRelease("op-2", stopOf(t, released.Claim), hostclaim.Member{}, phaseAt)},
		"pin":                  {drainUpTo(t, "pinning"), hostclaim.JournalPin("op-2", pinOf(drainUpTo(t, "pinning").Claim))},
		"name a target":        {untargeted, hostclaim.NameTarget("op-2", spare, phaseAt)},
		"hand over":            {drainUpTo(t, "pinned"), hostclaim.ToInstalling("op-2", "p-1", phaseAt)},
		"accept a build":       {drainUpTo(t, "installing"), hostclaim.ToInstalled("op-2", built, phaseAt)},
		"record an install":    {drainUpTo(t, "installed"), hostclaim.RecordLocalInstall("op-2", installOf(drainUpTo(t, "installed").Claim))},
		"to probing":           {drainUpTo(t, "received"), hostclaim.ToProbing("op-2", phaseAt)},
		"begin an attempt":     {drainUpTo(t, "probing"), hostclaim.BeginProbeAttempt("op-2", 1)},
		"open":                 {drainUpTo(t, "attempt"), hostclaim.AdmitWriter(openingOf(drainUpTo(t, "attempt").Claim, hostclaim.Released))},
		"publish":              {opened, hostclaim.PublishGeneration(target.Box, opened.Claim.Holder.Session)},
		"probe":                {opened, hostclaim.RecordProbe("op-2", target.Box, opened.Claim.Holder.Session)},
		"give a probe up":      {opened, hostclaim.ToProbeFailed("op-2", probeFailedAt)},
		"complete":             {drainUpTo(t, "probed"), hostclaim.CompleteRelocation("op-2")},
		"abandon":              {drainUpTo(t, "installing"), hostclaim.AbandonTarget("op-2", spare, "p-2", phaseAt.Add(time.Hour))},
		"admit in releasing":   {drainUpTo(t, "releasing"), hostclaim.AdmitWriter(readmission(drainUpTo(t, "releasing").Claim, "g-2"))},
		"park after a release": {deleted, hostclaim.ParkAfterRelease("op-2", stopOf(t, deleted.Claim))},
	} {
		t.Run(name, func(t *testing.T) {
			then(t, row.o, row.step)
			refused(t, plant(row.o, hostclaim.NoSpare), row.step, hostclaim.ErrWrongState, "stuck")
		})
	}
	starting := plant(drainUpTo(t, "starting"), hostclaim.NoSpare)
	then(t, starting, hostclaim.AdmitWriter(readmission(starting.Claim, "g-2")))
	replayed := plant(drainUpTo(t, "acknowledged"), hostclaim.NoSpare)
	refused(t, replayed, ack(target), hostclaim.ErrAlreadyRecorded, "")
}

// TestAFactCuresTheReasonsThatItTakesAway, stays legal under every reason, and
// leaves the others.
func TestAFactCuresTheReasonsThatItTakesAway(t *testing.T) {
	release := func(final hostclaim.Position) func(*hostclaim.Claim) hostclaim.Transition {
		return func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.JournalRelease("op-2", releaseOf(t, c, final))
		}
	}
	end := func(final hostclaim.Position) func(*hostclaim.Claim) hostclaim.Transition {
		return func(c *hostclaim.Claim) hostclaim.Transition {
			return hostclaim.EndSession(c.Holder.WriterBox, c.Holder.Session, final)
		}
	}
	fenced := always(fenceSource(t))
	replace := always(hostclaim.ReplaceTarget("op-2", lostAt(t, target, diedAt), spare, "p-2", diedAt))
	ofTarget := []hostclaim.StuckReason{hostclaim.ReplacementsUsedUp, hostclaim.NoSpare, hostclaim.InstallOverdue, hostclaim.ReceiptLost}
	for name, row := range map[string]struct {
		o     hostclaim.Observed
		fact  func(*hostclaim.Claim) hostclaim.Transition
		cures []hostclaim.StuckReason
	}{
		"the source releases":            {drainUpTo(t, "releasing"), release(pinned), []hostclaim.StuckReason{hostclaim.ReleaseOverdue}},
		"the target releases":            {failedProbe(t, "opened"), release(written), []hostclaim.StuckReason{hostclaim.ReleaseOverdue}},
		"the source dies in starting":    {drainUpTo(t, "starting"), fenced, []hostclaim.StuckReason{hostclaim.ReleaseOverdue}},
		"the source dies in releasing":   {drainUpTo(t, "releasing"), fenced, []hostclaim.StuckReason{hostclaim.ReleaseOverdue}},
		"the source dies after it":       {drainUpTo(t, "released"), fenced, []hostclaim.StuckReason{hostclaim.ReleaseOverdue}},
		"the source dies in pinning":     {drainUpTo(t, "pinning"), fenced, nil},
		"the source dies in probing":     {drainUpTo(t, "opened"), fenced, nil},
		"the target dies in releasing":   {drainUpTo(t, "releasing"), replace, ofTarget},
		"the target dies in pinning":     {drainUpTo(t, "pinning"), replace, ofTarget},
		"the target dies in installing":  {drainUpTo(t, "installing"), replace, ofTarget},
		"the target dies in probing":     {drainUpTo(t, "opened"), replace, ofTarget},
		"the target dies, probe-failed":  {failedProbe(t, "opened"), replace, append(slices.Clone(ofTarget), hostclaim.ReleaseOverdue)},
		"the source's session ends":      {drainUpTo(t, "releasing"), end(pinned), nil},
		"the target's session ends":      {drainUpTo(t, "opened"), end(written), nil},
		"the failed one's session ends":  {failedProbe(t, "opened"), end(written), nil},
		"the session ends in a deletion": {beingDeleted(t), release(pinned), []hostclaim.StuckReason{hostclaim.ReleaseOverdue}},
	} {
		t.Run(name, func(t *testing.T) {
			for why := range reasons(t) {
				o := plant(row.o, why)
				c := then(t, o, row.fact(o.Claim)).Claim
				require.Equal(t, slices.Contains(row.cures, why), c.Op.Journal.Stuck == nil, why)
			}
		})
	}
}

// TestBothBoxesOfAStuckDrainMayDie: the source serves on while its target is
// gone, and then dies itself.
func TestBothBoxesOfAStuckDrainMayDie(t *testing.T) {
	o := then(t, exhausted(t, "starting"), hostclaim.FenceExhaustedTarget("op-2", lostAt(t, target, diedAt), diedAt), fenceSource(t))
	require.Equal(t, hostclaim.None, o.Claim.Op.Exec)
	require.Equal(t, hostclaim.Starting, o.Claim.Op.Phase)
	require.Equal(t, hostclaim.ReplacementsUsedUp, o.Claim.Op.Journal.Stuck.Reason)
	require.Equal(t, []string{target.Box, source.Box}, o.Claim.Lost)
	require.ElementsMatch(t, []string{source.Box, target.Box}, slices.Collect(maps.Keys(o.Claim.Op.Journal.Fences)))
	o = then(t, o, resolve(t, o, spare, hostclaim.Proof{}))
	require.Equal(t, spare.Box, carriedOn(t, o).Op.Exec)
}
