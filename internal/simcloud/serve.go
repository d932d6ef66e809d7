package simcloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// Ready is the one line of JSON that [Serve] prints once it answers.
type Ready struct {
	EC2         string `json:"ec2"`         // for AWS_ENDPOINT_URL_EC2
	AutoScaling string `json:"autoscaling"` // for AWS_ENDPOINT_URL_AUTO_SCALING
	SQS         string `json:"sqs"`         // for AWS_ENDPOINT_URL_SQS
	Queue       string `json:"queue"`       // URL of every region's own queue
	Control     string `json:"control"`     // for [Client]
	Certs       string `json:"certs"`       // the directory for the identity-certs setting
}

// Serve runs a cloud on loopback until ctx ends: its services and the control
// API, each on a free port. It writes its addresses to ready as soon as all
// answer. A context that ended is no error.
func Serve(ctx context.Context, cfg Config, ready io.Writer) error {
	cloud, err := New(cfg)
	if err != nil {
		return err
	}
	defer cloud.Close()
	group, ctx := errgroup.WithContext(ctx)
	at := Ready{Certs: cfg.CertDir}
	for _, service := range []struct {
		handler http.Handler
		address *string
	}{
		{cloud.EC2(), &at.EC2}, {cloud.AutoScaling(), &at.AutoScaling}, {cloud.SQS(), &at.SQS}, {cloud.Control(), &at.Control},
	} {
		if *service.address, err = listen(ctx, group, service.handler); err != nil {
			return err
		}
	}
	at.Queue = at.SQS + cloud.QueuePath()
	if err := json.NewEncoder(ready).Encode(at); err != nil {
		return fmt.Errorf("simcloud: say ready: %w", err)
	}
	return group.Wait()
}

// listen serves handler on a free loopback port until ctx ends.
func listen(ctx context.Context, group *errgroup.Group, handler http.Handler) (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("simcloud: %w", err)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // cut connections are on purpose
	}
	group.Go(func() error {
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("simcloud: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	return "http://" + ln.Addr().String(), nil
}
