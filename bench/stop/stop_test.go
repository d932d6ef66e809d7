//go:build linux

package stop_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

// The machine.
const (
	processes   = 2_000
	descriptors = 50 // of each
)

func TestMain(m *testing.M) { stoptest.Main(m) }

// BenchmarkStop times both on each turn, so that both see the same machine.
func BenchmarkStop(b *testing.B) {
	database, replicator := replicated(b)
	subject := stopevidence.Subject{Cgroup: stoptest.Cgroup(b), Database: database}
	populate(b)
	lsof, err := exec.LookPath("lsof")
	if err != nil {
		b.Skip(err)
	}
	var ours, theirs time.Duration
	var theirPeak int64
	require.NoError(b, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0), "the peak starts over")
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		_, err := stopevidence.WritersStopped(b.Context(), subject, replicator)
		ours += time.Since(start)
		require.NoError(b, err)

		b.StopTimer()
		start = time.Now()
		var out bytes.Buffer
		// Without names of hosts, ports and users, and without warnings.
		cmd := exec.CommandContext(b.Context(), lsof, "-n", "-P", "-l", "-w", database, database+"-wal", database+"-shm")
		cmd.Stdout = &out
		require.NoError(b, cmd.Run())
		theirs += time.Since(start)
		theirPeak = max(theirPeak, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
		require.GreaterOrEqual(b, bytes.Count(out.Bytes(), []byte("\n")), len(replicator))
		b.StartTimer()
	}
	b.ReportMetric(float64(theirs.Milliseconds())/float64(b.N), "lsof-ms/op")
	b.ReportMetric(float64(theirs)/float64(ours), "x-lsof")
	b.ReportMetric(float64(peak(b))/1024, "peak-MiB")
	b.ReportMetric(float64(theirPeak)/1024, "lsof-peak-MiB")
}

// replicated makes the files of a database and holds them, as a replicator does.
func replicated(b *testing.B) (string, []stopevidence.Descriptor) {
	database := filepath.Join(b.TempDir(), "app.db")
	paths := []string{database, database + "-wal", database + "-shm"}
	for _, path := range paths {
		f, err := os.Create(path)
		require.NoError(b, err)
		b.Cleanup(func() { f.Close() })
	}
	held, err := stopevidence.ProcessDescriptors(paths...)
	require.NoError(b, err)
	require.Len(b, held, len(paths))
	return database, held
}

// populate starts the machine's processes: each has regular files on the
// database's own file system, sockets, pipes and devices.
func populate(b *testing.B) {
	cgroup, err := os.Open(stoptest.Cgroup(b))
	require.NoError(b, err)
	defer cgroup.Close()
	var extra []*os.File
	for len(extra) < descriptors-3 {
		file, err := os.Create(filepath.Join(b.TempDir(), "log"))
		require.NoError(b, err)
		r, w, err := os.Pipe()
		require.NoError(b, err)
		null, err := os.Open(os.DevNull)
		require.NoError(b, err)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		socket, err := listener.(*net.TCPListener).File()
		require.NoError(b, err)
		b.Cleanup(func() { listener.Close() })
		extra = append(extra, file, r, w, null, socket)
	}
	for _, f := range extra {
		b.Cleanup(func() { f.Close() })
	}
	for range processes {
		cmd := exec.Command("sleep", "infinity")
		cmd.ExtraFiles = extra[:descriptors-3]
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup.Fd())}
		require.NoError(b, cmd.Start())
		b.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed
		})
	}
}

// peak is the most memory that this process had, in KiB.
func peak(b *testing.B) int {
	f, err := os.Open("/proc/self/status")
	require.NoError(b, err)
	defer f.Close()
	status, err := io.ReadAll(f)
	require.NoError(b, err)
	_, after, ok := strings.Cut(string(status), "VmHWM:")
	require.True(b, ok)
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	require.NoError(b, err)
	return kib
}
