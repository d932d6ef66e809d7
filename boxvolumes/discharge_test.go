package boxvolumes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/boxvolumes/volumestest"
)

func TestAWholeLifeWhoseVolumesGoWithItIsDischarged(t *testing.T) {
	v := judge(life())
	requireDischarged(t, v)
	require.Equal(t, "e-1", v.Enrollment())
}

// Each spoils the newest record in one way alone.
func TestARecordThatDoesNotHoldKeepsTheChore(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  func(*boxvolumes.Record)
		reason string
	}{
		{"another version", func(r *boxvolumes.Record) { r.V = 2 }, "version 2, expected 1"},
		{"another box", func(r *boxvolumes.Record) { r.Box = "shop-2" }, `it names box "shop-2", the entry is "shop-1"`},
		{"no state", func(r *boxvolumes.Record) { r.State = "" }, `state "" shows no volumes`},
		{"a state that shows nothing", func(r *boxvolumes.Record) { r.State = "terminated" }, `state "terminated"`},
		{"no volume", func(r *boxvolumes.Record) { r.Volumes = nil }, "it lists no volume"},
		{"a volume without an id", func(r *boxvolumes.Record) {
			r.Volumes = append(r.Volumes, boxvolumes.Volume{Device: "/dev/x", Status: "attached", DeleteOnTermination: true})
		}, `the volume at "/dev/x" has no id`},
		{"a volume without a device", func(r *boxvolumes.Record) { r.Volumes[1].Device = "" }, `volume "vol-2" has no device`},
		{"a volume that is detached", func(r *boxvolumes.Record) { r.Volumes[1].Status = "detached" }, `volume "vol-2" is "detached"`},
		{"a volume that is busy", func(r *boxvolumes.Record) { r.Volumes[1].Status = "busy" }, `is "busy"`},
		{"a volume without a status", func(r *boxvolumes.Record) { r.Volumes[1].Status = "" }, `is "" in state "running"`},
		{"a volume that outlives its instance", func(r *boxvolumes.Record) { r.Volumes[1].DeleteOnTermination = false },
			`volume "vol-2" outlives its instance`},
		{"a volume that it says was removed", func(r *boxvolumes.Record) { r.RemovedVolumes = []string{"vol-9"} }, `volume "vol-9" was removed`},
		{"a volume less than its neighbour", func(r *boxvolumes.Record) { r.Volumes = r.Volumes[1:] }, `volume "vol-1" is no longer there`},
		{"a volume instead of its neighbour's", func(r *boxvolumes.Record) { r.Volumes[1] = volume("vol-3") }, `volume "vol-2" is no longer there`},
	} {
		t.Run(c.name, func(t *testing.T) {
			records := life()
			c.spoil(&records[2])
			v := judge(records)
			requireKept(t, v, c.reason)
			require.Equal(t, "e-1", v.Enrollment())
		})
	}
}

func TestEveryRecordCounts(t *testing.T) {
	for i := range life() {
		records := life()
		records[i].Volumes[0].DeleteOnTermination = false
		requireKept(t, judge(records), `volume "vol-1" outlives its instance`)
	}
}

func TestARemovalThatNoRecordListedIsFoundByItsNeighbours(t *testing.T) {
	records := life()
	records = slices.Insert(records, 2, seen(3*time.Hour, volume("vol-1")))
	for _, r := range records {
		require.Empty(t, r.RemovedVolumes)
	}
	requireKept(t, judge(records), "record of 2026-01-02T06:04:05.000000006Z: volume \"vol-2\" is no longer there")
}

func TestOnlyStatesThatCarryMappingsCount(t *testing.T) {
	for _, state := range []string{"pending", "running", "shutting-down", "stopping", "stopped"} {
		records := life()
		records[2].State = state
		requireDischarged(t, judge(records))
	}
	for _, state := range []string{"terminated", "Running", "rebooting", ""} {
		records := life()
		records[2].State = state
		requireKept(t, judge(records), "shows no volumes")
	}
}

func TestATerminatedReadNeverCountsThoughItListsItsRootVolume(t *testing.T) {
	last := seen(5*time.Hour, volume("vol-1"), volume("vol-2"))
	last.State = "terminated"
	requireKept(t, judge(append(life(), last)), `state "terminated" shows no volumes`)
}

func TestAttachingIsAttached(t *testing.T) {
	records := life()
	records[1].Volumes[1].Status = "attaching"
	requireDischarged(t, judge(records))
}

func TestDetachingPassesOnlyWhileShuttingDownWithATrueFlag(t *testing.T) {
	for _, c := range []struct {
		state string
		flag  bool
		want  string
	}{
		{"shutting-down", true, ""},
		{"shutting-down", false, `volume "vol-2" is "detaching" in state "shutting-down"`},
		{"running", true, `volume "vol-2" is "detaching" in state "running"`},
		{"stopping", true, `is "detaching" in state "stopping"`},
	} {
		records := life()
		records[2].State = c.state
		records[2].Volumes[1].Status, records[2].Volumes[1].DeleteOnTermination = "detaching", c.flag
		v := judge(records)
		require.Equal(t, c.want == "", v.Discharged(), c)
		require.Contains(t, v.Reason(), c.want)
	}
}

