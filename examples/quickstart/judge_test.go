package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

// good is a failover from a to b that kept every promise: twenty notes from a,
// of which the last two did not reach the store, then ten from b.
func good() evidence {
	ev := evidence{
		store: "dir", source: "a", session: 2, writers: 1, sent: map[string]string{},
		died: at(1000), terminated: at(2000), versions: versions(),
	}
	for n := range 30 {
		run, when := "run-a", n*50
		if n >= 20 {
			run, when = "run-b", 6000+n*50
		}
		body := fmt.Sprint("body ", n)
		a := ack{fmt.Sprint("note-", n), digest([]byte(body)), at(when)}
		ev.notes = append(ev.notes, a)
		ev.sent[a.id] = a.sum
		if n < 18 || n >= 20 {
			ev.listed = append(ev.listed, note{RowID: int64(len(ev.listed) + 1), ID: a.id, Run: run, Body: body})
		}
	}
	ev.uploads = []ack{{"f1", "f1", at(-5000)}, {"f2", "f2", at(900)}, {"f3", "f3", at(7000)}}
	ev.files = []upload{{"f1", "f1"}, {"f3", "f3"}}
	return ev
}

// versions are the claim as it goes through a failover.
func versions() []version {
	claim := func(gen uint64, when int, op hostclaim.Op) version {
		return version{&hostclaim.Claim{Gen: gen, Op: op, Holder: &hostclaim.Holder{Stamp: 2, Session: 2}}, at(when)}
	}
	intent := hostclaim.Intent{Reason: hostclaim.Failover, Source: hostclaim.Member{Box: "a"}, Target: hostclaim.Member{Box: "b"}}
	journal := hostclaim.Journal{Fences: map[string]hostclaim.Fence{"a": {ObservedAt: at(2100)}}}
	all := []version{
		claim(3, 0, hostclaim.Op{Kind: hostclaim.Serving, Exec: "a"}),
		claim(4, 2200, hostclaim.Op{Kind: hostclaim.Relocating, Phase: hostclaim.Starting, Exec: "a", Intent: intent, Journal: journal}),
	}
	journal.Pin = &hostclaim.Pin{}
	all = append(all, claim(6, 4300, hostclaim.Op{Kind: hostclaim.Relocating, Phase: hostclaim.Installing, Exec: "b", Intent: intent, Journal: journal}))
	journal.PreparedAuthority = &hostclaim.PreparedAuthority{}
	all = append(all, claim(7, 5000, hostclaim.Op{Kind: hostclaim.Relocating, Phase: hostclaim.Installed, Exec: "b", Intent: intent, Journal: journal}))
	last := claim(10, 6000, hostclaim.Op{Kind: hostclaim.Serving, Exec: "b"})
	last.Lost = []string{"a"}
	last.Holder = &hostclaim.Holder{Stamp: 8, Session: 8, Admissions: []hostclaim.AdmissionRecord{
		{Session: 8, WritesLost: &hostclaim.WritesLost{Session: 2, Box: "a"}}}}
	return append(all, last)
}

func TestAFailoverThatKeptEveryPromise(t *testing.T) {
	o := judge(good())
	require.Empty(t, o.broken)
	require.Equal(t, 2, o.lostDeclared)
	require.Zero(t, o.lostUndeclared)
	require.Equal(t, 100*time.Millisecond, o.lostSpan)
	require.Equal(t, 1, o.lostUploads)
	require.Equal(t, 6050*time.Millisecond, o.unavailable)
	require.Equal(t, phases{detected: at(2100), fenced: at(2200), pinned: at(4300), built: at(5000),
		installed: at(6000), probed: at(6000), serving: at(6000)}, o.phases, "steps between two looks get the later's time")
}

func TestTheLastLineIsForMachines(t *testing.T) {
	var line bytes.Buffer
	require.NoError(t, printJSON(&line, judge(good()), moves{skipped: "not root"}, alone()))
	require.JSONEq(t, `{"outcome":"ok","store":"dir","drain":null,"drain_skipped":"not root","failover":{"unavailable_ms":6050,"fence_to_serving_ms":3900,
		"acked":30,"lost_declared":2,"lost_undeclared":0,"max_writers":1},
		"region":{"boxes":2,"hosts":1,"came_back":1,"first_ms":6000,"median_ms":6000,"last_ms":6000,"detected_ms":1100,"stayed":0,"stayed_gap_ms":0,
		"lost_declared":2,"lost_undeclared":0,"max_writers":1}}`, line.String())
	ev := good()
	ev.writers = 2
	line.Reset()
	require.NoError(t, printJSON(&line, judge(ev), moves{skipped: "not root"}, alone()))
	var r result
	require.NoError(t, json.Unmarshal(line.Bytes(), &r))
	require.Equal(t, "broken", r.Outcome)
	require.Equal(t, []string{"the app ran on 2 boxes at one time"}, r.Broken)
}

