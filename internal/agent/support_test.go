package agent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/hostrecord"
)

func TestWhatThisAgentDoesNotDoIsRefusedByName(t *testing.T) {
	plain := hostrecord.Record{Host: "notes.example"}.WithDefaults()
	require.NoError(t, supported(plain))
	for field, ask := range map[string]func(*hostrecord.Record){
		"durability": func(r *hostrecord.Record) { r.Durability = hostrecord.DurabilityAcked },
		"artifact":   func(r *hostrecord.Record) { r.Artifact.Key = "artifacts/x" },
		"user":       func(r *hostrecord.Record) { r.User = "notes" },
		"timers":     func(r *hostrecord.Record) { r.Timers = []hostrecord.Timer{{Name: "nightly"}} },
	} {
		t.Run(field, func(t *testing.T) {
			r := plain
			ask(&r)
			require.ErrorContains(t, supported(r), field)
		})
	}
}
