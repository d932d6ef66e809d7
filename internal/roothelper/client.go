package roothelper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/stopevidence"
)

// Client is a box's machine whose root is in another process. [Dial] makes it.
type Client struct {
	socket string
	box    string
	cgroup string
}

// Dial asks the helper at socket who it is, for the hosts of one box. It
// refuses a helper that is not root: what that says is no evidence.
func Dial(ctx context.Context, socket, box string) (*Client, error) {
	c := &Client{socket: socket, box: box}
	hello, err := c.ask(ctx, request{Do: doHello})
	if err != nil {
		return nil, fmt.Errorf(`root helper at %s: %w; is "agent helper" running for uid %d?`, socket, err, os.Getuid())
	}
	c.cgroup = hello.Cgroup
	return c, nil
}

// Cgroup is the absolute directory of the host's cgroup, which is there only
// while a run is.
func (c *Client) Cgroup(host string) string { return machine.HostCgroup(c.cgroup, host) }

// End kills what lives in the host's cgroup, and removes it. It is an error
// while a connection runs the host.
func (c *Client) End(ctx context.Context, host string) error {
	_, err := c.ask(ctx, request{Do: doEnd, Host: host})
	return err
}

// WritersStopped is [stopevidence.WritersStopped] of the host, with the same
// errors.
func (c *Client) WritersStopped(ctx context.Context, host string, s stopevidence.Subject, replicator []stopevidence.Descriptor) ([]stopevidence.Check, error) {
	r := request{Do: doStopped, Host: host, Look: wireLook(s)}
	r.Look.Replicator = wireDescriptors(replicator)
	got, err := c.look(ctx, r)
	return got.Checks, err
}

// Collect is [stopevidence.Collect] of the host, with the same errors.
func (c *Client) Collect(ctx context.Context, host string, s stopevidence.Subject) (machine.Seen, error) {
	got, err := c.look(ctx, request{Do: doCollect, Host: host, Look: wireLook(s)})
	return machine.Seen{Checks: got.Checks, BootID: got.BootID, At: got.At}, err
}

func wireLook(s stopevidence.Subject) *look {
	return &look{Database: s.Database, Known: wireDescriptors(s.Known)}
}

func (c *Client) look(ctx context.Context, r request) (seen, error) {
	answer, err := c.ask(ctx, r)
	if err == nil && answer.Seen == nil {
		err = errors.New("root helper: the answer says nothing")
	}
	if err != nil {
		return seen{}, err
	}
	return *answer.Seen, nil
}

// ask makes a connection for one request and its answer.
func (c *Client) ask(ctx context.Context, r request) (reply, error) {
	peer, err := c.dial(ctx)
	if err != nil {
		return reply{}, err
	}
	defer peer.Close()
	defer context.AfterFunc(ctx, func() { _ = peer.SetDeadline(time.Unix(1, 0)) })()
	r.V, r.Box = 1, c.box
	if err := peer.send(r, nil); err != nil {
		return reply{}, err
	}
	answer, err := peer.reply(make([]byte, maxMessage))
	if err == nil {
		err = answer.err()
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return answer, err
}

// dial makes a connection to a helper that is root.
func (c *Client) dial(ctx context.Context) (conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "unixpacket", c.socket)
	if err != nil {
		return conn{}, err
	}
	uc := raw.(*net.UnixConn)
	peer, err := newConn(uc)
	if err != nil {
		return conn{}, errors.Join(err, uc.Close())
	}
	uid, err := peerUID(uc)
	if err == nil && uid != 0 {
		err = fmt.Errorf("it runs as uid %d, want root", uid)
	}
	if err != nil {
		return conn{}, errors.Join(err, uc.Close())
	}
	return peer, nil
}

// reply reads one answer.
func (c conn) reply(buf []byte) (reply, error) {
	b, file, err := c.receive(buf)
	if err != nil {
		return reply{}, err
	}
	if file != nil {
		return reply{}, errors.Join(errors.New("root helper: a file came with an answer"), file.Close())
	}
	r, err := record.Decode[reply](b)
	if err == nil && r.V != 1 {
		err = fmt.Errorf("root helper: v is %d, want 1", r.V)
	}
	return r, err
}