// Each row breaks one promise of a good failover.
func TestEveryBrokenPromiseIsFound(t *testing.T) {
	drop := func(ev *evidence, id string) {
		for i, n := range ev.listed {
			if n.ID == id {
				ev.listed = append(ev.listed[:i:i], ev.listed[i+1:]...)
				return
			}
		}
	}
	for name, row := range map[string]struct {
		breaks     func(*evidence)
		want       string
		undeclared int
	}{
		"two writers":           {func(ev *evidence) { ev.writers = 2 }, "on 2 boxes at one time", 0},
		"never served":          {func(ev *evidence) { ev.versions = ev.versions[:4] }, "never served", 2},
		"a hole":                {func(ev *evidence) { drop(ev, "note-5") }, "note-5 on are gone: later notes", 1},
		"a loss of the new":     {func(ev *evidence) { drop(ev, "note-29") }, "acknowledged by the new home", 1},
		"an undeclared loss":    {func(ev *evidence) { ev.versions[4].Holder.Admissions[0].WritesLost = nil }, "declares no loss", 2},
		"another's declaration": {func(ev *evidence) { ev.session = 1 }, "declares no loss", 2},
		"another body":          {func(ev *evidence) { ev.listed[3].Body = "x" }, "note-3: its body", 0},
		"another key":           {func(ev *evidence) { ev.listed[3].Error = "sealed" }, "the instance key does not open it: sealed", 0},
		"a note nobody sent":    {func(ev *evidence) { ev.listed[3].ID = "x" }, "note x: its body", 1},
		"interleaved runs":      {func(ev *evidence) { ev.listed[9].Run = "run-b" }, "run-a wrote again", 0},
		"rows out of order":     {func(ev *evidence) { ev.listed[9].RowID = 1 }, "not in order", 0},
		"a lost upload":         {func(ev *evidence) { ev.files = ev.files[1:] }, "file f1", 0},
		"a new upload lost":     {func(ev *evidence) { ev.files = ev.files[:1] }, "file f3", 0},
		"another content":       {func(ev *evidence) { ev.files[0].SHA256 = "x" }, "file f1: its digest", 0},
		"a session goes back":   {func(ev *evidence) { ev.versions[4].Holder.Session = 1 }, "number went back", 0},
		"no evidence": {func(ev *evidence) {
			for i := range ev.versions {
				ev.versions[i].Op.Journal.Fences = nil
				ev.versions[i].Lost = nil
			}
		}, "without evidence", 0},
	} {
		t.Run(name, func(t *testing.T) {
			ev := good()
			row.breaks(&ev)
			o := judge(ev)
			require.NotEmpty(t, o.broken)
			require.Contains(t, fmt.Sprint(o.broken), row.want)
			require.Equal(t, row.undeclared, o.lostUndeclared)
		})
	}
}

func TestAWokenBoxsWritesAreNowhere(t *testing.T) {
	ev := good()
	late := ack{"late-0", digest([]byte("late")), at(9000)}
	passed := ack{"late-1", digest([]byte("passed")), at(9050)}
	ev.zombie = &zombie{stoppedAfter: time.Second, notes: []ack{late, passed},
		sent: map[string]string{late.id: late.sum, passed.id: passed.sum}}
	ev.listed = append(ev.listed, note{RowID: 100, ID: passed.id, Run: "run-b", Body: "passed"})
	o := judge(ev)
	require.Empty(t, o.broken)
	require.Equal(t, 1, o.zombieAcked)

	ev.listed = append(ev.listed[:5:5], append([]note{{RowID: 5, ID: late.id, Run: "run-a", Body: "late"}}, ev.listed[5:]...)...)
	ev.listed[4].RowID, ev.listed[3].RowID = 4, 3
	require.Contains(t, fmt.Sprint(judge(ev).broken), "late write of the woken box")
}
