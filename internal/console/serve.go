package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/internal/admin"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/config"
)

// minToken is the shortest token, in bytes.
const minToken = 16

type serveCommand struct {
	config.Deployment
	config.SecretFile
	config.Admin
	RosterPrivateKey string `help:"File of the key that signs the roster; without it no box is enrolled here, by a person or without one." placeholder:"FILE"`
	Listen           string `help:"Address of the API. Beyond loopback it needs --token-file (${default})." placeholder:"ADDR" default:"127.0.0.1:7480"`
	TokenFile        string `help:"File of the bearer token that every request must carry." placeholder:"FILE"`
}

// Run serves until ctx ends.
func (cmd *serveCommand) Run(ctx context.Context, s *session) error {
	token, err := cmd.token()
	if err != nil {
		return err
	}
	c, err := cmd.console(ctx, s)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cmd.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer listener.Close()
	alerts, metrics := alert.New(s.log), prometheus.NewRegistry()
	metrics.MustRegister(alerts.Metrics())
	operator, err := admin.Listen(admin.Config{Addr: cmd.Admin.Admin, Registry: metrics, Log: s.log})
	if err != nil {
		return err
	}
	s.log.Info("API listener bound", "addr", listener.Addr().String(), "token", token != "")
	api := &API{Console: c, Token: token, Log: s.log}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return operator.Serve(ctx) })
	group.Go(func() error { return serve(ctx, listener, api.Handler()) })
	recovery := &Recovery{Console: c, Log: s.log}
	group.Go(func() error { return recovery.Run(ctx) })
	if c.Private != nil {
		enroller := &Enroller{Console: c, Alerts: alerts, Log: s.log}
		group.Go(func() error { return enroller.Run(ctx) })
	} else {
		s.log.Warn("no box is enrolled here: there is no --roster-private-key")
	}
	return group.Wait()
}

// token reads the token file. An address that others can reach needs one.
func (cmd *serveCommand) token() (string, error) {
	if cmd.TokenFile == "" {
		if host, _, err := net.SplitHostPort(cmd.Listen); err != nil || host == "" || !loopback(cmd.Listen) {
			return "", &Refusal{What: "the API was not served", Err: fmt.Errorf("--listen %s can be reached from elsewhere, and there is no token", cmd.Listen),
				Next: "give --token-file, or listen at 127.0.0.1"}
		}
		return "", nil
	}
	raw, err := os.ReadFile(cmd.TokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if len(token) < minToken || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("--token-file %s: want one word of at least %d bytes, got %d bytes", cmd.TokenFile, minToken, len(token))
	}
	return token, nil
}

func (cmd *serveCommand) console(ctx context.Context, s *session) (*Console, error) {
	secret, err := boxauth.LoadSecret(cmd.SecretFile.SecretFile, s.log)
	if err != nil {
		return nil, err
	}
	c, err := s.openToWrite(ctx, cmd.Deployment)
	if err != nil {
		return nil, err
	}
	c.SecretFP = secret.Fingerprint()
	if c.Certs, err = cmd.Certs(s.log); err != nil {
		return nil, err
	}
	if cmd.RosterPrivateKey != "" {
		if c.Private, err = config.LoadPrivateKey(cmd.RosterPrivateKey); err != nil {
			return nil, err
		}
	}
	_, err = c.Roster.Read(ctx)
	return c, err
}

// serve answers until ctx ends, then lets running requests finish for a while.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	done := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		done <- server.Shutdown(grace)
	})
	err := server.Serve(l)
	if stop() {
		return fmt.Errorf("API listener: %w", err) // it ended before ctx did
	}
	if err := <-done; err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
