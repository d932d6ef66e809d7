package awscloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/middleware"
)

const (
	// Callers ask again by themselves, so few attempts and short waits: a call
	// that fails fast says why sooner than one that hangs.
	attempts   = 3
	maxBackoff = 300 * time.Millisecond

	// maxReply bounds the body of one reply in bytes: ten messages of the
	// largest size, escaped.
	maxReply = 32 << 20
)

// ErrIncomplete: the reply is not a whole answer about what was asked. It is no
// observation; ask again.
var ErrIncomplete = errors.New("incomplete reply")

// configure is the SDK's default configuration, with few retries and bounded
// replies.
func configure(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return aws.Config{}, fmt.Errorf("aws configuration: %w", err)
	}
	cfg.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = attempts, maxBackoff })
	}
	cfg.HTTPClient = bounded{cfg.HTTPClient}
	return cfg, nil
}

// bounded cuts off every reply after maxReply bytes.
type bounded struct{ client aws.HTTPClient }

func (b bounded) Do(req *http.Request) (*http.Response, error) {
	resp, err := b.client.Do(req)
	if err == nil {
		resp.Body = &boundedBody{io.LimitedReader{R: resp.Body, N: maxReply}, resp.Body}
	}
	return resp, err
}

type boundedBody struct {
	io.LimitedReader
	io.Closer
}

// Read fails at the bound, where a LimitedReader would end as if all were read.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.N <= 0 {
		return 0, fmt.Errorf("%w: it is longer than %d bytes", ErrIncomplete, maxReply)
	}
	return b.LimitedReader.Read(p)
}

func requestID(m middleware.Metadata) string {
	id, _ := awsmiddleware.GetRequestIDMetadata(m)
	return id
}

// zoneIn reports whether an availability zone ("eu-west-1a", the local zone
// "us-west-2-lax-1a") may be in region. It catches an endpoint setting that
// sends every region's requests to one region.
func zoneIn(zone, region string) bool {
	rest, ok := strings.CutPrefix(zone, region)
	return ok && rest != "" && (rest[0] < '0' || rest[0] > '9')
}
