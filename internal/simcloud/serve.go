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
	EC2     string `json:"ec2"`     // for AWS_ENDPOINT_URL_EC2
	Control string `json:"control"` // for [Client]
	Certs   string `json:"certs"`   // the directory for the identity-certs setting
}

// Serve runs a cloud on loopback until ctx ends: the EC2 API and the control
// API on a free port each. It writes its addresses to ready as soon as both
// answer. A context that ended is no error.
func Serve(ctx context.Context, cfg Config, ready io.Writer) error {
	cloud, err := New(cfg)
	if err != nil {
		return err
	}
	defer cloud.Close()
	group, ctx := errgroup.WithContext(ctx)
	ec2, err := listen(ctx, group, cloud.EC2())
	if err != nil {
		return err
	}
	control, err := listen(ctx, group, cloud.Control())
	if err != nil {
		return err
	}
	if err := json.NewEncoder(ready).Encode(Ready{EC2: ec2, Control: control, Certs: cfg.CertDir}); err != nil {
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
