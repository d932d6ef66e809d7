package main

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

// alone is a region of two boxes whose one host came back.
func alone() neighbourhood {
	n := neighbourhood{region: &region{boxes: []*box{{ref: "a"}, {ref: "b"}}, hosts: hostNames(1)}}
	n.add(judge(good()))
	return n
}

// unmoved is a host on another box while a dies.
func unmoved() evidence {
	ev := good()
	ev.source, ev.listed, ev.versions = "c", nil, nil
	for gen := range uint64(2) {
		ev.versions = append(ev.versions, version{&hostclaim.Claim{Gen: 3 + gen, Op: hostclaim.Op{Kind: hostclaim.Serving, Exec: "c"},
			Holder: &hostclaim.Holder{Stamp: 2, Session: 2}}, at(0)})
	}
	for i, n := range ev.notes {
		ev.listed = append(ev.listed, note{RowID: int64(i + 1), ID: n.id, Run: "run-c", Body: "body " + n.id[len("note-"):]})
	}
	return ev
}

func TestNothingHappensToAHostWhoseBoxLives(t *testing.T) {
	require.Empty(t, judgeStayed(unmoved()).broken)
	for name, row := range map[string]struct {
		breaks func(*evidence)
		want   string
	}{
		"moved":       {func(ev *evidence) { ev.versions[1].Op.Exec = "b" }, "it left its box"},
		"a lost note": {func(ev *evidence) { ev.listed = ev.listed[:29] }, "note-29 on are gone"},
		"two writers": {func(ev *evidence) { ev.writers = 2 }, "on 2 boxes"},
	} {
		t.Run(name, func(t *testing.T) {
			ev := unmoved()
			row.breaks(&ev)
			require.Contains(t, fmt.Sprint(judgeStayed(ev).broken), row.want)
		})
	}
}

func TestAHostServesAgainAtTheEndOfItsLongestGap(t *testing.T) {
	notes := []ack{{at: at(0)}, {at: at(4000)}, {at: at(4100)}, {at: at(4300)}, {at: at(7000)}, {at: at(7100)}}
	require.Equal(t, at(7000), firstAfter(notes, at(4200)), "an earlier gap is another's")
	require.Zero(t, firstAfter(notes, at(8000)))
}

func TestTheRegionIsShownAtTheEnd(t *testing.T) {
	a, b, c := &box{ref: "a"}, &box{ref: "b"}, &box{ref: "c"}
	r := &region{boxes: []*box{a, b, c}, hosts: hostNames(3)}
	n := neighbourhood{region: r, hosts: make([]neighbour, 2), before: spread{a: 2, c: 1}, after: spread{b: 2, c: 1}}
	n.add(judge(good()))
	late := good()
	for i := 20; i < len(late.notes); i++ {
		late.notes[i].at = late.notes[i].at.Add(time.Second)
	}
	n.add(judge(late))
	n.stayed = []outcome{judgeStayed(unmoved())}
	require.Equal(t, &regionResult{Boxes: 3, Hosts: 3, CameBack: 2, FirstMS: 6000, MedianMS: 7000, LastMS: 7000, DetectedMS: 1100,
		Stayed: 1, StayedGapMS: 6050, LostDeclared: 4, MaxWriters: 1}, n.result())
	var out bytes.Buffer
	n.print(&teller{out: &out})
	require.Contains(t, out.String(), "box  hosts before  after\na    2             gone\nb    0             2\nc    1             1\n")
	require.Contains(t, out.String(), "2, after the box's death the first in 6.00s, half in 7.00s, the last in 7.00s")
	n.hosts = nil
	out.Reset()
	n.print(&teller{out: &out})
	require.Empty(t, out.String(), "one host is no region")
}
