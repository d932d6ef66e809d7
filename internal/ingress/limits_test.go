package ingress

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAHostsShareIsBoundedAndLeavesRoomForOthers(t *testing.T) {
	s := &shares{limits: limits{requests: 3, requestsHost: 2, held: 2, heldHost: 1, kept: 10, keptHost: 6}}
	a, again := s.enter("a"), s.enter("a")
	require.NotNil(t, again)
	require.Nil(t, s.enter("a"), "its share")
	b := s.enter("b")
	require.NotNil(t, b)
	require.Nil(t, s.enter("c"), "all of it")
	require.True(t, a.hold())
	require.False(t, again.hold())
	require.True(t, b.hold())
	require.True(t, a.take(6))
	require.False(t, again.take(1))
	require.True(t, b.take(4))
	require.False(t, b.take(1))

	a.give(6)
	b.give(4)
	a.letGo()
	b.letGo()
	for _, one := range []*share{a, again, b} {
		one.leave()
	}
	require.Zero(t, s.now())
	require.Empty(t, s.hosts, "no name is remembered")
}

func TestAPaceRemembersNamesForASecondAndNotTooMany(t *testing.T) {
	var p pace
	now := time.Now()
	require.True(t, p.may("a", now))
	require.False(t, p.may("a", now.Add(onceIn-1)))
	require.True(t, p.may("a", now.Add(onceIn)))
	for i := range 2 * mostNames {
		p.may(fmt.Sprint(i), now.Add(onceIn))
	}
	require.Len(t, p.last, mostNames)
	require.False(t, p.may("one more", now.Add(onceIn)))
	require.True(t, p.may("one more", now.Add(2*onceIn)))
	require.Len(t, p.last, 1)
}

func TestHostsWhoseRowIsGoneAreForgotten(t *testing.T) {
	gone := func(name string) (uint64, bool) { return 5, name == "here" || name == "served here again" }
	var seen stamps
	seen.note("here", 6, gone)
	seen.note("served here again", 5, gone)
	var used flights
	used.end("here", used.begin("here"), gone)
	for i := range 3 * fewNames {
		name := fmt.Sprint("gone", i)
		seen.note(name, 9, gone)
		used.end(name, used.begin(name), gone)
	}
	require.Less(t, len(seen.high), 2*fewNames)
	require.True(t, seen.above("here", 5))
	require.NotContains(t, seen.high, "served here again")
	require.Less(t, len(used.last), 2*fewNames)
	require.Contains(t, used.last, "here")
}
