package roothelper

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/stopevidence"
)

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	b, err := record.Encode(v)
	require.NoError(t, err)
	return b
}

// validSpawn is a request that is good but for what change does.
func validSpawn(change func(*request)) request {
	r := request{V: 1, Do: doSpawn, Box: "box-1", Host: "notes.example",
		Run: &spec{Command: []string{"/bin/true", "-v"}, Dir: "/srv", Env: []string{"A=b=c", "B="}, UID: 65534, GID: 65533}}
	change(&r)
	return r
}

func validLook(do string) request {
	d := descriptor{PID: 7, Start: 9, FD: 3, Dev: 1, Ino: 2, Born: 5, Path: "/srv/app.db"}
	r := request{V: 1, Do: do, Box: "box-1", Host: "notes.example", Look: &look{Database: "/srv/app.db", Known: []descriptor{d}}}
	if do == doStopped {
		r.Look.Replicator = []descriptor{d}
	}
	return r
}

func someReply() reply {
	return reply{V: 1, Do: doCollect, Seen: &seen{BootID: "b-1", At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Checks: []stopevidence.Check{{Name: stopevidence.CgroupEmpty, Passed: true, Saw: "populated 0"}}}}
}

func TestMessagesKeepTheirFormat(t *testing.T) {
	recordtest.Golden(t, "spawn", validSpawn(func(*request) {}))
	recordtest.Golden(t, "writers-stopped", validLook(doStopped))
	recordtest.Golden(t, "seen", someReply())
	recordtest.Golden(t, "held", failed(doStopped, aHeldError()))
}

func FuzzReply(f *testing.F) { recordtest.Fuzz(f, someReply(), failed(doStopped, aHeldError())) }

// FuzzRequest: what is taken is one encoding, one host of one box, absolute
// paths, within the bounds, and nothing of root's.
func FuzzRequest(f *testing.F) {
	for _, r := range []request{validSpawn(func(*request) {}), validLook(doStopped), validLook(doCollect), {V: 1, Do: doHello, Box: "b"}, {V: 1, Do: doEnd, Box: "b", Host: "h"}} {
		f.Add(encoded(f, r))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRequest(b)
		if err != nil {
			return
		}
		require.Equal(t, string(b), string(encoded(t, r)))
		require.NotContains(t, r.Box+r.Host, "/")
		require.NotContains(t, r.Box+r.Host, "..")
		if r.Run != nil {
			require.Equal(t, doSpawn, r.Do)
			require.NotZero(t, r.Run.UID)
			require.NotZero(t, r.Run.GID)
			require.True(t, strings.HasPrefix(r.Run.Command[0], "/"))
		}
	})
}

