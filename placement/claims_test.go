package placement_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/placement"
)

// rows is what a box would publish of n hosts, each with an alias.
func rows(n int) map[string]placement.Host {
	list := map[string]placement.Host{}
	for i := range n {
		name := fmt.Sprintf("host-%04d", i)
		list[name] = placement.Host{Role: placement.RoleHome, App: "demo/notes", Aliases: []string{"www." + name}}
	}
	return list
}

// here is the claim of a host that box-1 serves.
func here(stamp uint64) placement.Claim {
	return placement.Claim{Exec: "box-1", Stamp: stamp, Gen: stamp, ETag: fmt.Sprint("e", stamp)}
}

// decided is what box-1 may publish of one row.
func decided(c *placement.Claims) map[string]placement.Host {
	hosts := rows(1)
	c.Decide(hosts)
	return hosts
}

// pass makes the reads of one pass at now and returns them in their order.
func pass(c *placement.Claims, now time.Time, read func(host string) (placement.Claim, error)) []string {
	wanted := c.Wanted(now)
	for _, host := range wanted {
		c.Try(host, now)
		if claim, err := read(host); err == nil {
			c.Saw(host, claim, now)
		}
	}
	return wanted
}

func reads(claim placement.Claim, err error) func(string) (placement.Claim, error) {
	return func(string) (placement.Claim, error) { return claim, err }
}

var errRead = errors.New("the read failed")

func TestAHostNeverReadIsPublishedWithoutAStamp(t *testing.T) {
	c := &placement.Claims{Box: "box-1"}
	require.Zero(t, decided(c)["host-0000"].Stamp, "not even kept")
	c.Keep(rows(1))
	pass(c, now, reads(placement.Claim{}, errRead))
	require.Contains(t, decided(c), "host-0000")
	require.Zero(t, decided(c)["host-0000"].Stamp)
}

func TestAClaimThatNamesAnotherBoxOrNoneWithholdsTheHostWithItsAliases(t *testing.T) {
	for _, exec := range []string{"box-2", "none", ""} {
		c := &placement.Claims{Box: "box-1"}
		c.Keep(rows(1))
		pass(c, now, reads(here(7), nil))
		require.Equal(t, placement.Host{Role: placement.RoleHome, Stamp: 7, App: "demo/notes", Aliases: []string{"www.host-0000"}}, decided(c)["host-0000"])
		pass(c, now.Add(10*time.Minute), reads(placement.Claim{Exec: exec, Stamp: 8, Gen: 8}, nil))
		require.Empty(t, decided(c), exec)
	}
}

func TestAFailedReadKeepsTheLastDecision(t *testing.T) {
	c := &placement.Claims{Box: "box-1"}
	c.Keep(rows(1))
	pass(c, now, reads(here(7), nil))
	require.Len(t, pass(c, now.Add(time.Hour), reads(placement.Claim{}, errRead)), 1)
	require.Equal(t, uint64(7), decided(c)["host-0000"].Stamp)
	pass(c, now.Add(time.Hour), reads(placement.Claim{Exec: "box-2", Gen: 8}, nil))
	pass(c, now.Add(2*time.Hour), reads(placement.Claim{}, errRead))
	require.Empty(t, decided(c), "it stays withheld")
}

func TestAReadStandsTenMinutes(t *testing.T) {
	c := &placement.Claims{Box: "box-1"}
	_, any := c.Due()
	require.False(t, any)
	c.Keep(rows(1))
	due, any := c.Due()
	require.True(t, any)
	require.Zero(t, due)
	pass(c, now, reads(here(7), nil))
	due, _ = c.Due()
	require.Equal(t, now.Add(10*time.Minute), due)
	require.Empty(t, c.Wanted(due.Add(-1)))
	require.Len(t, c.Wanted(due), 1)
	c.Keep(nil)
	c.Keep(rows(1))
	require.Len(t, c.Wanted(now), 1, "of a row that went nothing is remembered")
}

func TestARowThatChangedIsReadFirstInTheNextPass(t *testing.T) {
	c := &placement.Claims{Box: "box-1"}
	c.Keep(rows(1))
	pass(c, now, reads(here(7), nil))
	c.Keep(rows(300))
	c.Touch("host-0000", now.Add(time.Second))
	c.Touch("a row that is not there", now)
	at := now.Add(2 * time.Second)
	list := pass(c, at, reads(placement.Claim{}, errRead))
	require.Len(t, list, 256)
	require.Equal(t, "host-0000", list[0], "before those never read")
	require.Equal(t, "host-0256", c.Wanted(at)[0], "and once only: it failed, and went to the back")
	c.Saw("host-0000", here(7), now)
	require.Contains(t, wantedOf(c, 300, at), "host-0000", "a read that began before the change does not show it")
	c.Saw("host-0000", here(8), now.Add(time.Second))
	require.NotContains(t, wantedOf(c, 300, at), "host-0000")
}

