package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

// movedWell is a move from a to b that kept every promise: ten notes by a's app,
// then ten by b's, 900 ms apart.
func movedWell() evidence {
	ev := evidence{store: "dir", writers: 1, sent: map[string]string{}, versions: moveVersions()}
	for n := range 20 {
		run, when := "run-a", n*50
		if n >= 10 {
			run, when = "run-b", n*50+850
		}
		body := fmt.Sprint("body ", n)
		a := ack{fmt.Sprint("note-", n), digest([]byte(body)), at(when)}
		ev.notes, ev.sent[a.id] = append(ev.notes, a), a.sum
		ev.listed = append(ev.listed, note{RowID: int64(n + 1), ID: a.id, Run: run, Body: body})
	}
	ev.uploads = []ack{{"f1", "f1", at(440)}, {"f2", "f2", at(1400)}}
	ev.files = []upload{{"f1", "f1"}, {"f2", "f2"}}
	return ev
}

// moveVersions are the claim as it goes through a move, of which some were not
// seen.
func moveVersions() []version {
	holder := &hostclaim.Holder{Stamp: 2, Session: 2}
	op := hostclaim.Op{Kind: hostclaim.Serving, ID: "op-1", Exec: "a"}
	var all []version
	add := func(when int) {
		all = append(all, version{&hostclaim.Claim{Gen: uint64(3 + len(all)), Op: op, Holder: holder}, at(when)})
	}
	add(0)
	op = hostclaim.Op{Kind: hostclaim.Relocating, ID: "op-2", Phase: hostclaim.Starting, Exec: "a",
		Intent: hostclaim.Intent{Reason: hostclaim.Drain, Source: hostclaim.Member{Box: "a"}, Target: hostclaim.Member{Box: "b"}}}
	add(300)
	op.Phase = hostclaim.Releasing
	add(450)
	op.Journal.Release = &hostclaim.Release{Box: "a"}
	add(600)
	op.Phase, op.Exec, op.Journal.Prepared = hostclaim.Installing, "b", "p"
	holder = &hostclaim.Holder{Stamp: 8, Session: 2}
	add(700)
	op.Phase, op.Journal.PreparedAuthority, op.Journal.LocalInstall = hostclaim.Probing, &hostclaim.PreparedAuthority{}, &hostclaim.LocalInstall{}
	holder = &hostclaim.Holder{Stamp: 8, Session: 8, Admissions: []hostclaim.AdmissionRecord{{Session: 8, Coverage: hostclaim.Released}}}
	add(900)
	op = hostclaim.Op{Kind: hostclaim.Serving, ID: "op-2", Exec: "b", Outcome: hostclaim.Completed}
	add(1300)
	return all
}

func TestAMoveThatKeptEveryPromise(t *testing.T) {
	m := judgeMoves(movedWell(), nil, false)
	require.Empty(t, m.broken)
	require.Zero(t, m.lostUndeclared)
	require.Equal(t, []move{{op: "op-2", from: "a", to: "b", started: at(300), releasing: at(450), released: at(600), handed: at(700),
		built: at(900), installed: at(900), probed: at(1300), serving: at(1300), gap: 900 * time.Millisecond}}, m.each)
	require.Equal(t, 900*time.Millisecond, m.unavailable)
}

func TestAMoveThatDidNotCompleteIsNone(t *testing.T) {
	ev := movedWell()
	ev.versions[6].Op.Outcome = hostclaim.Cancelled
	require.Contains(t, fmt.Sprint(judgeMoves(ev, nil, false).broken), "never moved")
}

