package agent

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/stopevidence"
)

// stranger is a process that nobody started as the app, and that has the app's
// database: it says so, and for a line that it reads it commits a row.
func stranger(database string) error {
	db, err := sql.Open("sqlite", "file:"+database+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("select * from rows"); err != nil {
		return err
	}
	fmt.Println("has it")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if _, err := db.Exec("insert into rows values (?)", lines.Text()); err != nil {
			return err
		}
		fmt.Println("acknowledged")
	}
	return db.Close()
}

// process is a stranger that runs.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// invade starts a stranger on the host's database.
func (b *bench) invade() *process {
	self, err := os.Executable()
	require.NoError(b.t, err)
	p := &process{t: b.t, cmd: exec.Command(self)}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), "AGENT_TEST_STRANGER="+b.database()), os.Stderr
	p.in, err = p.cmd.StdinPipe()
	require.NoError(b.t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(b.t, err)
	require.NoError(b.t, p.cmd.Start())
	b.t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	p.out = bufio.NewScanner(out)
	require.True(b.t, p.out.Scan())
	return p
}

// commit makes the stranger commit a row.
func (p *process) commit(row string) {
	_, err := io.WriteString(p.in, row+"\n")
	require.NoError(p.t, err)
	require.True(p.t, p.out.Scan())
	require.Equal(p.t, "acknowledged", p.out.Text())
}

func (p *process) leave() {
	require.NoError(p.t, p.in.Close())
	require.NoError(p.t, p.cmd.Wait())
}

// looking makes the bench's agents look at the real machine.
func (b *bench) looking() {
	if os.Geteuid() != 0 {
		b.t.Skip("a stop is proven by root only")
	}
	own, err := machine.OpenCgroups("/regionha-test-"+record.Nonce(), "")
	if err != nil {
		b.t.Skip("needs cgroup v2: ", err)
	}
	b.t.Cleanup(func() {
		_ = b.abandon(context.Background())
		removeCgroups(b.t, own.Parent())
	})
	b.real, b.agent.machine, b.endsIn = own, own, 50*time.Millisecond
}

// next is the agent's next process.
func (b *bench) next() {
	b.restart(b.agent.set.DataDir)
	b.agent.machine, b.endsIn = b.real, 50*time.Millisecond
}

// ask sends a request to the app itself, once it is ready.
func (b *bench) ask(method, body string) string {
	require.NoError(b.t, b.run.durable(b.t.Context()))
	req, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.run.app.Load().Addr().String()+"/", strings.NewReader(body))
	require.NoError(b.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(b.t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	require.Equal(b.t, http.StatusOK, resp.StatusCode)
	return string(got)
}

// TestNoSessionEndsWhileAStrangerHasItsDatabase: what that commits after the
// flush is the session's too. When it has gone, the session ends, with all of it.
func TestNoSessionEndsWhileAStrangerHasItsDatabase(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*bench) error{
		"told to end": func(b *bench) error { return b.retire(b.t.Context()) },
		"left by an earlier process": func(b *bench) error {
			require.NoError(b.t, b.abandon(context.Background()))
			b.next()
			return b.stepped()
		},
		"outlived by a newer installation": func(b *bench) error { b.write(newer); return b.stepped() },
		"outlived, and left": func(b *bench) error {
			require.NoError(b.t, b.abandon(context.Background()))
			b.write(newer)
			b.next()
			return b.stepped()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.looking()
			session := b.until(served(0)).Holder.Session
			b.ask(http.MethodPost, "early")
			p := b.invade()
			require.True(t, isHeld(end(b)))
			require.Nil(t, b.claim().Holder.Ended)
			require.Equal(t, hostguard.Restored, b.journal())
			p.commit("late")
			p.leave()

			b.next()
			c := b.until(served(session))
			last := c.Holder.Admissions[len(c.Holder.Admissions)-1]
			require.Equal(t, hostclaim.CleanReturn, last.Coverage)
			require.Nil(t, last.WritesLost)
			require.Equal(t, "early late", b.ask(http.MethodGet, ""))
		})
	}
}

