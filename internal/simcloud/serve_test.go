package simcloud_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/simcloud"
)

// serve runs Serve as another process would see it.
func serve(t *testing.T) simcloud.Ready {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	dir := t.TempDir()
	go func() { done <- simcloud.Serve(ctx, simcloud.Config{CertDir: dir}, in) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	var ready simcloud.Ready
	require.NoError(t, json.Unmarshal(line, &ready))
	require.Equal(t, dir, ready.Certs)
	return ready
}

func TestACloudIsDrivenFromAnotherProcess(t *testing.T) {
	ready, ctx := serve(t), t.Context()
	client := simcloud.Client{URL: ready.Control}

	a, err := client.Launch(ctx, "eu-west-1", "")
	require.NoError(t, err)
	b, err := client.Launch(ctx, "us-east-1", "999900001111")
	require.NoError(t, err)
	c, err := client.Launch(ctx, "eu-west-1", "")
	require.NoError(t, err)
	require.Equal(t, simcloud.DefaultAccount, a.Account)
	require.Equal(t, "999900001111", b.Account)

	require.NoError(t, client.Terminate(ctx, a.ID))
	require.NoError(t, client.Stop(ctx, b.ID))
	require.NoError(t, client.Forget(ctx, c.ID))
	require.ErrorContains(t, client.Terminate(ctx, c.ID), "404")

	all, err := client.Instances(ctx)
	require.NoError(t, err)
	a.State, b.State = simcloud.Terminated, simcloud.Stopped
	require.Equal(t, []simcloud.Instance{a, b}, all)
}

func TestAGroupsInstanceItsDisksAndItsQueueAreDrivenFromAnotherProcess(t *testing.T) {
	ready, ctx := serve(t), t.Context()
	client := simcloud.Client{URL: ready.Control}
	i, err := client.LaunchInGroup(ctx, "eu-west-1", "", "shop")
	require.NoError(t, err)
	require.Equal(t, "shop", i.Group)

	data, err := client.Attach(ctx, i.ID, simcloud.Volume{})
	require.NoError(t, err)
	require.False(t, data.DeleteOnTermination)
	data.DeleteOnTermination = true
	flipped, err := client.Attach(ctx, i.ID, data)
	require.NoError(t, err)
	require.Equal(t, data, flipped)
	require.NoError(t, client.Detach(ctx, i.ID, data.ID))
	require.ErrorContains(t, client.Detach(ctx, i.ID, data.ID), simcloud.ErrNoVolume.Error())
	_, err = client.Attach(ctx, i.ID, data)
	require.ErrorContains(t, err, simcloud.ErrNoVolume.Error())
	_, err = client.Attach(ctx, "i-0", simcloud.Volume{})
	require.ErrorContains(t, err, "404")

	require.NoError(t, client.Stop(ctx, i.ID))
	require.NoError(t, client.Start(ctx, i.ID))
	require.NoError(t, client.Post(ctx, "eu-west-1", []byte("\xffpoison")))
	require.ErrorContains(t, client.Post(ctx, "us-east-1", nil), "us-east-1")
	require.Equal(t, ready.SQS+"/"+simcloud.DefaultAccount+"/terminations", ready.Queue)
}

func TestAQueueAnswersOnlyWhatItKnows(t *testing.T) {
	ready := serve(t)
	whole := `{"QueueUrl":"` + ready.Queue + `"`
	require.Equal(t, http.StatusOK, sqs(t, ready, "ReceiveMessage", whole+`}`))
	require.Equal(t, http.StatusOK, sqs(t, ready, "DeleteMessage", whole+`,"ReceiptHandle":"any"}`))
	for action, body := range map[string]string{
		"ReceiveMessage":  `{"QueueUrl":"` + ready.SQS + `/1/other"}`,
		"DeleteMessage":   whole + `}`,
		"SendMessage":     whole + `,"MessageBody":"x"}`,
		"ReceiveMessage ": whole + `,"MaxNumberOfMessages":11}`,
		"DeleteMessage ":  `[`,
	} {
		require.Equal(t, http.StatusBadRequest, sqs(t, ready, strings.TrimSpace(action), body), body)
	}
	require.NoError(t, simcloud.Client{URL: ready.Control}.Inject(t.Context(), simcloud.Fault{Kind: simcloud.Duplicate}))
	require.Equal(t, http.StatusOK, query(t, ready.EC2, "Action=DescribeInstances&Version=2016-11-15"), "no fault of EC2's")
	require.NoError(t, simcloud.Client{URL: ready.Control}.Inject(t.Context(), simcloud.Fault{Kind: simcloud.Denied, Action: "ReceiveMessage"}))
	require.Equal(t, http.StatusOK, sqs(t, ready, "DeleteMessage", whole+`,"ReceiptHandle":"any"}`))
}

func TestFaultsComeAndGoThroughTheControlAPI(t *testing.T) {
	ready, ctx := serve(t), t.Context()
	client := simcloud.Client{URL: ready.Control}
	describe := func() int { return query(t, ready.EC2, "Action=DescribeInstances&Version=2016-11-15") }

	require.Equal(t, http.StatusOK, describe())
	require.NoError(t, client.Inject(ctx, simcloud.Fault{Kind: simcloud.Throttled, Count: 1}))
	require.Equal(t, http.StatusServiceUnavailable, describe())
	require.Equal(t, http.StatusOK, describe(), "one fault is one answer")
	require.NoError(t, client.Inject(ctx, simcloud.Fault{Kind: simcloud.Denied}))
	require.Equal(t, http.StatusForbidden, describe())
	require.Equal(t, http.StatusForbidden, describe())
	require.NoError(t, client.ClearFaults(ctx))
	require.Equal(t, http.StatusOK, describe())
	require.ErrorContains(t, client.Inject(ctx, simcloud.Fault{Kind: "rain"}), "rain")
}

func TestMalformedQueriesAreRefused(t *testing.T) {
	url := serve(t).EC2
	require.Equal(t, http.StatusBadRequest, query(t, url, "Action=RebootEverything&Version=2016-11-15"))
	require.Equal(t, http.StatusBadRequest, query(t, url, "Action=DescribeInstances&Version=2008-02-01"))
	require.Equal(t, http.StatusBadRequest, query(t, url, "Action=TerminateInstances&Version=2016-11-15"))
	status, _ := request(t, "POST", url+"/?Action=DescribeInstances&Version=2016-11-15")
	require.Equal(t, http.StatusUnauthorized, status, "unsigned")
	status, _ = request(t, "POST", url, "Authorization", "AWS4-HMAC-SHA256 Credential=key/eu-west-1")
	require.Equal(t, http.StatusUnauthorized, status, "a scope without its parts")
	require.Equal(t, http.StatusUnauthorized, signed(t, url, "sqs", "Action=DescribeInstances&Version=2016-11-15",
		"Content-Type", "application/x-www-form-urlencoded"), "another service's scope")
}

func query(t *testing.T, url, form string) int {
	return signed(t, url, "ec2", form, "Content-Type", "application/x-www-form-urlencoded")
}

func sqs(t *testing.T, ready simcloud.Ready, action, body string) int {
	return signed(t, ready.SQS, "sqs", body, "X-Amz-Target", "AmazonSQS."+action)
}

// signed is the status of a request with a signature of service's scope.
func signed(t *testing.T, url, service, body, header, value string) int {
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set(header, value)
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=key/20260102/eu-west-1/"+service+"/aws4_request, SignedHeaders=host, Signature=00")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}
