package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestABoxSeesItsOwnProcessesOnlyAndRestartsWhatWasKilled(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	if !machinesPossible(self) {
		t.Skip("not root")
	}
	ps, dir := newProcesses(t.TempDir(), nil), t.TempDir()
	defer ps.close()
	out := filepath.Join(dir, "out")
	p, err := ps.startMachine("box", nil, self, "/bin/sh", "-c", "ls -d /proc/[0-9]* >>"+out+"; echo run >>"+out+"; exec sleep 1000")
	require.NoError(t, err)
	sleeping := func(context.Context) (bool, error) { return runs(t, p) }
	require.NoError(t, until(t.Context(), time.Minute, "it sleeps", sleeping))
	said, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Contains(t, string(said), "/proc/1\n")
	require.LessOrEqual(t, strings.Count(string(said), "/proc/"), 3, "the box, what it runs and that one's child: no others")

	peak, err := p.peakMemory(sleeper(t))
	require.NoError(t, err)
	require.Positive(t, peak)
	n, err := p.killProgram(sleeper(t))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, until(t.Context(), time.Minute, "it runs again", func(context.Context) (bool, error) {
		said, err := os.ReadFile(out)
		return strings.Count(string(said), "run\n") == 2, err
	}))
	require.NoError(t, p.ended())
	require.NoError(t, p.kill())
	<-p.done
}

func TestABoxEndsWithWhatItRuns(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	if !machinesPossible(self) {
		t.Skip("not root")
	}
	ps := newProcesses(t.TempDir(), nil)
	defer ps.close()
	p, err := ps.startMachine("box", nil, self, "/bin/sh", "-c", "exit 3")
	require.NoError(t, err)
	<-p.done
	require.ErrorContains(t, p.ended(), "ended with status 3")
}