// Each row breaks one promise of a good move.
func TestEveryBrokenPromiseOfAMoveIsFound(t *testing.T) {
	for name, row := range map[string]struct {
		breaks func(*evidence)
		want   string
		lost   int
	}{
		"two writers": {func(ev *evidence) { ev.writers = 2 }, "on 2 boxes at one time", 0},
		"the old home's last note is lost": {func(ev *evidence) { ev.listed = append(ev.listed[:9:9], ev.listed[10:]...) },
			"1 acknowledged notes from note-9 on are gone", 1},
		"the new home's last note is lost": {func(ev *evidence) { ev.listed = ev.listed[:19] }, "note-19", 1},
		"the old home wrote late":          {func(ev *evidence) { ev.listed[12].Run = "run-a" }, "wrote again after another had", 0},
		"another key":                      {func(ev *evidence) { ev.listed[3].Error = "sealed" }, "the instance key does not open it", 0},
		"another body":                     {func(ev *evidence) { ev.listed[3].Body = "x" }, "note-3: its body", 0},
		"the last upload is lost":          {func(ev *evidence) { ev.files = ev.files[1:] }, "file f1: acknowledged", 0},
		"a loss is declared": {func(ev *evidence) {
			ev.versions[6].Holder.Admissions[0].WritesLost = &hostclaim.WritesLost{Session: 2, Box: "a"}
		}, "declares writes of session 2 on a lost", 0},
		"no release is shown": {func(ev *evidence) {
			for _, v := range ev.versions {
				v.Op.Journal.Release = nil
			}
		}, "executor a was replaced without evidence", 0},
	} {
		t.Run(name, func(t *testing.T) {
			ev := movedWell()
			row.breaks(&ev)
			m := judgeMoves(ev, nil, false)
			require.Contains(t, fmt.Sprint(m.broken), row.want)
			require.Equal(t, row.lost, m.lostUndeclared)
		})
	}
}

func TestAClientsErrorBreaksAMoveUnlessAnAgentIsKilled(t *testing.T) {
	failed := []error{errors.New("503"), errors.New("EOF")}
	require.Equal(t, []string{"clients saw 2 errors, the first: 503"}, judgeMoves(movedWell(), failed, false).broken)
	require.Empty(t, judgeMoves(movedWell(), failed, true).broken)
}

func TestAHistoryThatIsWrongBreaksAMove(t *testing.T) {
	m := judgeMoves(movedWell(), nil, true)
	m.judgeHistory([]event{saw(1, 0, 1, "")})
	require.Empty(t, m.broken)
	require.Equal(t, 1, m.recorded)
	m.judgeHistory([]event{saw(1, 0, 1, "a,")})
	require.Contains(t, fmt.Sprint(m.broken), "not linearizable")
}

func TestTheLastLineSaysHowTheMovesWent(t *testing.T) {
	m := judgeMoves(movedWell(), nil, false)
	m.peak = 5
	var line bytes.Buffer
	require.NoError(t, printJSON(&line, judge(good()), m, alone()))
	var r map[string]any
	require.NoError(t, json.Unmarshal(line.Bytes(), &r))
	drain, err := json.Marshal(r["drain"])
	require.NoError(t, err)
	require.JSONEq(t, `{"unavailable_ms":900,"unavailable_median_ms":900,"acked":20,"lost":0,"errors_seen_by_clients":0,"max_writers":1,
		"drains":1,"kills":0,"recorded":0,"agent_peak_bytes":5,"steps_ms":{"releasing":150,"released":150,"handed_over":100,
		"built":200,"installed":0,"probed":400,"serving":0}}`, string(drain))
	m.breaks("one")
	line.Reset()
	require.NoError(t, printJSON(&line, judge(good()), m, alone()))
	require.Contains(t, line.String(), `"outcome":"broken"`)
}

func TestWhatWasMovedIsThereAfterTheFailoverToo(t *testing.T) {
	ev := good()
	ev.earlier = []ack{{"moved-1", "x", at(-9000)}}
	o := judge(ev)
	require.Contains(t, fmt.Sprint(o.broken), "moved-1 on are gone: it was acknowledged long before")
	require.Equal(t, 1, o.lostUndeclared)
}
