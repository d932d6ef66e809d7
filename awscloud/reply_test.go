package awscloud_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/awscloud"
	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/simcloud"
	"github.com/carlosframework/regionha/termfence"
)

// The instances of the recorded answers: see testdata/moto.
const (
	runningID    = "i-976769c47df9b5e82"
	stoppedID    = "i-6d7fa93d9841f1fab"
	terminatedID = "i-126d5ba5b09105963"
	unknownID    = "i-0123456789abcdef0"
)

// recorded answers every request with one stored reply.
func recorded(t *testing.T, name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, err := os.Open(filepath.Join("testdata", "moto", name+".http"))
		require.NoError(t, err)
		defer f.Close()
		resp, err := http.ReadResponse(bufio.NewReader(f), r)
		require.NoError(t, err)
		defer resp.Body.Close()
		for _, h := range []string{"Content-Type", "X-Amzn-Requestid", "X-Amzn-Query-Error"} {
			w.Header().Set(h, resp.Header.Get(h))
		}
		w.WriteHeader(resp.StatusCode)
		_, err = io.Copy(w, resp.Body)
		require.NoError(t, err)
	})
}

func boxOf(id string) boxid.Cloud {
	return boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: homeRegion, InstanceID: id}
}

func TestRecordedAnswersOfAnotherMock(t *testing.T) {
	for _, row := range []struct {
		name, id, state, refused string
	}{
		{"running", runningID, "running", ""},
		{"stopped", stoppedID, "stopped", ""},
		{"terminated", terminatedID, "terminated", ""},
		{"notfound", unknownID, "", ""},
		{"empty", unknownID, "", ""},
		{"listing", runningID, "", "more than one"},
		{"terminated", runningID, "", "names instance"},
	} {
		t.Run(row.name, func(t *testing.T) {
			seen, err := describer(t, recorded(t, row.name)).Describe(t.Context(), boxOf(row.id))
			if row.refused != "" {
				require.ErrorIs(t, err, awscloud.ErrIncomplete)
				require.ErrorContains(t, err, row.refused)
				return
			}
			require.NoError(t, err)
			require.NotEmpty(t, seen.RequestID)
			want := termfence.Observation{Via: termfence.ViaDescribe, InstanceID: row.id, Region: homeRegion, RequestID: seen.RequestID}
			if row.state != "" {
				want.Found, want.State, want.Account = true, row.state, "123456789012"
			}
			require.Equal(t, want, seen)
		})
	}
}

// body answers every request with this reservationSet and what follows it.
func body(inner string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
		_, _ = io.WriteString(w, `<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId>`+
			inner+`</DescribeInstancesResponse>`)
	})
}

func reservations(instances ...string) string {
	return `<reservationSet><item><reservationId>r-1</reservationId><ownerId>123456789012</ownerId><instancesSet>` +
		strings.Join(instances, "") + `</instancesSet></item></reservationSet>`
}

func item(id, zone string) string {
	return `<item><instanceId>` + id + `</instanceId><instanceState><code>48</code><name>terminated</name></instanceState>` +
		`<placement><availabilityZone>` + zone + `</availabilityZone></placement></item>`
}

func TestAReplyThatIsNotAboutTheOneAskedForIsIncomplete(t *testing.T) {
	for name, row := range map[string]struct{ body, refused string }{
		"another instance":          {reservations(item(stoppedID, "eu-west-1a")), "names instance"},
		"another instance too":      {reservations(item(terminatedID, "eu-west-1a"), item(stoppedID, "eu-west-1a")), "more than one"},
		"twice":                     {reservations(item(terminatedID, "eu-west-1a"), item(terminatedID, "eu-west-1a")), "more than one"},
		"another region":            {reservations(item(terminatedID, "us-east-1a")), "zone"},
		"a region of longer name":   {reservations(item(terminatedID, "eu-west-10a")), "zone"},
		"an instance without an id": {reservations(`<item><instanceState><name>terminated</name></instanceState></item>`), "names instance"},
		"an empty page of many":     {`<reservationSet/><nextToken>t</nextToken>`, "more pages"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := describer(t, body(row.body)).Describe(t.Context(), boxOf(terminatedID))
			require.ErrorIs(t, err, awscloud.ErrIncomplete)
			require.ErrorContains(t, err, row.refused)
		})
	}
}

func TestTheZonesOfARegion(t *testing.T) {
	for _, zone := range []string{"", "eu-west-1a", "eu-west-1-lon-1a"} {
		seen, err := describer(t, body(reservations(item(terminatedID, zone)))).Describe(t.Context(), boxOf(terminatedID))
		require.NoError(t, err, zone)
		require.Equal(t, "terminated", seen.State)
	}
}

func TestAMalformedIDIsAnError(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	_, err := c.Describe(t.Context(), boxOf("nonsense"))
	require.ErrorContains(t, err, "InvalidInstanceID.Malformed")
}

func TestAReplyThatNeverEndsIsCutOff(t *testing.T) {
	endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		space := []byte(strings.Repeat(" ", 1<<20))
		for range 64 {
			if _, err := w.Write(space); err != nil {
				return
			}
		}
	})
	_, err := describer(t, endless).Describe(t.Context(), boxOf(runningID))
	require.ErrorContains(t, err, "longer than")
}
