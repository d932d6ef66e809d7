package termfence_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// sighting is everything that Verify is told.
type sighting struct {
	box, worker roster.Box
	seen        termfence.Observation
	at          time.Time
}

func (s sighting) verify() (termfence.Record, error) {
	return termfence.Verify(s.box, s.worker, s.seen, s.at)
}

// refusals is every rule of Verify, in the order in which it decides.
var refusals = []struct {
	name   string
	spoil  func(*sighting)
	reason string
}{
	{"no reference", func(s *sighting) { s.box.Ref = "" }, "bad box reference"},
	{"no enrollment", func(s *sighting) { s.box.Enrollment = "" }, `enrollment ""`},
	{"no region", func(s *sighting) { s.box.Region = "" }, "its entry has no region"},
	{"an incomplete cloud", func(s *sighting) { s.box.Cloud.Account = "" }, "its entry has no complete cloud"},
	{"a worker without a reference", func(s *sighting) { s.worker.Ref = "" }, `worker "": bad box reference`},
	{"a worker without an enrollment", func(s *sighting) { s.worker.Enrollment = "" }, ": invalid roster: enrollment"},
	{"a worker without a region", func(s *sighting) { s.worker.Region = "" }, ": its entry has no region"},
	{"a worker with an incomplete cloud", func(s *sighting) { s.worker.Cloud.InstanceID = "" }, ": its entry has no complete cloud"},
	{"a worker of another region", func(s *sighting) {
		if s.worker.Region != "" {
			s.worker.Region = "de"
		}
	}, `is of region "de"`},
	{"an instance that was readmitted", func(s *sighting) { s.box.ReadmittedAs = "shop-2" }, `readmitted as "shop-2"`},
	{"a worker that was declared lost", func(s *sighting) { s.worker.State = roster.Quarantined }, `is "quarantined"`},
	{"no time", func(s *sighting) { s.at = time.Time{} }, "no time of observation"},
	{"not found", func(s *sighting) { s.seen.Found = false }, "absence is not evidence"},
	{"another instance", func(s *sighting) { s.seen.InstanceID = "i-other" }, `instance "i-other"`},
	{"another account", func(s *sighting) { s.seen.Account = "999999999999" }, `account "999999999999"`},
	{"another region", func(s *sighting) { s.seen.Region = "eu-central-1" }, `region "eu-central-1"`},
	{"another source", func(s *sighting) { s.seen.Via = "cloudtrail" }, `source "cloudtrail" does not count`},
	{"a reply without an id", func(s *sighting) {
		if s.seen.Via == termfence.ViaDescribe {
			s.seen.RequestID = ""
		}
	}, "the reply has no request id"},
	{"another state", func(s *sighting) { s.seen.State = "shutting-down" }, `state "shutting-down"`},
}

func perfect() sighting { return sighting{box: shop, worker: worker, seen: described(), at: now} }

func TestVerifyRefuses(t *testing.T) {
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			s := perfect()
			r.spoil(&s)
			rec, err := s.verify()
			require.ErrorIs(t, err, termfence.ErrNoProof)
			require.ErrorContains(t, err, r.reason)
			require.Zero(t, rec)
		})
	}
}

// Each sighting breaks one rule and every later one: the earliest must speak.
func TestVerifyRefusesInOrder(t *testing.T) {
	for i, first := range refusals {
		t.Run(first.name, func(t *testing.T) {
			s := perfect()
			for _, r := range refusals[i:] {
				r.spoil(&s)
			}
			_, err := s.verify()
			require.ErrorContains(t, err, first.reason)
		})
	}
}

func TestOnlyExactlyTerminatedCounts(t *testing.T) {
	for _, state := range []string{"", "pending", "running", "shutting-down", "stopping", "stopped",
		"Terminated", "TERMINATED", "terminated ", " terminated", "terminating", "InvalidInstanceID.NotFound"} {
		s := perfect()
		s.seen.State = state
		_, err := s.verify()
		require.ErrorIs(t, err, termfence.ErrNoProof, state)
	}
}

func TestOnlyKnownSourcesCount(t *testing.T) {
	for _, via := range []string{"", "autoscaling-activity", "cloudtrail", "box", "Describe-Instances"} {
		s := perfect()
		s.seen.Via, s.seen.EventID = via, "ev-1"
		_, err := s.verify()
		require.ErrorContains(t, err, "does not count", via)
	}
}

func TestAnEventCountsByItsID(t *testing.T) {
	s := perfect()
	s.seen.Via, s.seen.RequestID = termfence.ViaEvent, ""
	_, err := s.verify()
	require.ErrorContains(t, err, "the event has no id")
	s.seen.EventID = "ev-1"
	rec, err := s.verify()
	require.NoError(t, err)
	require.Equal(t, "ev-1", rec.EventID)
	require.Equal(t, now, rec.ObservedAt, "the time at which the worker read it")
}

func TestAnEmptyObservationNeverFencesAnEmptyEntry(t *testing.T) {
	_, err := termfence.Verify(roster.Box{}, roster.Box{}, termfence.Observation{}, now)
	require.ErrorIs(t, err, termfence.ErrNoProof)

	unproven := shop
	unproven.Cloud = boxid.Cloud{}
	empty := termfence.Observation{Via: termfence.ViaDescribe, Found: true, State: "terminated", RequestID: "req-1"}
	_, err = termfence.Verify(unproven, worker, empty, now)
	require.ErrorContains(t, err, "no complete cloud")
}

func TestAPerfectReadByAWorkerOfAnotherRegionIsRefused(t *testing.T) {
	_, err := termfence.Verify(shop, distant, described(), now)
	require.ErrorIs(t, err, termfence.ErrNoProof)
}

func TestAQuarantinedOrRetiredBoxIsFenced(t *testing.T) {
	for _, state := range []roster.State{roster.Quarantined, roster.Retired} {
		s := perfect()
		s.box.State = state
		_, err := s.verify()
		require.NoError(t, err)
	}
}

func TestVerifyReturnsWhatWasSeen(t *testing.T) {
	require.Equal(t, termfence.Record{
		V: 1, Box: "shop-1", Enrollment: "e-shop-1", Cloud: shop.Cloud, State: "terminated", ObservedAt: now,
		Via: termfence.ViaDescribe, RequestID: "req-1",
		WrittenBy: termfence.Writer{Box: "worker-1", Enrollment: "e-worker-1"},
	}, fence(t, worker, now.In(time.FixedZone("", 3600))))
}

func TestGolden(t *testing.T) { recordtest.Golden(t, "fence", fence(t, worker, now)) }

func FuzzRecord(f *testing.F) { recordtest.Fuzz(f, fence(f, worker, now)) }

func TestKey(t *testing.T) {
	require.Equal(t, "control/box-fences/e-1.json", termfence.Key("e-1"))
}
