package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// op is an operation on one log from call to ret.
func op(client, call, ret int) event {
	return event{client: client, log: "log-1-1/", call: time.Duration(call), ret: time.Duration(ret)}
}

func appended(client, call, ret int, value string) event {
	e := op(client, call, ret)
	e.value = value
	return e
}

func unknown(client, call, ret int, value string) event {
	e := appended(client, call, ret, value)
	e.unknown = true
	return e
}

func saw(client, call, ret int, what string) event {
	e := op(client, call, ret)
	e.read, e.saw = true, what
	return e
}

func TestAHistoryIsJudged(t *testing.T) {
	other := appended(2, 0, 10, "z")
	other.log = "log-1-2/"
	for name, row := range map[string]struct {
		history []event
		broken  bool
	}{
		"nothing":       {nil, false},
		"one by one":    {[]event{appended(1, 0, 10, "a"), saw(2, 11, 20, "a,"), appended(1, 21, 30, "b"), saw(2, 31, 40, "a,b,")}, false},
		"another log's": {[]event{appended(1, 0, 10, "a"), other, saw(2, 11, 20, "a,")}, false},
		"two at once, in either order": {[]event{appended(1, 0, 10, "a"), appended(2, 0, 10, "b"), saw(1, 11, 20, "b,a,"),
			saw(2, 11, 20, "b,a,")}, false},
		"a read at once sees it or not": {[]event{appended(1, 0, 10, "a"), saw(2, 5, 15, ""), saw(2, 16, 20, "a,")}, false},
		"an unknown that was done":      {[]event{unknown(1, 0, 10, "a"), saw(2, 11, 20, "a,")}, false},
		"an unknown that was done late": {[]event{unknown(1, 0, 10, "a"), saw(2, 11, 20, ""), appended(2, 21, 30, "b"), saw(2, 31, 40, "b,a,")}, false},
		"an unknown that was not done":  {[]event{unknown(1, 0, 10, "a"), appended(1, 11, 20, "b"), saw(2, 21, 30, "b,")}, false},

		"a lost write":                       {[]event{appended(1, 0, 10, "a"), appended(1, 11, 20, "b"), saw(2, 21, 30, "b,")}, true},
		"a stale read":                       {[]event{appended(1, 0, 10, "a"), saw(2, 11, 20, "a,"), appended(1, 21, 30, "b"), saw(2, 31, 40, "a,")}, true},
		"a write that is seen and then lost": {[]event{unknown(1, 0, 10, "a"), saw(2, 11, 20, "a,"), saw(2, 21, 30, "")}, true},
		"two reads that disagree on the order": {[]event{appended(1, 0, 10, "a"), appended(2, 0, 10, "b"), saw(1, 11, 20, "a,b,"),
			saw(2, 21, 30, "b,a,")}, true},
		"a write from the future":        {[]event{saw(2, 0, 5, "a,"), appended(1, 6, 10, "a")}, true},
		"a write that nobody made":       {[]event{saw(2, 0, 5, "a,")}, true},
		"a write in the wrong order":     {[]event{appended(1, 0, 10, "a"), appended(1, 11, 20, "b"), saw(2, 21, 30, "b,a,")}, true},
		"an unknown that was done twice": {[]event{unknown(1, 0, 10, "a"), saw(2, 11, 20, "a,a,")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkHistory(row.history); row.broken {
				require.ErrorContains(t, err, "not linearizable")
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestALogIsTheNotesUnderItsName(t *testing.T) {
	list := []note{{ID: "moved-1"}, {ID: "log-1-1/0-1"}, {ID: "log-1-10/0-2"}, {ID: "log-1-1/2-3"}}
	require.Equal(t, "0-1,2-3,", logOf(list, "log-1-1/"))
	require.Empty(t, logOf(list, "log-2-1/"))
}
