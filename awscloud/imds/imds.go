package imds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	sdk "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"

	"github.com/carlosframework/regionha/boxid"
)

const (
	documentPath  = "instance-identity/document"
	signaturePath = "instance-identity/signature"

	attempts   = 3
	maxBackoff = 300 * time.Millisecond
)

// Service reads this machine's own instance metadata service. It satisfies
// boxid's Source. It is safe for concurrent use and keeps its session token
// between calls.
type Service struct {
	client *sdk.Client
}

// New makes a client of the metadata service at endpoint, for example
// "http://127.0.0.1:4566"; "" is the SDK's own choice. It sends no request.
func New(endpoint string) *Service {
	// The service is on the machine's own link: what does not answer at once is
	// not there. The SDK sets these two only on a client of its own making.
	client := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = 500 * time.Millisecond }).
		WithTransportOptions(func(t *http.Transport) {
			t.ResponseHeaderTimeout = time.Second
			t.Proxy = nil
		})
	return &Service{client: sdk.New(sdk.Options{
		Endpoint:       endpoint,
		HTTPClient:     strict{client},
		EnableFallback: aws.FalseTernary,
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = attempts, maxBackoff
		}),

		DisableDefaultMaxBackoff: true, // it would put its own longer waits in place of ours
	})}
}

// Document reads the instance identity document: the exact bytes served, which
// are the bytes that the signature signs.
func (m *Service) Document(ctx context.Context) ([]byte, error) {
	return m.get(ctx, documentPath)
}

// Signature reads the base64 signature of the document as it is served, with
// its line breaks.
func (m *Service) Signature(ctx context.Context) ([]byte, error) {
	return m.get(ctx, signaturePath)
}

// Cloud reads who this machine is. It proves nothing to others, since nobody
// verified the document; it is what a box compares with its own roster entry
// before it acts. A document without an account, a region or an instance id is
// an error.
func (m *Service) Cloud(ctx context.Context) (boxid.Cloud, error) {
	raw, err := m.Document(ctx)
	if err != nil {
		return boxid.Cloud{}, err
	}
	cloud, err := boxid.ParseDocument(raw)
	if err != nil {
		return boxid.Cloud{}, fmt.Errorf("metadata: %w", err)
	}
	return cloud, nil
}

func (m *Service) get(ctx context.Context, path string) ([]byte, error) {
	out, err := m.client.GetDynamicData(ctx, &sdk.GetDynamicDataInput{Path: path})
	if err != nil {
		return nil, fmt.Errorf("metadata %s: %w", path, err)
	}
	defer out.Content.Close()
	body, err := io.ReadAll(out.Content)
	if err != nil {
		return nil, fmt.Errorf("metadata %s: %w", path, err)
	}
	if len(body) == 0 {
		return nil, fmt.Errorf("metadata %s: %w", path, errEmpty)
	}
	return body, nil
}

var errEmpty = errors.New("empty answer")

// strict is an HTTP client that bounds every answer, which the SDK would read
// to whatever end it has, and refuses an empty session token, which the SDK
// would send on.
type strict struct {
	sdk.HTTPClient
}

func (c strict) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.HTTPClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, boxid.MaxBody+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > boxid.MaxBody:
		return nil, fmt.Errorf("answer is over %d bytes", boxid.MaxBody)
	case len(body) == 0 && req.Method == http.MethodPut && resp.StatusCode == http.StatusOK:
		return nil, fmt.Errorf("session token: %w", errEmpty)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
