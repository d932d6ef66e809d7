package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/carlosframework/regionha/objstore"
)

// answerWait bounds the wait for the head of an answer, once the request is
// sent. A connection that died in silence ends there, whatever the context.
const answerWait = time.Minute

// defaultRegion is what servers that know no regions are signed for.
const defaultRegion = "us-east-1"

// Config names a bucket. Credentials come from the SDK's chain: environment,
// shared files, instance role.
type Config struct {
	Bucket    string
	Prefix    string // keys lie under Prefix + "/"; the bucket's root if empty
	Region    string // the SDK's own setting if empty; us-east-1 where only Endpoint is set
	Endpoint  string // AWS if empty
	PathStyle bool   // http://endpoint/bucket/key in place of http://bucket.endpoint/key
}

// Store is an object store in a bucket. Make one with [Open]. It is safe for
// concurrent use.
type Store struct {
	client *s3.Client
	bucket string
	prefix string // "" or ends in a slash
}

var (
	_ objstore.Store     = (*Store)(nil)
	_ objstore.Streamer  = (*Store)(nil)
	_ objstore.Versioned = (*Store)(nil)
)

// Open makes a store of a bucket, without asking the server anything.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Bucket == "" {
		return nil, errors.New("open s3 store: no bucket is named")
	}
	httpClient := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = answerWait
	})
	options := []func(*awsconfig.LoadOptions) error{awsconfig.WithHTTPClient(httpClient)}
	if c.Region != "" {
		options = append(options, awsconfig.WithRegion(c.Region))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("open s3 store %s: %w", c.Bucket, err)
	}
	if cfg.Region == "" && c.Endpoint == "" {
		return nil, fmt.Errorf("open s3 store %s: no region is set; name it, or set AWS_REGION", c.Bucket)
	}
	if cfg.Region == "" {
		cfg.Region = defaultRegion
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = c.PathStyle
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
		o.DisableLogOutputChecksumValidationSkipped = true
		if c.Endpoint != "" {
			o.BaseEndpoint = aws.String(c.Endpoint)
		}
	})
	prefix := strings.Trim(c.Prefix, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &Store{client: client, bucket: c.Bucket, prefix: prefix}, nil
}

// once turns the SDK's retries off for one request.
func once(o *s3.Options) { o.Retryer = aws.NopRetryer{} }

// retries decides the retries of a write: an unconditional one may be repeated.
func retries(cond objstore.Condition) []func(*s3.Options) {
	if _, match := cond.ETag(); match || cond.IsAbsent() {
		return []func(*s3.Options){once}
	}
	return nil
}

// headers are the condition as the SDK takes it.
func headers(cond objstore.Condition) (ifMatch, ifNoneMatch *string) {
	if etag, match := cond.ETag(); match {
		return aws.String(etag), nil
	}
	if cond.IsAbsent() {
		return nil, aws.String("*")
	}
	return nil, nil
}

// checkKey refuses a key that is bad, or too long under the prefix.
func (s *Store) checkKey(key string) error {
	if err := objstore.CheckKey(key); err != nil {
		return err
	}
	if n := len(s.prefix) + len(key); n > objstore.MaxKey {
		return fmt.Errorf("%w: %d bytes with the prefix %s, at most %d", objstore.ErrBadKey, n, s.prefix, objstore.MaxKey)
	}
	return nil
}

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	return s.PutReader(ctx, key, bytes.NewReader(body), int64(len(body)), cond)
}

// PutReader implements [objstore.Streamer]. Bodies over 16 MiB are uploaded in
// parts.
func (s *Store) PutReader(ctx context.Context, key string, r io.ReadSeeker, size int64, cond objstore.Condition) (objstore.Info, error) {
	if err := s.checkKey(key); err != nil {
		return objstore.Info{}, fmt.Errorf("put: %w", err)
	}
	if err := cond.Check(); err != nil {
		return objstore.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	put := s.putWhole
	if size > partsFrom {
		put = s.putParts
	}
	info, err := put(ctx, key, r, size, cond)
	if err == nil && info.ETag == "" {
		err = errors.New("the server's answer names no ETag")
	}
	if err != nil {
		return objstore.Info{}, fmt.Errorf("put %s: %w", key, writeError(cond, err))
	}
	return info, nil
}

// putWhole sends size bytes in one request.
func (s *Store) putWhole(ctx context.Context, key string, r io.ReadSeeker, size int64, cond objstore.Condition) (objstore.Info, error) {
	sum, err := checksum(r, size)
	if err != nil {
		return objstore.Info{}, err
	}
	in := &s3.PutObjectInput{
		Bucket:        aws.String(s.bucket),
		Key:           aws.String(s.prefix + key),
		Body:          r,
		ContentLength: aws.Int64(size),
		ChecksumCRC32: aws.String(sum),
	}
	in.IfMatch, in.IfNoneMatch = headers(cond)
	out, err := s.client.PutObject(ctx, in, retries(cond)...)
	if err != nil {
		return objstore.Info{}, err
	}
	at, _ := middleware.GetServerTime(out.ResultMetadata)
	return objstore.Info{
		Key:       key,
		ETag:      aws.ToString(out.ETag),
		VersionID: aws.ToString(out.VersionId),
		Size:      size,
		ModTime:   at,
	}, nil
}
