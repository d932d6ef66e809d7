package hostrelocate_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

// moments are the points of a drain at which something befalls a box.
var moments = []struct {
	name  string
	fails bool // its target does not pass its probe
	at    func(*hostclaim.Claim) bool
}{
	{"starting", false, in(hostclaim.Starting)},
	{"acknowledged", false, func(c *hostclaim.Claim) bool { return in(hostclaim.Starting)(c) && c.Op.Acknowledged() }},
	{"releasing", false, in(hostclaim.Releasing)},
	{"released", false, func(c *hostclaim.Claim) bool { return c.Op.Journal.Release != nil }},
	{"installing", false, in(hostclaim.Installing)},
	{"installed", false, in(hostclaim.Installed)},
	{"probing", false, in(hostclaim.Probing)},
	{"probe-failed", true, in(hostclaim.ProbeFailed)},
	{"probe-failed, released", true, func(c *hostclaim.Claim) bool {
		return in(hostclaim.ProbeFailed)(c) && c.Op.Journal.Release != nil
	}},
}

func in(p hostclaim.Phase) func(*hostclaim.Claim) bool {
	return func(c *hostclaim.Claim) bool { return c.Op.Phase == p }
}

// TestADrainEndsWhateverBefallsABox: with the source or the target wedged or
// dead at any point, with and without a spare, the host serves or the operation
// is stuck for a reason, within the bounds.
func TestADrainEndsWhateverBefallsABox(t *testing.T) {
	for _, m := range moments {
		for who, box := range map[string]hostclaim.Member{"source": source, "target": target} {
			for _, dead := range []bool{false, true} {
				for spares := range 2 {
					what := "wedged"
					if dead {
						what = "dead"
					}
					name := fmt.Sprintf("%s, %s %s, %d spares", m.name, who, what, spares)
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						require.Equal(t, cmp.Or(outcomes[name], "serves on box-2"), befall(t, m.fails, m.at, box, dead, spares))
					})
				}
			}
		}
	}
}

// befall is how a drain ended in which something befell a box.
func befall(t *testing.T, fails bool, at func(*hostclaim.Claim) bool, box hostclaim.Member, dead bool, spares int) string {
	w := served(t)
	w.spares = []hostclaim.Member{spare}[:spares]
	if fails {
		w.probes = []error{errProbe, errProbe, errProbe}
	}
	require.True(t, w.until(60, at), w.claim().Claim.Op.Phase)
	w.tick = 10 * time.Second
	began := w.now
	w.down[box.Box] = true
	if dead {
		w.terminate(box)
	}
	over := func(c *hostclaim.Claim) bool {
		return c.Op.Kind == hostclaim.Serving || c.Op.Journal.Stuck != nil && settled(w)
	}
	require.True(t, w.until(1000, over), "%+v", w.claim().Claim.Op)
	require.Less(t, w.now.Sub(began), time.Hour)
	return w.ended()
}

// settled reports whether a stuck operation stays as it is without an operator.
func settled(w *world) bool {
	turn, err := w.worker().Step(ctx, w.claim())
	return err == nil && turn.Did == ""
}

// ended says how the operation ended, in words.
func (w *world) ended() string {
	c := w.claim().Claim
	if s := c.Op.Journal.Stuck; s != nil {
		return fmt.Sprintf("%s stuck: %s", c.Op.Phase, s.Reason)
	}
	says := []string{"serves on " + c.Op.Exec}
	if c.Op.Outcome == hostclaim.Cancelled {
		says = append(says, string(c.Op.Outcome))
	}
	for _, r := range c.Holder.Admissions {
		if r.WritesLost != nil {
			says = append(says, "declares "+r.WritesLost.Box)
		}
	}
	return strings.Join(says, ", ")
}

