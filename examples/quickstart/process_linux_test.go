package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/simcloud"
)

// family starts a shell that started another process group, as an agent does.
func family(t *testing.T, ps *processes) *process {
	p, err := ps.start("box", nil, nil, "sh", "-c", "set -m; sleep 1000 & sleep 1000 & wait")
	require.NoError(t, err)
	require.NoError(t, until(t.Context(), time.Minute, "both sleep", func(context.Context) (bool, error) {
		sleeping, err := p.executing(sleeper(t)) // and not the shell still, between fork and exec
		return len(sleeping) == 2, err
	}))
	return p
}

func sleeper(t *testing.T) string {
	path, err := filepath.EvalSymlinks("/bin/sleep")
	require.NoError(t, err)
	return path
}

// runs reports whether a sleeper runs in the session: a frozen one does not.
func runs(t *testing.T, p *process) (bool, error) {
	all, err := p.executing(sleeper(t))
	return slices.ContainsFunc(all, func(m member) bool { return !m.frozen() }), err
}

func TestAnAppIsKnownByWhereItWorks(t *testing.T) {
	ps := newProcesses(t.TempDir(), nil)
	defer ps.close()
	work := filepath.Join(t.TempDir(), "hosts", "notes.example", "work")
	require.NoError(t, os.MkdirAll(work, 0o755))
	p, err := ps.start("app", nil, nil, "sh", "-c", "sleep 1000 & cd "+work+" && sleep 1000 & wait")
	require.NoError(t, err)
	require.NoError(t, until(t.Context(), time.Minute, "both sleep, one in place", func(context.Context) (bool, error) {
		all, err := p.executing(sleeper(t))
		var hosts []string
		for _, m := range all {
			hosts = append(hosts, m.host())
		}
		slices.Sort(hosts)
		return slices.Equal(hosts, []string{"", "notes.example"}), err
	}))
}

func TestABoxDiesWhole(t *testing.T) {
	ps := newProcesses(t.TempDir(), nil)
	defer ps.close()
	p := family(t, ps)
	awake, err := runs(t, p)
	require.NoError(t, err)
	require.True(t, awake)
	require.NoError(t, p.ended())

	require.NoError(t, p.kill())
	members, err := p.members()
	require.NoError(t, err)
	require.Empty(t, members)
	<-p.done
	require.ErrorContains(t, p.ended(), "killed")
	require.NoError(t, p.kill(), "killing the dead is nothing")
}

func TestAFrozenBoxRunsNothingUntilWoken(t *testing.T) {
	ps := newProcesses(t.TempDir(), nil)
	defer ps.close()
	p := family(t, ps)
	require.NoError(t, p.freeze(t.Context()))
	awake, err := runs(t, p)
	require.NoError(t, err)
	require.False(t, awake)
	has, err := p.has(sleeper(t))
	require.NoError(t, err)
	require.True(t, has)
	require.NoError(t, p.ended(), "it is not gone")

	require.NoError(t, p.wake())
	require.NoError(t, until(t.Context(), time.Minute, "it goes on", func(context.Context) (bool, error) {
		return runs(t, p)
	}))
}

func TestClosingEndsEveryChild(t *testing.T) {
	ps := newProcesses(t.TempDir(), nil)
	p := family(t, ps)
	require.NoError(t, p.freeze(t.Context()))
	ps.close()
	members, err := p.members()
	require.NoError(t, err)
	require.Empty(t, members)
	if p.cgroup != "" {
		_, err := os.Stat(p.cgroup)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

func TestAFailedCommandShowsWhatItSaid(t *testing.T) {
	ps := newProcesses(t.TempDir(), []string{"WORD=hello"})
	defer ps.close()
	require.NoError(t, ps.command(t.Context(), "c", "sh", "-c", "exit 0"))
	require.ErrorContains(t, ps.command(t.Context(), "c", "sh", "-c", "echo $WORD; exit 3"), "exit status 3\nhello")
	_, err := ps.start("none", nil, nil, "/nonexistent")
	require.ErrorContains(t, err, "start none")
}

func TestMain(m *testing.M) {
	// startCloud runs this very program.
	if len(os.Args) > 1 && childOf(os.Args[1:]) != nil {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestTheCloudIsAChildOfItsOwn(t *testing.T) {
	ps, dir := newProcesses(t.TempDir(), nil), t.TempDir()
	defer ps.close()
	c, err := startCloud(t.Context(), ps, dir, time.Second)
	require.NoError(t, err)
	i, err := c.Launch(t.Context(), awsRegion, "")
	require.NoError(t, err)
	require.Equal(t, simcloud.Running, i.State)
	require.FileExists(t, filepath.Join(c.Certs, awsRegion+".pem"))
}