func TestTheNewestRecordIsWithinTwoHoursOfTheTermination(t *testing.T) {
	newest := life()[2].ObservedAt
	for _, within := range []time.Duration{2 * time.Hour, 0, -2 * time.Hour} {
		requireDischarged(t, boxvolumes.Discharge(life(), shop, enrolled, newest.Add(within)))
	}
	for _, beyond := range []time.Duration{2*time.Hour + time.Second, 2*time.Hour + 1, -2*time.Hour - 1} {
		requireKept(t, boxvolumes.Discharge(life(), shop, enrolled, newest.Add(beyond)), "from the termination, at most 2h0m0s")
	}
}

func TestTheFirstRecordIsWithinAnHourOfTheEnrollment(t *testing.T) {
	first := life()[0].ObservedAt
	for _, within := range []time.Duration{time.Hour, 0, -time.Hour} {
		requireDischarged(t, boxvolumes.Discharge(life(), shop, first.Add(-within), terminated))
	}
	for _, beyond := range []time.Duration{time.Hour + 1, -time.Hour - 1} {
		requireKept(t, boxvolumes.Discharge(life(), shop, first.Add(-beyond), terminated), "from the enrollment, at most 1h0m0s")
	}
}

func TestNoRecordKeepsTheChore(t *testing.T) {
	requireKept(t, judge(nil), "there is no record of the instance")
}

func TestOtherBoxesRecordsAreIgnored(t *testing.T) {
	foreign := seen(3*time.Hour, boxvolumes.Volume{})
	for name, spoil := range map[string]func(*boxvolumes.Record){
		"another enrollment's":                 func(r *boxvolumes.Record) { r.Enrollment = "e-2" },
		"another enrollment's, of any version": func(r *boxvolumes.Record) { r.Enrollment, r.V = "e-2", 2 },
		"another instance's":                   func(r *boxvolumes.Record) { r.Cloud.InstanceID = "i-other" },
		"another account's":                    func(r *boxvolumes.Record) { r.Cloud.Account = "999999999999" },
		"another cloud region's":               func(r *boxvolumes.Record) { r.Cloud.Region = "eu-central-1" },
	} {
		r := foreign
		spoil(&r)
		t.Run(name, func(t *testing.T) {
			requireDischarged(t, judge(append(life(), r)))
			requireKept(t, judge([]boxvolumes.Record{r}), "there is no record of the instance")
		})
	}
	requireKept(t, judge(append(life(), foreign)), "has no id")
}

func TestAnotherVersionRefusesBeforeTheInstanceIsLookedAt(t *testing.T) {
	r := seen(3*time.Hour, volume("vol-1"))
	r.V, r.Cloud = 2, cloud("i-other")
	requireKept(t, judge(append(life(), r)), "version 2, expected 1")
}

func TestTheOrderOfRecordsDoesNotMatter(t *testing.T) {
	records := life()
	slices.Reverse(records)
	requireDischarged(t, judge(records))
	require.True(t, slices.IsSortedFunc(records, func(a, b boxvolumes.Record) int { return b.ObservedAt.Compare(a.ObservedAt) }),
		"and stays the caller's")
}

// Two empty values never match.
func TestNothingIsDischargedByWhatIsEmpty(t *testing.T) {
	for name, c := range map[string]struct {
		enrollment string
		cloud      boxid.Cloud
		reason     string
	}{
		"no cloud":      {"e-1", boxid.Cloud{}, "no complete cloud"},
		"half a cloud":  {"e-1", boxid.Cloud{Provider: boxid.AWS, InstanceID: "i-shop"}, "no complete cloud"},
		"no enrollment": {"", shop.Cloud, `enrollment ""`},
	} {
		entry, records := shop, life()
		entry.Enrollment, entry.Cloud = c.enrollment, c.cloud
		for i := range records {
			records[i].Enrollment, records[i].Cloud = c.enrollment, c.cloud
		}
		t.Run(name, func(t *testing.T) {
			requireKept(t, boxvolumes.Discharge(records, entry, enrolled, terminated), c.reason)
		})
	}
	none := time.Time{}
	at := func(t time.Time) boxvolumes.Record {
		r := seen(0, volume("vol-1"))
		r.ObservedAt = t
		return r
	}
	requireKept(t, boxvolumes.Discharge([]boxvolumes.Record{at(none), at(terminated)}, shop, none, terminated), "no time of enrollment")
	requireKept(t, boxvolumes.Discharge([]boxvolumes.Record{at(none)}, shop, none.Add(time.Hour), none), "no time of termination")
}

func TestTheZeroVerdictDischargesNothing(t *testing.T) {
	var v boxvolumes.Verdict
	require.False(t, v.Discharged())
	require.Empty(t, v.Enrollment())
	require.Empty(t, v.Reason())
}

func TestVolumestestMakesTheVerdictThatItIsAskedFor(t *testing.T) {
	v := volumestest.Discharged(t, "shop-1", "e-9")
	require.True(t, v.Discharged())
	require.Equal(t, "e-9", v.Enrollment())
	require.Equal(t, v, volumestest.Discharged(t, "shop-1", "e-9"))
}
