package roothelper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/carlosframework/regionha/internal/machine"
)

// Config says for whom a helper acts, and where.
type Config struct {
	Socket string          // where the agent finds it, absolute
	Agent  machine.Owner   // the only peer, and whom every command runs as; not root
	Parent machine.Cgroups // below which all its cgroups are; nobody else's
	Log    *slog.Logger

	// wait is for a peer to say what it wants, and for a host's earlier run to
	// be killed; 10s if zero, and less in tests.
	wait time.Duration
}

// The bounds of what is going on at once.
const (
	maxConns = 4096
	maxBoxes = 16 // a machine is one box, or a few for trying things out
	maxLooks = 2  // a look reads all of /proc
	lookTime = time.Minute
	sayTime  = 10 * time.Second // for a peer to take a message
)

// Serve is the helper until ctx ends. First it ends what an earlier helper left;
// at last it ends every run. Its error says why it could not begin, or go on.
func Serve(ctx context.Context, cfg Config) error {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.wait == 0 {
		cfg.wait = 10 * time.Second
	}
	if err := cfg.check(); err != nil {
		return err
	}
	lock, err := lockDir(cfg.Parent.Parent())
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := cfg.Parent.EndAll(ctx); err != nil {
		return fmt.Errorf("end what an earlier helper left: %w", err)
	}
	l, err := cfg.listen()
	if err != nil {
		return err
	}
	s := &server{cfg: cfg, hosts: hosts{held: map[string]chan struct{}{}}, boxes: boxes{made: map[string]bool{}}, looks: make(chan struct{}, maxLooks),
		conns: make(chan struct{}, maxConns), refusals: rate.Sometimes{First: 10, Interval: time.Second}}
	cfg.Log.Info("the root helper serves", "socket", cfg.Socket, "uid", cfg.Agent.UID, "cgroup", cfg.Parent.Parent())
	return s.serve(ctx, l)
}

func (c Config) check() error {
	switch {
	case c.Agent.UID == 0 || c.Agent.GID == 0:
		return fmt.Errorf("the agent's user has uid %d and gid %d: want one that is not root", c.Agent.UID, c.Agent.GID)
	case !filepath.IsAbs(c.Socket):
		return fmt.Errorf("socket is %q, want an absolute path", c.Socket)
	}
	return nil
}

// listen takes the socket over from a helper that is gone. Its mode is a first
// fence; who the peer is, is asked of the kernel for each connection.
func (c Config) listen() (*net.UnixListener, error) {
	if err := os.MkdirAll(filepath.Dir(c.Socket), 0o755); err != nil {
		return nil, err
	}
	addr := &net.UnixAddr{Net: "unixpacket", Name: c.Socket}
	if other, err := net.DialUnix("unixpacket", nil, addr); err == nil {
		return nil, errors.Join(fmt.Errorf("another helper answers at %s", c.Socket), other.Close())
	}
	if info, err := os.Lstat(c.Socket); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s is there, and is no socket", c.Socket)
	}
	if err := os.Remove(c.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unixpacket", addr)
	if err != nil {
		return nil, err
	}
	err = os.Chmod(c.Socket, 0o600)
	if err == nil {
		err = os.Chown(c.Socket, int(c.Agent.UID), int(c.Agent.GID))
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

type server struct {
	cfg      Config
	hosts    hosts
	boxes    boxes
	looks    chan struct{} // one in it for each look that runs
	conns    chan struct{} // one in it for each connection
	refusals rate.Sometimes
}

// serve answers until ctx ends, and returns when every run has ended.
func (s *server) serve(ctx context.Context, l *net.UnixListener) error {
	var open sync.WaitGroup
	defer open.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		c, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return errors.Join(err, l.Close())
		}
		select {
		case s.conns <- struct{}{}:
		default:
			s.refused("too many connections", "most", maxConns)
			_ = c.Close()
			continue
		}
		open.Go(func() {
			defer func() { <-s.conns }()
			s.welcome(ctx, c)
		})
	}
}

// refused tells an operator what was not done, but not at a peer's pace.
func (s *server) refused(why string, args ...any) {
	s.refusals.Do(func() { s.cfg.Log.Warn("refused: "+why, args...) })
}

