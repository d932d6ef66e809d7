package ingress

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	dialTimeout = 2 * time.Second
	watchAfter  = time.Second

	// askFirst is how long a body may be that is sent to a peer before that
	// says that its app takes it: one that is refused unread is whole still. A
	// peer says so, or refuses, in the time that it holds a request for its own
	// app; the body of one that says nothing for longer is sent after
	// answerFirst such times.
	askFirst    = 64 << 10
	answerFirst = 3

	// appIdle is how long a connection to an app is kept without a request:
	// less than any app keeps it, because a write that meets the app's close
	// cannot be sent again.
	appIdle  = time.Second
	peerIdle = 30 * time.Second // an ingress keeps it for longer

	// longestHeader bounds the header of an answer. The client's is the
	// server's to bound.
	longestHeader = 256 << 10
)

func newTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error), idle, hold time.Duration) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errUnreached, err)
			}
			return c, nil
		},
		DisableCompression:     true, // bodies pass as they are
		MaxIdleConnsPerHost:    64,
		MaxIdleConns:           1024,
		IdleConnTimeout:        idle,
		ExpectContinueTimeout:  answerFirst * hold,
		MaxResponseHeaderBytes: longestHeader,
	}
}

func dialPeer(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, network, addr)
}

// dialApp dials what authority wrote. The transport adds a port to what has
// none.
func dialApp(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if path, ok := strings.CutSuffix(host, socketSuffix); ok {
		name, err := hex.DecodeString(path)
		if err != nil {
			return nil, err
		}
		return d.DialContext(ctx, "unix", string(name))
	}
	return d.DialContext(ctx, network, addr)
}
