package console_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

func (d *deployment) recovery() (*console.Recovery, *bytes.Buffer) {
	var log bytes.Buffer
	return &console.Recovery{Console: d.Console, Log: slog.New(slog.NewTextHandler(&log, nil))}, &log
}

func TestOnlyOverdueCreatesAreCancelled(t *testing.T) {
	d := deploy(t)
	_, err := d.Create(t.Context(), wanted())
	require.NoError(t, err)
	r, log := d.recovery()
	d.clock = d.clock.Add(console.CreateDeadline)
	require.NoError(t, r.Pass(t.Context()))
	require.Equal(t, hostclaim.Creating, d.claim(t).Op.Kind, "exactly at the deadline it may still complete")
	_, err = d.mem.Put(t.Context(), hostclaim.Key("broken.example"), []byte("{}"), objstore.IfAbsent())
	require.NoError(t, err)
	d.clock = d.clock.Add(time.Second)
	require.ErrorIs(t, r.Pass(t.Context()), hostclaim.ErrMalformed)
	require.Equal(t, hostclaim.Free, d.claim(t).Op.Kind, "a broken claim hides no other")
	require.Contains(t, log.String(), "a create was cancelled")
}

func TestACreateThatIsTakenInTheLastMomentIsNotCancelled(t *testing.T) {
	d := deploy(t)
	_, err := d.Create(t.Context(), wanted())
	require.NoError(t, err)
	r, log := d.recovery()
	require.NoError(t, r.Pass(t.Context()))
	d.clock = d.clock.Add(console.CreateDeadline + time.Second)
	raced := false
	d.mem.Inject(func(req memstore.Request) memstore.Fault {
		if req.Op == memstore.OpPut && !raced {
			raced = true
			d.start(t)
		}
		return memstore.None
	})
	require.NoError(t, r.Pass(t.Context()))
	require.True(t, raced)
	require.Equal(t, hostclaim.Serving, d.claim(t).Op.Kind)
	require.NotContains(t, log.String(), "cancelled")
}

func TestAtRestARecoveryReadsNoClaim(t *testing.T) {
	d := serving(t)
	r, _ := d.recovery()
	require.NoError(t, r.Pass(t.Context()))
	before := d.mem.Requests()
	require.NoError(t, r.Pass(t.Context()))
	after := d.mem.Requests()
	require.Equal(t, before[memstore.OpList]+2, after[memstore.OpList])
	require.Equal(t, before[memstore.OpGet]+1, after[memstore.OpGet], "the roster")
	require.Equal(t, before[memstore.OpPut], after[memstore.OpPut])
}

func TestATerminatedBoxIsRetiredOnceNoClaimNamesIt(t *testing.T) {
	d := serving(t)
	r, _ := d.recovery()
	d.terminate(t, "box-1", "box-2")
	before := len(d.mem.Log())
	require.NoError(t, r.Pass(t.Context()))
	require.Equal(t, roster.Active, d.entry(t, "box-1").State, "its host is not moved yet")
	require.Len(t, d.mem.Log(), before)

	d = deploy(t)
	d.join(t, "box-2", "i-0002")
	d.join(t, "box-3", "i-0003")
	r, log := d.recovery()
	d.terminate(t, "box-1", "box-2")
	d.declareLost(t, "box-3")
	require.NoError(t, r.Pass(t.Context()))
	require.Equal(t, roster.Retired, d.entry(t, "box-1").State)
	require.Equal(t, roster.Active, d.entry(t, "box-2").State)
	require.Equal(t, roster.Quarantined, d.entry(t, "box-3").State, "a declared one is a person's to retire")
	before = len(d.mem.Log())
	require.NoError(t, r.Pass(t.Context()))
	require.Len(t, d.mem.Log(), before)
	require.Equal(t, 1, strings.Count(log.String(), "is retired"))
}

func TestNobodyIsRetiredWhereSomethingCannotBeRead(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *deployment){
		"a claim": func(t *testing.T, d *deployment) {
			_, err := d.mem.Put(t.Context(), hostclaim.Key("broken.example"), []byte("{}"), objstore.IfAbsent())
			require.NoError(t, err)
		},
		"the claims": func(_ *testing.T, d *deployment) {
			d.mem.Inject(memstore.Once(memstore.OpList, "control/hosts/", memstore.Lose))
		},
		"the fences": func(_ *testing.T, d *deployment) {
			d.mem.Inject(memstore.Once(memstore.OpList, "control/box-fences/", memstore.Lose))
		},
		"the roster": func(_ *testing.T, d *deployment) {
			d.mem.Inject(memstore.Once(memstore.OpGet, roster.Key, memstore.Lose))
		},
		"a fence": func(_ *testing.T, d *deployment) {
			d.mem.Inject(memstore.Once(memstore.OpGet, "control/box-fences/", memstore.Lose))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := deploy(t)
			d.join(t, "box-2", "i-0002")
			d.terminate(t, "box-1", "box-2")
			spoil(t, d)
			r, _ := d.recovery()
			require.Error(t, r.Pass(t.Context()))
			d.mem.Inject(nil)
			require.Equal(t, roster.Active, d.entry(t, "box-1").State)
		})
	}
}

func TestAConsoleThatSignsNothingRetiresNobody(t *testing.T) {
	d := deploy(t)
	d.join(t, "box-2", "i-0002")
	d.terminate(t, "box-1", "box-2")
	d.Private = nil
	r, _ := d.recovery()
	require.NoError(t, r.Pass(t.Context()))
	require.Equal(t, roster.Active, d.entry(t, "box-1").State)
}