// wantedOf is every read that is due among n rows, over several passes.
func wantedOf(c *placement.Claims, n int, at time.Time) (list []string) {
	for len(list) < n {
		at = at.Add(time.Millisecond)
		wanted := c.Wanted(at)
		for _, host := range wanted {
			c.Try(host, at)
		}
		if list = append(list, wanted...); len(wanted) < 256 {
			break
		}
	}
	return list
}

func TestAnOlderAnswerIsForgotten(t *testing.T) {
	c := &placement.Claims{Box: "box-1"}
	c.Keep(rows(1))
	c.Saw("host-0000", placement.Claim{Exec: "box-2", Gen: 8}, now)
	c.Saw("host-0000", here(7), now.Add(time.Second))
	require.Empty(t, decided(c), "the answers of two reads that overlap come in any order")
	c.Saw("host-0000", here(9), now.Add(time.Minute))
	c.Saw("host-0000", placement.Claim{}, now.Add(2*time.Minute))
	require.Empty(t, decided(c), "no claim is no older claim")
}

func TestAListingThatShowsAClaimAsItWasReadRenewsIt(t *testing.T) {
	c := &placement.Claims{Box: "box-1"}
	c.Keep(rows(2))
	pass(c, now, func(host string) (placement.Claim, error) {
		if host == "host-0001" {
			return placement.Claim{}, errRead
		}
		return here(7), nil
	})
	c.Saw("host-0001", here(7), now)
	at := now.Add(9 * time.Minute)
	c.Listed(map[string]string{"host-0000": "e7", "host-0001": "e8"}, at)
	require.Equal(t, []string{"host-0001"}, c.Wanted(at), "and what it shows otherwise is read")
	pass(c, at.Add(time.Second), reads(here(8), nil))
	require.Equal(t, []string{"host-0000"}, c.Wanted(at.Add(10*time.Minute)))
	require.Len(t, c.Wanted(at.Add(10*time.Minute+time.Second)), 2)

	c.Listed(map[string]string{"host-0001": "e7"}, at.Add(time.Millisecond))
	require.NotContains(t, c.Wanted(at.Add(time.Minute)), "host-0001", "the read is newer than the listing")
	require.Contains(t, c.Wanted(at.Add(time.Minute)), "host-0000", "a claim that is not listed any more is read")
}

func TestAListingRenewsNoRowThatChangedSinceItBegan(t *testing.T) {
	c := &placement.Claims{Box: "box-1"}
	c.Keep(rows(2))
	c.Saw("host-0000", here(7), now)
	c.Touch("host-0000", now.Add(2*time.Minute))
	c.Listed(map[string]string{"host-0000": "e7", "host-0001": ""}, now.Add(time.Minute))
	require.Equal(t, []string{"host-0000", "host-0001"}, c.Wanted(now.Add(3*time.Minute)), "nor one that was never read")
	c.Listed(map[string]string{"host-0000": "e7"}, now.Add(3*time.Minute))
	require.Equal(t, []string{"host-0001"}, c.Wanted(now.Add(3*time.Minute)))
}

func Test256FailingClaimsDoNotStarveThe257thRead(t *testing.T) {
	c := &placement.Claims{Box: "box-1"}
	c.Keep(rows(257))
	fail := func(host string) (placement.Claim, error) {
		if host != "host-0256" {
			return placement.Claim{}, errRead
		}
		return here(7), nil
	}
	require.NotContains(t, pass(c, now, fail), "host-0256")
	require.Equal(t, "host-0256", pass(c, now.Add(30*time.Second), fail)[0])
	at := now.Add(10*time.Minute + 30*time.Second) // it is due again, and so are those that fail
	for i := range 20 {
		pass(c, now.Add(time.Duration(i+2)*30*time.Second-1), fail)
	}
	require.Equal(t, "host-0256", pass(c, at, fail)[0])
}

