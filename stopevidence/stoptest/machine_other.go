//go:build !linux

package stoptest

import (
	"os"
	"testing"
)

// Main runs a package's tests.
func Main(m *testing.M) { os.Exit(m.Run()) }

// Cgroup skips the test: there are no cgroups.
func Cgroup(tb testing.TB) string {
	tb.Helper()
	tb.Skip("no cgroups")
	return ""
}