func TestARequestOutsideItsFormIsRefusedByName(t *testing.T) {
	require.NoError(t, validSpawn(func(*request) {}).check())
	require.NoError(t, validLook(doStopped).check())
	require.NoError(t, validLook(doCollect).check())
	many := strings.Split(strings.Repeat("A=b ", maxEnv+1), " ")[:maxEnv+1]
	for name, c := range map[string]struct {
		r    request
		want string
	}{
		"version":           {validSpawn(func(r *request) { r.V = 2 }), "v is 2"},
		"unknown":           {validSpawn(func(r *request) { r.Do = "exec" }), "not known"},
		"no box":            {validSpawn(func(r *request) { r.Box = "" }), "box"},
		"a box above":       {validSpawn(func(r *request) { r.Box = ".." }), "box"},
		"a box below":       {validSpawn(func(r *request) { r.Box = "a/b" }), "box"},
		"no host":           {validSpawn(func(r *request) { r.Host = "" }), "host"},
		"a host above":      {validSpawn(func(r *request) { r.Host = ".." }), "host"},
		"a host elsewhere":  {validSpawn(func(r *request) { r.Host = "../../init.scope" }), "host"},
		"a long host":       {validSpawn(func(r *request) { r.Host = strings.Repeat("a.", 120) + "b" }), "host"},
		"nothing to run":    {validSpawn(func(r *request) { r.Run = nil }), "run is missing"},
		"no command":        {validSpawn(func(r *request) { r.Run.Command = nil }), "command has 0"},
		"a relative one":    {validSpawn(func(r *request) { r.Run.Command[0] = "sh" }), `command is "sh"`},
		"many arguments":    {validSpawn(func(r *request) { r.Run.Command = many[:maxArgs+1] }), "command has 257"},
		"a zero byte":       {validSpawn(func(r *request) { r.Run.Command[1] = "a\x00b" }), "zero byte"},
		"a relative dir":    {validSpawn(func(r *request) { r.Run.Dir = "." }), "dir is"},
		"much environment":  {validSpawn(func(r *request) { r.Run.Env = many }), "env has 1025"},
		"no name":           {validSpawn(func(r *request) { r.Run.Env[0] = "=a" }), "NAME=value"},
		"no value":          {validSpawn(func(r *request) { r.Run.Env[0] = "A" }), "NAME=value"},
		"a zero byte there": {validSpawn(func(r *request) { r.Run.Env[0] = "A=\x00" }), "NAME=value"},
		"root":              {validSpawn(func(r *request) { r.Run.UID = 0 }), "nothing is started as root"},
		"root's group":      {validSpawn(func(r *request) { r.Run.GID = 0 }), "nothing is started as root"},
		"a look too":        {validSpawn(func(r *request) { r.Look = &look{Database: "/a"} }), "only another request"},
		"a port too":        {validSpawn(func(r *request) { r.Port = 1 }), "only another request"},
		"a host to greet":   {request{V: 1, Do: doHello, Box: "b", Host: "h"}, "only another request"},
		"a run's own":       {request{V: 1, Do: doTerminate, Box: "b", Host: "h"}, "not known"},
		"no look":           {request{V: 1, Do: doCollect, Box: "b", Host: "h"}, "look is missing"},
		"no database":       {request{V: 1, Do: doCollect, Box: "b", Host: "h", Look: &look{}}, "database is"},
		"many known":        {request{V: 1, Do: doStopped, Box: "b", Host: "h", Look: &look{Database: "/a", Known: make([]descriptor, maxDescriptors+1)}}, "513"},
		"many exempt":       {request{V: 1, Do: doStopped, Box: "b", Host: "h", Look: &look{Database: "/a", Replicator: make([]descriptor, maxDescriptors+1)}}, "513"},
		"collect, but one":  {request{V: 1, Do: doCollect, Box: "b", Host: "h", Look: &look{Database: "/a", Replicator: make([]descriptor, 1)}}, "exempts"},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, c.r.check(), c.want) })
	}
}

func aHeldError() *stopevidence.HeldError {
	return &stopevidence.HeldError{Cgroup: "populated 1", More: 3, Holders: []stopevidence.Holder{{PID: 7, TID: 8, Start: 9, Command: "notes", FD: -1, Path: "/srv/app.db"}}}
}

func TestAnErrorMeansTheSameOnTheOtherSide(t *testing.T) {
	over := func(err error) error {
		r, derr := record.Decode[reply](encoded(t, failed(doStopped, err)))
		require.NoError(t, derr)
		return r.err()
	}
	var held *stopevidence.HeldError
	require.ErrorAs(t, over(fmt.Errorf("x: %w", aHeldError())), &held)
	require.Equal(t, aHeldError(), held)
	require.ErrorIs(t, over(fmt.Errorf("x: %w", stopevidence.ErrIncomplete)), stopevidence.ErrIncomplete)
	require.ErrorIs(t, over(machine.ErrStranger), machine.ErrStranger)
	err := over(errors.New("disk \xff" + strings.Repeat("é", maxText)))
	require.ErrorContains(t, err, "disk ?")
	require.Less(t, len(err.Error()), 2*maxText)
	require.NotErrorIs(t, err, stopevidence.ErrIncomplete)
	require.NoError(t, reply{V: 1}.err())
	require.Error(t, reply{V: 1, Fail: failHeld}.err(), "which names nothing")
}