// outcomes lists those that are not the drain's own.
var outcomes = map[string]string{
	"starting, source dead, 0 spares":                 "serves on box-2, declares box-1",
	"starting, source dead, 1 spares":                 "serves on box-2, declares box-1",
	"starting, source wedged, 0 spares":               "serves on box-1, cancelled",
	"starting, source wedged, 1 spares":               "serves on box-1, cancelled",
	"starting, target dead, 0 spares":                 "serves on box-1, cancelled",
	"starting, target dead, 1 spares":                 "serves on box-3",
	"starting, target wedged, 0 spares":               "serves on box-1, cancelled",
	"starting, target wedged, 1 spares":               "serves on box-3",
	"acknowledged, source dead, 0 spares":             "serves on box-2, declares box-1",
	"acknowledged, source dead, 1 spares":             "serves on box-2, declares box-1",
	"acknowledged, source wedged, 0 spares":           "releasing stuck: release overdue",
	"acknowledged, source wedged, 1 spares":           "releasing stuck: release overdue",
	"acknowledged, target dead, 0 spares":             "serves on box-1, cancelled",
	"acknowledged, target dead, 1 spares":             "serves on box-3",
	"acknowledged, target wedged, 0 spares":           "installing stuck: install overdue",
	"acknowledged, target wedged, 1 spares":           "serves on box-3",
	"releasing, source dead, 0 spares":                "serves on box-2, declares box-1",
	"releasing, source dead, 1 spares":                "serves on box-2, declares box-1",
	"releasing, source wedged, 0 spares":              "releasing stuck: release overdue",
	"releasing, source wedged, 1 spares":              "releasing stuck: release overdue",
	"releasing, target dead, 0 spares":                "pinning stuck: no spare",
	"releasing, target dead, 1 spares":                "serves on box-3",
	"releasing, target wedged, 0 spares":              "installing stuck: install overdue",
	"releasing, target wedged, 1 spares":              "serves on box-3",
	"released, target dead, 0 spares":                 "pinning stuck: no spare",
	"released, target dead, 1 spares":                 "serves on box-3",
	"released, target wedged, 0 spares":               "installing stuck: install overdue",
	"released, target wedged, 1 spares":               "serves on box-3",
	"installing, target dead, 0 spares":               "pinning stuck: no spare",
	"installing, target dead, 1 spares":               "serves on box-3",
	"installing, target wedged, 0 spares":             "installing stuck: install overdue",
	"installing, target wedged, 1 spares":             "serves on box-3",
	"installed, target dead, 0 spares":                "pinning stuck: no spare",
	"installed, target dead, 1 spares":                "serves on box-3",
	"installed, target wedged, 0 spares":              "installed stuck: install overdue",
	"installed, target wedged, 1 spares":              "serves on box-3",
	"probing, target dead, 0 spares":                  "pinning stuck: no spare",
	"probing, target dead, 1 spares":                  "serves on box-3, declares box-2",
	"probing, target wedged, 0 spares":                "probe-failed stuck: release overdue",
	"probing, target wedged, 1 spares":                "probe-failed stuck: release overdue",
	"probe-failed, source dead, 0 spares":             "probe-failed stuck: no spare",
	"probe-failed, source dead, 1 spares":             "serves on box-3",
	"probe-failed, source wedged, 0 spares":           "probe-failed stuck: no spare",
	"probe-failed, source wedged, 1 spares":           "serves on box-3",
	"probe-failed, target dead, 0 spares":             "pinning stuck: no spare",
	"probe-failed, target dead, 1 spares":             "serves on box-3, declares box-2",
	"probe-failed, target wedged, 0 spares":           "probe-failed stuck: release overdue",
	"probe-failed, target wedged, 1 spares":           "probe-failed stuck: release overdue",
	"probe-failed, released, source dead, 0 spares":   "probe-failed stuck: no spare",
	"probe-failed, released, source dead, 1 spares":   "serves on box-3",
	"probe-failed, released, source wedged, 0 spares": "probe-failed stuck: no spare",
	"probe-failed, released, source wedged, 1 spares": "serves on box-3",
	"probe-failed, released, target dead, 0 spares":   "pinning stuck: no spare",
	"probe-failed, released, target dead, 1 spares":   "serves on box-3",
	"probe-failed, released, target wedged, 0 spares": "probe-failed stuck: no spare",
	"probe-failed, released, target wedged, 1 spares": "serves on box-3",
}
