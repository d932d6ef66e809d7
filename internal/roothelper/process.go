package roothelper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/carlosframework/regionha/internal/machine"
)

// Spawn ends what an earlier run left in the host's cgroup, and has the helper
// start the command in a new one, as this process's user. The run dies with this
// process, and its first process with the helper. On an error nothing of it
// lives.
func (c *Client) Spawn(ctx context.Context, s machine.Spec) (machine.Process, error) {
	as := machine.Owner{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	if s.As != nil {
		as = *s.As
	}
	peer, err := c.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("root helper: %w", err)
	}
	r := request{V: 1, Do: doSpawn, Box: c.box, Host: s.Host,
		Run: &spec{Command: s.Command, Dir: s.Dir, Env: s.Env, UID: as.UID, GID: as.GID}}
	if err := peer.send(r, s.Output); err != nil {
		return nil, errors.Join(fmt.Errorf("root helper: %w", err), peer.Close())
	}
	p := &process{client: c, host: s.Host, conn: peer, exited: make(chan struct{}), over: make(chan struct{}), answers: make(chan reply, 1)}
	go p.read()
	started, err := p.await(ctx)
	switch {
	case err != nil:
		// It may have been started all the same: End finds out.
		p.exitedOnce.Do(func() { close(p.exited) })
	case started.err() != nil:
		p.hangUp()
		<-p.over
		return nil, started.err()
	}
	p.pid = started.PID
	return p, nil
}

// A process is a run whose first process is the helper's child. Its connection
// is the run: the helper kills the run when that ends, and ends it only when
// nothing of the run lives.
type process struct {
	client *Client
	host   string
	conn   conn
	pid    int

	exited     chan struct{}
	exitedOnce sync.Once
	over       chan struct{} // closed when the connection has ended
	answers    chan reply

	asking sync.Mutex
	ended  string // how it ended, once it did
}

// errGone: the helper is gone, and with it the first process.
var errGone = errors.New("the root helper is gone")

// read takes what the helper says until the connection ends.
func (p *process) read() {
	defer close(p.over)
	defer p.exitedOnce.Do(func() { close(p.exited) })
	defer p.conn.Close()
	buf := make([]byte, 16<<10)
	for {
		r, err := p.conn.reply(buf)
		switch {
		case err != nil:
			return
		case r.Do == doExited:
			p.exitedOnce.Do(func() { close(p.exited) })
		default:
			select {
			case p.answers <- r:
			default:
				return // nobody asked
			}
		}
	}
}

// hangUp ends this side of the connection; the helper ends its own when the run
// has ended.
func (p *process) hangUp() { _ = p.conn.CloseWrite() }

// await waits for the answer to what was asked. Without one the run is given up:
// an answer that came later would be taken for another's.
func (p *process) await(ctx context.Context) (reply, error) {
	select {
	case r := <-p.answers:
		return r, nil
	case <-p.over:
		select {
		case r := <-p.answers:
			return r, nil
		default:
			return reply{}, errGone
		}
	case <-ctx.Done():
		p.hangUp()
		return reply{}, fmt.Errorf("root helper: %w", ctx.Err())
	}
}

// ask is one request on the run's connection, and its answer.
func (p *process) ask(ctx context.Context, r request) (reply, error) {
	r.V = 1
	if err := p.conn.send(r, nil); err != nil {
		return reply{}, fmt.Errorf("%w: %w", errGone, err)
	}
	answer, err := p.await(ctx)
	if err == nil {
		err = answer.err()
	}
	return answer, err
}

// short asks for what the helper does at once.
func (p *process) short(r request) error {
	p.asking.Lock()
	defer p.asking.Unlock()
	if p.ended != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), sayTime)
	defer cancel()
	_, err := p.ask(ctx, r)
	return err
}

func (p *process) PID() int { return p.pid }

func (p *process) Exited() <-chan struct{} { return p.exited }

func (p *process) Terminate() error { return p.short(request{Do: doTerminate}) }

func (p *process) Listens(port int) error { return p.short(request{Do: doListens, Port: port}) }

func (p *process) Empty() (bool, error) { return p.tree().Empty() }

func (p *process) tree() machine.Tree { return machine.Tree{Cgroup: p.client.Cgroup(p.host)} }

// End has the helper kill the run. Where the helper is gone, the kernel killed
// the first process with it; the rest is killed by the next helper as it starts,
// and until then what the cgroup says is waited for.
func (p *process) End(ctx context.Context) (string, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	if p.ended != "" {
		return p.ended, nil
	}
	answer, err := p.ask(ctx, request{Do: doEnd})
	if err == nil && answer.Status != "" {
		p.ended = answer.Status
		<-p.over
		return p.ended, nil
	}
	select {
	case <-p.over:
	case <-ctx.Done():
		return "", fmt.Errorf("the run of %s may still live: %w", p.host, errors.Join(ctx.Err(), err))
	}
	if err := p.endLost(ctx); err != nil {
		return "", fmt.Errorf("the run of %s may still live: %w", p.host, err)
	}
	p.ended = errGone.Error()
	return p.ended, nil
}

const lostEvery = 100 * time.Millisecond

// endLost waits until nothing of a run lives that no connection holds any more.
func (p *process) endLost(ctx context.Context) error {
	tick := time.NewTicker(lostEvery)
	defer tick.Stop()
	for {
		empty, err := p.tree().Empty()
		if err == nil && empty {
			return nil
		}
		if err = errors.Join(err, p.client.End(ctx, p.host)); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}