// welcome answers one connection of the agent, and nobody else's.
func (s *server) welcome(ctx context.Context, c *net.UnixConn) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.CloseRead() })()
	uid, err := peerUID(c)
	if err != nil || uid != s.cfg.Agent.UID {
		s.refused("the peer is not the agent's user", "uid", uid, "want", s.cfg.Agent.UID, "err", err)
		return
	}
	peer, err := newConn(c)
	if err == nil {
		err = s.first(ctx, peer)
	}
	if err != nil && ctx.Err() == nil {
		s.refused("a request", "err", err)
	}
}

// first does what the first message of a connection asks for.
func (s *server) first(ctx context.Context, c conn) error {
	if err := c.SetReadDeadline(time.Now().Add(s.cfg.wait)); err != nil {
		return err
	}
	b, file, err := c.receive(make([]byte, maxMessage+1))
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
	}
	r, err := decodeRequest(b)
	if err == nil && (file != nil) != (r.Do == doSpawn) {
		err = fmt.Errorf("%s: an output comes with spawn, and only there", r.Do)
	}
	if err != nil {
		return errors.Join(err, c.send(failed("request", err), nil))
	}
	if r.Do == doSpawn {
		return s.spawn(ctx, c, r, file)
	}
	answer, err := s.answer(ctx, c, r)
	if err != nil {
		answer = failed(r.Do, err)
	}
	return c.send(answer, nil)
}

func (s *server) answer(ctx context.Context, c conn, r request) (reply, error) {
	box, err := s.cfg.Parent.Below(r.Box)
	if err != nil {
		return reply{}, err
	}
	answer := reply{V: 1, Do: r.Do}
	switch r.Do {
	case doHello:
		answer.Cgroup = box.Parent()
	case doEnd:
		err = s.end(ctx, box, r.Host)
	default:
		if err = s.boxes.make(r.Box, box); err == nil { // a look believes what is not there only below what is
			answer.Seen, err = s.look(ctx, c, box, r)
		}
	}
	return answer, err
}

// end kills what is left of a host that no connection runs.
func (s *server) end(ctx context.Context, box machine.Cgroups, host string) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.wait)
	defer cancel()
	release, err := s.hosts.take(ctx, box.Cgroup(host))
	if err != nil {
		return err
	}
	defer release()
	return box.End(ctx, host)
}

// look is one look for a peer that waits for it: it ends with the connection.
func (s *server) look(ctx context.Context, c conn, box machine.Cgroups, r request) (*seen, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if err := c.SetReadDeadline(time.Now().Add(lookTime)); err != nil {
		return nil, err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _, _ = c.receive(make([]byte, 1)) // nothing more is said: whatever comes, it is over
		cancel()
	}()
	defer func() {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // wakes the reader, which ends
		<-gone
	}()
	select {
	case s.looks <- struct{}{}:
		defer func() { <-s.looks }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if r.Do == doStopped {
		checks, err := box.WritersStopped(ctx, r.Host, r.Look.subject(), descriptors(r.Look.Replicator))
		return &seen{Checks: checks}, err
	}
	got, err := box.Collect(ctx, r.Host, r.Look.subject())
	return &seen{Checks: got.Checks, BootID: got.BootID, At: got.At}, err
}

// boxes says for which boxes there is a cgroup.
type boxes struct {
	mu   sync.Mutex
	made map[string]bool
}

// make makes the cgroup of a box, in which something is about to run or to be
// looked for.
func (b *boxes) make(name string, at machine.Cgroups) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.made[name] && len(b.made) >= maxBoxes {
		return fmt.Errorf("box %s: this helper has acted for %d other boxes, and takes no more", name, maxBoxes)
	}
	if err := at.Make(); err != nil {
		return err
	}
	b.made[name] = true
	return nil
}

// hosts says which cgroups are somebody's.
type hosts struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when it is free
}

// errBusy: another connection runs the host.
var errBusy = errors.New("another connection runs this host")

// take waits until the cgroup is nobody's and makes it the caller's.
func (h *hosts) take(ctx context.Context, cgroup string) (release func(), err error) {
	for {
		h.mu.Lock()
		free, held := h.held[cgroup]
		if !held {
			mine := make(chan struct{})
			h.held[cgroup] = mine
			h.mu.Unlock()
			return func() {
				h.mu.Lock()
				defer h.mu.Unlock()
				delete(h.held, cgroup)
				close(mine)
			}, nil
		}
		h.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errBusy, ctx.Err())
		}
	}
}
