package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/proof"
	"github.com/carlosframework/regionha/roster"
)

// metadata is a machine's metadata service.
type metadata struct {
	boxid.Source
	cloud boxid.Cloud
	err   error
}

func (m *metadata) Cloud(context.Context) (boxid.Cloud, error) { return m.cloud, m.err }

func TestABoxActsOnlyAsLongAsTheRosterHoldsItAsThisMachine(t *testing.T) {
	cloud := boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: "i-1"}
	other := cloud
	other.InstanceID = "i-2"
	entry := roster.Box{Enrollment: "e-1", Region: "ie", State: roster.Active, Cloud: cloud}
	with := func(change func(*roster.Box)) roster.Box {
		b := entry
		change(&b)
		return b
	}
	for name, c := range map[string]struct {
		entry   roster.Box
		machine metadata
		want    error
	}{
		"still the same":  {entry, metadata{cloud: cloud}, nil},
		"another machine": {entry, metadata{cloud: other}, roster.ErrNotSelf},
		"declared lost":   {with(func(b *roster.Box) { b.State = roster.Quarantined }), metadata{cloud: cloud}, roster.ErrNotSelf},
		"retired":         {with(func(b *roster.Box) { b.State = roster.Retired }), metadata{cloud: cloud}, roster.ErrNotSelf},
		"another region":  {with(func(b *roster.Box) { b.Region = "de" }), metadata{cloud: cloud}, roster.ErrNotSelf},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, nil))
			a := &Agent{log: logger, alerts: alert.New(logger), self: hostclaim.Member{Box: "box-1"},
				who: proof.Config{Machine: &c.machine, Box: "box-1", Region: "ie"}}
			snap := roster.Snapshot{Roster: roster.Roster{Regions: map[string]roster.Region{"ie": {}}, Boxes: map[string]roster.Box{"box-1": c.entry}}}
			for range 3 {
				require.ErrorIs(t, a.mayAct(t.Context(), snap), c.want)
			}
			require.Equal(t, c.want != nil, a.alerts.Raised(alert.Enrollment, "box-1"))
			require.Equal(t, c.want != nil, strings.Count(log.String(), "level=ERROR") == 1, "it is said once")

			c.machine.err = errors.New("timeout")
			err := a.mayAct(t.Context(), snap)
			require.ErrorContains(t, err, "timeout")
			require.NotErrorIs(t, err, roster.ErrNotSelf)
			require.Equal(t, c.want != nil, a.alerts.Raised(alert.Enrollment, "box-1"), "what cannot be read changes nothing")

			c.machine = metadata{cloud: cloud}
			snap.Boxes["box-1"] = entry
			require.NoError(t, a.mayAct(t.Context(), snap))
			require.False(t, a.alerts.Raised(alert.Enrollment, "box-1"))
		})
	}
}
