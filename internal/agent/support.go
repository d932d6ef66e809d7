package agent

import (
	"fmt"

	"github.com/carlosframework/regionha/internal/hostrecord"
)

// supported refuses a record that asks for what this agent does not do, rather
// than running the app without it.
func supported(r hostrecord.Record) error {
	refuse := func(field string, v any) error {
		return fmt.Errorf("record of %s: %s is %v, which this agent does not support", r.Host, field, v)
	}
	switch {
	case r.Durability != hostrecord.DurabilityDefault:
		return refuse("durability", r.Durability)
	case r.Artifact != (hostrecord.Artifact{}):
		return refuse("artifact", r.Artifact.Key)
	case r.User != "":
		return refuse("user", r.User)
	case len(r.Timers) > 0:
		return refuse("timers", r.Timers[0].Name)
	}
	return nil
}
