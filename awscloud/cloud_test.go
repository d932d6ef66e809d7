package awscloud_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/awscloud"
	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/simcloud"
	"github.com/carlosframework/regionha/termfence"
)

const (
	homeRegion   = "eu-west-1"
	clientRegion = "us-east-1" // what the SDK is configured with: never a box's own
	shutdownTime = time.Minute
)

// cloud is a simulated cloud whose clock the test moves, and real clients of it.
type cloud struct {
	*simcloud.Cloud
	states
	now time.Time
}

// states is a Describer of which the test wants the state alone.
type states struct{ *awscloud.Describer }

func (s states) Describe(ctx context.Context, box boxid.Cloud) (termfence.Observation, error) {
	seen, _, err := s.Describer.Describe(ctx, box)
	return seen, err
}

func newCloud(t *testing.T, cfg simcloud.Config) *cloud {
	c := &cloud{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	cfg.CertDir = t.TempDir()
	cfg.ShutdownTime = shutdownTime
	cfg.Now = func() time.Time { return c.now }
	var err error
	c.Cloud, err = simcloud.New(cfg)
	require.NoError(t, err)
	t.Cleanup(c.Cloud.Close)
	c.states = describer(t, c.EC2())
	t.Setenv("AWS_ENDPOINT_URL_SQS", serve(t, c.SQS()))
	t.Setenv("AWS_ENDPOINT_URL_AUTO_SCALING", serve(t, c.AutoScaling()))
	return c
}

func serve(t *testing.T, handler http.Handler) string {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL
}

// describer is a Describer whose every request handler answers.
func describer(t *testing.T, handler http.Handler) states {
	sdkEnv(t)
	t.Setenv("AWS_ENDPOINT_URL_EC2", serve(t, handler))
	d, err := awscloud.NewDescriber(t.Context())
	require.NoError(t, err)
	return states{d}
}

// sdkEnv sets what a machine would configure the SDK with, and nothing of this
// machine's own.
func sdkEnv(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_REGION":                  clientRegion,
		"AWS_ACCESS_KEY_ID":           "AKIAIOSFODNN7EXAMPLE",
		"AWS_SECRET_ACCESS_KEY":       "secret",
		"AWS_SESSION_TOKEN":           "",
		"AWS_CONFIG_FILE":             "/nonexistent",
		"AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
		"AWS_PROFILE":                 "",
	} {
		t.Setenv(name, value)
	}
}

func (c *cloud) launch(t *testing.T) boxid.Cloud {
	return c.launchIn(t, homeRegion, "")
}

func (c *cloud) launchIn(t *testing.T, region, account string) boxid.Cloud {
	i, err := c.Launch(region, account)
	require.NoError(t, err)
	return boxid.Cloud{Provider: boxid.AWS, Account: i.Account, Region: i.Region, InstanceID: i.ID}
}

// terminated launches an instance and waits until it is gone.
func (c *cloud) terminated(t *testing.T) boxid.Cloud {
	box := c.launch(t)
	require.NoError(t, c.Terminate(box.InstanceID))
	c.now = c.now.Add(shutdownTime)
	return box
}
