package event_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/awscloud/event"
	"github.com/carlosframework/regionha/termfence"
)

func stored(t testing.TB, name string) []byte {
	body, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return body
}

func TestAStateChangeIsAnObservation(t *testing.T) {
	seen, err := event.Decode(stored(t, "terminated.json"))
	require.NoError(t, err)
	require.Equal(t, termfence.Observation{
		Via: termfence.ViaEvent, Found: true, EventID: "7bf73129-1428-4cd3-a780-95db273d1602",
		InstanceID: "i-0abcd1111abcd1111", Account: "123456789012", Region: "eu-west-1", State: "terminated",
	}, seen)
}

// others are events about the same instance that say nothing of its state.
var others = []string{"spot-warning.json", "rebalance.json", "cloudtrail.json", "autoscaling.json"}

func TestOtherEventsAreNone(t *testing.T) {
	for _, name := range others {
		_, err := event.Decode(stored(t, name))
		require.ErrorIs(t, err, event.ErrOtherEvent, name)
	}
}

// Each row is the good event but for one member.
func TestAnEventMissingAnythingIsRefused(t *testing.T) {
	for name, change := range map[string]func(event, detail map[string]any){
		"id":                 func(e, _ map[string]any) { delete(e, "id") },
		"id is empty":        func(e, _ map[string]any) { e["id"] = "" },
		"account":            func(e, _ map[string]any) { delete(e, "account") },
		"region":             func(e, _ map[string]any) { delete(e, "region") },
		"detail.instance-id": func(_, d map[string]any) { delete(d, "instance-id") },
		"detail.state":       func(_, d map[string]any) { delete(d, "state") },
		"detail is":          func(e, _ map[string]any) { delete(e, "detail") },
		"version":            func(e, _ map[string]any) { e["version"] = "1" },
		"resources":          func(e, _ map[string]any) { delete(e, "resources") },
		"resources has 2":    func(e, _ map[string]any) { e["resources"] = []string{"a", "b"} },
		"resource is":        func(e, _ map[string]any) { e["account"] = "999900001111" },
		"another region":     func(e, _ map[string]any) { e["region"] = "us-east-1" },
		"another instance":   func(_, d map[string]any) { d["instance-id"] = "i-0" },
		"no arn":             func(e, _ map[string]any) { e["resources"] = []string{"ec2:eu-west-1"} },
	} {
		t.Run(name, func(t *testing.T) {
			var e map[string]any
			require.NoError(t, json.Unmarshal(stored(t, "terminated.json"), &e))
			change(e, e["detail"].(map[string]any))
			body, err := json.Marshal(e)
			require.NoError(t, err)
			seen, err := event.Decode(body)
			require.Error(t, err)
			require.NotErrorIs(t, err, event.ErrOtherEvent)
			require.Zero(t, seen)
		})
	}
}

func TestAnotherSourceOrTypeIsNoStateChange(t *testing.T) {
	good := string(stored(t, "terminated.json"))
	for _, r := range [][2]string{
		{`"aws.ec2"`, `"aws.ec3"`}, {`"aws.ec2"`, `"custom.ec2"`}, {`"source"`, `"Source"`},
		{"EC2 Instance State-change Notification", "EC2 Instance State-Change Notification"},
	} {
		changed := strings.Replace(good, r[0], r[1], 1)
		require.NotEqual(t, good, changed)
		_, err := event.Decode([]byte(changed))
		require.ErrorIs(t, err, event.ErrOtherEvent, r[1])
	}
}

func TestAmbiguousEventsAreRefused(t *testing.T) {
	good := string(stored(t, "terminated.json"))
	for name, body := range map[string]string{
		"a state twice":  strings.Replace(good, `"state"`, `"state":"running","state"`, 1),
		"an id twice":    strings.Replace(good, `"id"`, `"id":"x","id"`, 1),
		"trailing data":  good + "{}",
		"cut off":        good[:len(good)/2],
		"invalid UTF-8":  strings.Replace(good, "terminated", "termin\xffted", 1),
		"empty":          "",
		"not an object":  "[]",
		"an SNS wrapper": `{"Type":"Notification","Message":"{}"}`,
	} {
		seen, err := event.Decode([]byte(body))
		require.Error(t, err, name)
		require.Zero(t, seen, name)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range append([]string{"terminated.json"}, others...) {
		f.Add(stored(f, name))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		seen, err := event.Decode(body)
		if err != nil {
			require.Zero(t, seen)
			return
		}
		require.True(t, seen.Found)
		for _, field := range []string{seen.EventID, seen.InstanceID, seen.Account, seen.Region, seen.State} {
			require.NotEmpty(t, field)
		}
	})
}
