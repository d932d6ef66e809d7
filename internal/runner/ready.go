package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/carlosframework/regionha/internal/machine"
)

const (
	probeTimeout  = 5 * time.Second
	probeEvery    = 20 * time.Millisecond // at first; doubles up to probeEveryMax
	probeEveryMax = 250 * time.Millisecond
)

// probe asks the ready path once, at addr.
func (c Config) probe(ctx context.Context, addr net.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Host+c.ReadyPath, nil)
	if err != nil {
		return err
	}
	client := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, addr.Network(), addr.String())
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s answered %d, want 200", c.ReadyPath, resp.StatusCode)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return err
}

// awaitReady asks until the run p answers at l, or ctx ends. Its error says what
// the last answer was.
func (c Config) awaitReady(ctx context.Context, p machine.Process, l listener) error {
	last := errors.New("it was not asked")
	for wait := probeEvery; ; wait = min(2*wait, probeEveryMax) {
		err := c.probe(ctx, l.addr)
		if err == nil {
			err = listensAt(p, l.addr)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", last)
		case <-time.After(wait):
		}
	}
}

// listensAt checks that a process of the run holds the listening socket at addr.
// Another process may have taken the port between its choice and the app's bind,
// and may answer the ready path. A unix socket lies in a directory that only
// this run was told of.
func listensAt(p machine.Process, addr net.Addr) error {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return nil
	}
	return p.Listens(tcp.Port)
}