// publisher drives the claims and the pace of a box as its announcer does.
type publisher struct {
	claims placement.Claims
	pace   placement.Pace
	now    time.Time
	takes  time.Duration // a pass

	// Of what happened:
	passes, writes int
	refuse         func(now time.Time) bool // the store refuses the write
}

// run makes passes until end.
func (p *publisher) run(end time.Time, read func(host string) (placement.Claim, error)) {
	for p.now.Before(end) {
		p.passes++
		reads := pass(&p.claims, p.now, read)
		write := p.pace.Regular(p.now) || p.pace.Backoff() > 0
		p.now = p.now.Add(p.takes)
		switch {
		case write && p.refuse != nil && p.refuse(p.now):
			p.writes++
			p.pace.Failed(p.now)
		case write:
			p.writes++
			p.pace.Wrote(p.now, 5*time.Minute+time.Duration(len(reads))*time.Minute/256)
		default:
			p.pace.Passed(p.now)
		}
		next := p.pace.Rest()
		if due, any := p.claims.Due(); any && p.pace.Read(due).Before(next) {
			next = p.pace.Read(due)
		}
		p.now = next
	}
}

func TestNoClaimOf2000GoesUnreadOver15Minutes(t *testing.T) {
	for _, takes := range []time.Duration{0, 20 * time.Second} {
		p := &publisher{claims: placement.Claims{Box: "box-1"}, now: now, takes: takes}
		p.claims.Keep(rows(2000))
		read, total := map[string]time.Time{}, 0
		p.run(now.Add(3*time.Hour), func(host string) (placement.Claim, error) {
			if last, again := read[host]; again {
				require.LessOrEqual(t, p.now.Sub(last), 15*time.Minute, host)
			}
			read[host], total = p.now, total+1
			return here(7), nil
		})
		require.Len(t, read, 2000)
		for host, last := range read {
			require.LessOrEqual(t, p.now.Sub(last), 15*time.Minute, host)
		}
		require.LessOrEqual(t, total, 2000*19, "nor is one read much more often")
		require.LessOrEqual(t, p.writes, 3*12+1)
	}
}

func TestABucketThatRefusesWritesFor20MinutesSeesFewAttemptsAndThenPassesResume(t *testing.T) {
	p := &publisher{claims: placement.Claims{Box: "box-1"}, now: now}
	p.claims.Keep(rows(2000))
	never := reads(placement.Claim{}, errRead) // reads are due all the time
	p.refuse = func(at time.Time) bool { return at.Before(now.Add(20 * time.Minute)) }
	p.run(now.Add(20*time.Minute), never)
	require.LessOrEqual(t, p.writes, 16)
	require.GreaterOrEqual(t, p.writes, 8)
	require.Equal(t, p.writes, p.passes, "nor is anything read in between")

	p.run(p.now.Add(1), never) // the first pass that is let through
	passes, writes := p.passes, p.writes
	p.run(p.now.Add(5*time.Minute), never)
	require.Equal(t, 10, p.passes-passes, "every 30 s")
	require.LessOrEqual(t, p.writes-writes, 1)
}

func TestWhatIsReadBeforeARowIsKeptStandsUntilTheNextKeep(t *testing.T) {
	c := &placement.Claims{Box: "box-1"}
	c.Saw("host-0000", here(7), now)
	c.Keep(rows(1))
	require.Empty(t, c.Wanted(now))
	require.Equal(t, uint64(7), decided(c)["host-0000"].Stamp)
	c.Saw("host-0001", here(7), now)
	c.Keep(rows(1))
	c.Keep(rows(2))
	require.Equal(t, []string{"host-0001"}, c.Wanted(now))
}

// TestAnOlderAbsenceIsForgotten: the read began before the one that found the
// claim, and ended after it.
func TestAnOlderAbsenceIsForgotten(t *testing.T) {
	c := placement.Claims{Box: "box-1"}
	hosts := func() map[string]placement.Host {
		return map[string]placement.Host{"notes.example": {Role: placement.RoleHome}}
	}
	began := time.Unix(1000, 0)
	c.Keep(hosts())
	c.Saw("notes.example", placement.Claim{Exec: "box-1", Stamp: 4, Gen: 4, ETag: "e4"}, began.Add(time.Second))
	c.Saw("notes.example", placement.Claim{}, began)
	published := hosts()
	c.Decide(published)
	require.Contains(t, published, "notes.example")

	c.Saw("notes.example", placement.Claim{}, began.Add(2*time.Second))
	c.Decide(published)
	require.Empty(t, published)
}
