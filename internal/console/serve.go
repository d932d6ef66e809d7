package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/internal/admin"
	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/config"
)

const (
	// recoveryPace is how often the server looks for creates that are overdue.
	recoveryPace = time.Minute

	// minToken is the shortest token, in bytes.
	minToken = 16
)

type serveCommand struct {
	config.Deployment
	config.SecretFile
	config.Admin
	RosterPrivateKey string `help:"File of the key that signs the roster; without it no box can be enrolled here." placeholder:"FILE"`
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
	operator, err := admin.Listen(admin.Config{Addr: cmd.Admin.Admin, Log: s.log})
	if err != nil {
		return err
	}
	s.log.Info("API listener bound", "addr", listener.Addr().String(), "token", token != "")
	api := &API{Console: c, Token: token, Log: s.log}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return operator.Serve(ctx) })
	group.Go(func() error { return serve(ctx, listener, api.Handler()) })
	group.Go(func() error { return c.recover(ctx, s.log) })
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

// recover cancels creates that are overdue, until ctx ends.
func (c *Console) recover(ctx context.Context, log *slog.Logger) error {
	for {
		hosts, err := c.CancelOverdue(ctx)
		for _, host := range hosts {
			log.Warn("a create was cancelled: its box did not take the host in time", "host", host)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("looking for overdue creates", "err", err)
		}
		if !pause(ctx, recoveryPace) {
			return nil
		}
	}
}
