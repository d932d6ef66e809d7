// Command s3gateway is the S3 server of regionha's tests: versitygw's posix
// backend on loopback, in a temporary directory.
//
// For each line on its standard input it makes a fresh bucket that keeps
// versions, and prints the bucket's store URL. At the end of its input, and so
// when its parent dies however it dies, it stops and removes the directory.
// The credentials that it accepts are in AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY.
//
// It is a module of its own so that its many dependencies stay out of
// regionha's. Package internal/s3test builds and runs it.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

const region = "us-east-1"

// startWait bounds the wait until the server answers.
const startWait = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The gateway greets on os.Stdout, where only store URLs belong.
	urls := os.Stdout
	os.Stdout = os.Stderr
	if err := run(ctx, urls); err != nil {
		fmt.Fprintln(os.Stderr, "s3gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, urls io.Writer) error {
	key, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if key == "" || secret == "" {
		return errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set")
	}
	dir, err := os.MkdirTemp("", "regionha-s3-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	address, err := freeAddress()
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- serve(ctx, dir, address, key, secret) }()
	go func() { failed <- makeBuckets(ctx, urls, address, key, secret) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// serve runs the gateway on a directory. It does not return before it fails.
func serve(ctx context.Context, dir, address, key, secret string) error {
	data, versions, iam := filepath.Join(dir, "data"), filepath.Join(dir, "versions"), filepath.Join(dir, "iam")
	for _, d := range []string{data, versions, iam} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	be, err := posix.New(data, meta.XattrMeta{}, posix.PosixOpts{
		VersioningDir:       versions,
		ForceNoTmpFile:      true, // O_TMPFILE shows phantom keys in listings
		ValidateBucketNames: true,
		Concurrency:         512,
		CopyObjectThreshold: 5 << 30, // as S3; embedded, the default is 0
	})
	if err != nil {
		return fmt.Errorf("%s must be on a file system with extended attributes: %w", dir, err)
	}
	return embedgw.RunVersityGW(ctx, be, &embedgw.Config{
		RootUserAccess:    key,
		RootUserSecret:    secret,
		Region:            region,
		Ports:             []string{address},
		MaxConnections:    4096,
		MaxRequests:       4096,
		MultipartMaxParts: 10000,
		KeepAlive:         true,
		Quiet:             true,
		IAMDir:            iam,
		HealthPath:        "/health",
	})
}

// makeBuckets makes a bucket for each line of input. Its end is nil.
func makeBuckets(ctx context.Context, urls io.Writer, address, key, secret string) error {
	endpoint := "http://" + address
	if err := waitHealthy(ctx, endpoint); err != nil {
		return err
	}
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String(endpoint),
		Region:       region,
		UsePathStyle: true,
		Credentials:  credentials.NewStaticCredentialsProvider(key, secret, ""),
	})
	lines := bufio.NewScanner(os.Stdin)
	for n := 1; lines.Scan(); n++ {
		bucket := fmt.Sprintf("bucket-%d", n)
		if err := makeBucket(ctx, client, bucket); err != nil {
			return err
		}
		query := url.Values{"endpoint": {endpoint}, "path-style": {"true"}, "region": {region}}
		fmt.Fprintln(urls, "s3://"+bucket+"?"+query.Encode())
	}
	return lines.Err()
}

func makeBucket(ctx context.Context, client *s3.Client, bucket string) error {
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		return err
	}
	_, err := client.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket:                  aws.String(bucket),
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	return err
}

// freeAddress finds a free port on loopback. The gateway wants to open it
// itself, so another process can take it first; then the start fails.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func waitHealthy(ctx context.Context, endpoint string) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/health", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server at %s does not answer: %w", endpoint, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
