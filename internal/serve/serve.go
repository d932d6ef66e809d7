// Package serve runs an HTTP server until a context ends, and knows what peers
// dial to reach a listener.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// ErrNotDialable: a listener on every interface, and nobody said by which name
// or IP peers reach it.
var ErrNotDialable = errors.New("peers cannot dial it")

// HTTP serves l until ctx ends. Requests then have drain to finish; what runs
// still is cut off. It returns nil for an end by ctx, and joins what it started.
func HTTP(ctx context.Context, l net.Listener, s *http.Server, drain time.Duration) error {
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(l) }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := s.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close()
	}
	if served := <-stopped; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// Advertised is what peers dial to reach l: advertise, a host name or IP, with
// l's port; without one, l's own address, which must not be every interface.
func Advertised(l net.Listener, advertise string) (string, error) {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	if advertise != "" {
		return net.JoinHostPort(advertise, port), nil
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		return "", fmt.Errorf("%w: %s is every interface; say with --advertise by which name or IP", ErrNotDialable, l.Addr())
	}
	return net.JoinHostPort(host, port), nil
}
