package dirstore_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/dirstore"
)

// The variables make this test binary a writer: one that is to be killed, or
// one that counts.
const (
	crashDir = "REGIONHA_DIRSTORE_CRASH_DIR"
	countDir = "REGIONHA_DIRSTORE_COUNT_DIR"
)

const (
	crashes  = 200
	bodySize = 64 << 10

	counters = 4  // processes
	steps    = 40 // of each
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		writeUntilKilled(dir)
	}
	if dir := os.Getenv(countDir); dir != "" {
		if err := countUp(dir); err != nil {
			fmt.Fprintln(os.Stderr, "counter:", err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// countUp adds steps to a number by compare-and-swap.
func countUp(dir string) error {
	s, err := dirstore.Open(dir)
	for done := 0; err == nil && done < steps; {
		var o objstore.Object
		if o, err = s.Get(context.Background(), "n"); err != nil {
			break
		}
		n, _ := strconv.Atoi(string(o.Body))
		_, err = s.Put(context.Background(), "n", []byte(strconv.Itoa(n+1)), objstore.IfMatch(o.ETag))
		if err == nil {
			done++
		} else if errors.Is(err, objstore.ErrConflict) {
			err = nil
		}
	}
	return err
}

func TestProcessesLoseNoStep(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "n", "0", objstore.IfAbsent())
	var running []*exec.Cmd
	for range counters {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), countDir+"="+dir)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		running = append(running, cmd)
	}
	for _, cmd := range running {
		require.NoError(t, cmd.Wait())
	}
	o, err := s.Get(t.Context(), "n")
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(counters*steps), string(o.Body))
}

// writeUntilKilled replaces one key and creates others, and prints each write
// that was answered.
func writeUntilKilled(dir string) {
	s, err := dirstore.Open(dir)
	for run := rand.Uint64(); err == nil; {
		var last objstore.Object
		last, err = s.Get(context.Background(), "hot")
		cond := objstore.IfMatch(last.ETag)
		if errors.Is(err, objstore.ErrNotFound) {
			cond = objstore.IfAbsent()
		} else if err != nil {
			break
		}
		body := crashBody(fmt.Sprintf("%x-%d", run, rand.Uint64()))
		if _, err = s.Put(context.Background(), "hot", body, cond); err != nil {
			break
		}
		fmt.Printf("hot %s\n", stamp(body))
		key := "cold/" + stamp(body)
		if _, err = s.Put(context.Background(), key, body, objstore.IfAbsent()); err != nil {
			break
		}
		fmt.Printf("cold %s\n", stamp(body))
	}
	fmt.Fprintln(os.Stderr, "writer:", err)
	os.Exit(3)
}

// crashBody is a body that shows whether it is whole: its stamp, repeated.
func crashBody(stamp string) []byte {
	return bytes.Repeat([]byte(stamp+"\n"), bodySize/(len(stamp)+1))
}

func stamp(body []byte) string {
	first, _, _ := strings.Cut(string(body), "\n")
	return first
}

// TestAKilledWriterLeavesOnlyWholeObjects kills a writing process at random.
// After each kill every object is whole, and every answered write is there.
func TestAKilledWriterLeavesOnlyWholeObjects(t *testing.T) {
	dir := t.TempDir()
	rounds := crashes
	if testing.Short() {
		rounds = 20
	}
	answered := map[string]bool{} // of the create-only keys
	for range rounds {
		lastHot := killedWriter(t, dir, answered)
		s := open(t, dir)
		hot, err := s.Get(t.Context(), "hot")
		if errors.Is(err, objstore.ErrNotFound) {
			require.Empty(t, lastHot, "an answered write is gone")
			continue
		}
		require.NoError(t, err)
		require.True(t, bytes.Equal(hot.Body, crashBody(stamp(hot.Body))), "half an object")
		checkHistory(t, s, lastHot)
	}
	s := open(t, dir)
	for key := range answered {
		o, err := s.Get(t.Context(), "cold/"+key)
		require.NoError(t, err)
		require.True(t, bytes.Equal(o.Body, crashBody(key)))
	}
	t.Logf("%d kills, %d answered creates", rounds, len(answered))
}

// killedWriter runs a writer for a moment, and returns its last answered write
// of the hot key.
func killedWriter(t *testing.T, dir string, answered map[string]bool) (lastHot string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	var once sync.Once
	for lines.Scan() {
		// The first answer starts the clock, so that the kill falls into writing.
		once.Do(func() {
			time.AfterFunc(time.Duration(rand.IntN(25_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		})
		kind, key, _ := strings.Cut(lines.Text(), " ")
		if kind == "hot" {
			lastHot = key
		} else if kind == "cold" {
			answered[key] = true
		}
	}
	require.Error(t, cmd.Wait())
	require.Empty(t, stderr.String())
	return lastHot
}

// checkHistory: the last answered write is the newest version, or the one
// before the write that was killed.
func checkHistory(t *testing.T, s *dirstore.Store, lastHot string) {
	t.Helper()
	for i, info := range versions(t, s, "hot") {
		if i > 1 {
			break
		}
		r, _, err := s.GetVersion(t.Context(), "hot", info.VersionID)
		require.NoError(t, err)
		body := make([]byte, info.Size)
		_, err = io.ReadFull(r, body)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		if stamp(body) == lastHot {
			return
		}
	}
	require.Empty(t, lastHot, "an answered write is neither the newest version nor the one before")
}