func (b *bench) stepped() error {
	_, err := b.step(b.t.Context())
	return err
}

// TestANewerInstallationIsNotReleasedWhileAStrangerHasTheSessionBefore it: the
// release takes its positions from that session's end.
func TestANewerInstallationIsNotReleasedWhileAStrangerHasTheSessionBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.looking()
	b.until(served(0))
	b.releasing()
	p := b.invade()
	b.write(newer)
	require.True(t, isHeld(b.stepped()))
	require.Nil(t, b.claim().Holder.Ended)
	p.commit("late")
	p.leave()
	c := b.until(released)
	require.Equal(t, c.Holder.Ended.Final, c.Op.Journal.Release.Final)
	require.Equal(t, hostguard.Ended, b.journal())
}

// TestAStrangerThatStaysKeepsNoHostDown: the session that it has is flushed, and
// declared as one that may have lost writes.
func TestAStrangerThatStaysKeepsNoHostDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.endsIn = time.Millisecond
	session := b.until(served(0)).Holder.Session
	b.ask(http.MethodPost, "early")
	b.machine.held.Store(1 << 20)
	require.True(t, isHeld(b.retire(t.Context())))
	b.restart(b.agent.set.DataDir)
	b.endsIn = time.Millisecond
	require.True(t, isHeld(b.stepped()))
	require.True(t, b.agent.alerts.Raised(alert.Held, testHost))
	c := b.until(served(session))
	require.False(t, b.agent.alerts.Raised(alert.Held, testHost), "a session has begun that it has not")
	require.Nil(t, c.Holder.Ended)
	last := c.Holder.Admissions[len(c.Holder.Admissions)-1]
	require.Equal(t, hostclaim.Uncovered, last.Coverage)
	require.NotNil(t, last.WritesLost)
	require.Equal(t, "early", b.ask(http.MethodGet, ""))
}

// TestAnIdleHostWhoseDatabaseAStrangerHasRunsOn in the same session, and sleeps
// when the stranger has gone.
func TestAnIdleHostWhoseDatabaseAStrangerHasRunsOn(t *testing.T) {
	t.Parallel()
	b := sleeper(t, 200*time.Millisecond)
	b.looking()
	session := b.until(served(0)).Holder.Session
	p, app := b.invade(), b.run.app.Load()
	require.Eventually(t, func() bool {
		require.NoError(t, b.stepped())
		return b.run == nil || b.run.app.Load() != app
	}, 10*time.Second, look)
	require.Nil(t, b.claim().Holder.Ended)
	require.Equal(t, session, b.run.number)
	p.commit("late")
	require.Equal(t, "late", b.ask(http.MethodGet, ""))
	stop := b.awake()
	require.Equal(t, http.StatusOK, b.request(http.MethodPost, "last").Code)
	stop()
	p.leave()
	require.Equal(t, session, b.asleep().Holder.Ended.Session)
}

// TestABoxThatCannotLookEndsSessionsAllTheSame: it offers no release. Any other
// failure of a look ends no session.
func TestABoxThatCannotLookEndsSessionsAllTheSame(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		as    func(*bench)
		ended bool
	}{
		"without a machine": {func(b *bench) { b.agent.machine = nil }, true},
		"that never could":  {func(b *bench) { b.machine.err = stopevidence.ErrIncomplete }, true},
		"that could once": {func(b *bench) {
			require.NoError(b.t, b.witness(b.t.Context(), b.run.producers))
			b.machine.err = stopevidence.ErrIncomplete
		}, false},
		"in time": {func(b *bench) {
			b.machine.err = fmt.Errorf("%w: %w", stopevidence.ErrIncomplete, context.DeadlineExceeded)
		}, false},
		"whose helper is away": {func(b *bench) { b.machine.err = errors.New("connection refused") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.until(served(0))
			c.as(b)
			err := b.retire(t.Context())
			if c.ended {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, b.machine.err)
			}
			require.Equal(t, c.ended, b.claim().Holder.Ended != nil)
			require.False(t, c.ended && b.agent.canRelease(), "what ends without a look is not released")
		})
	}
}
