//go:build !linux

package agent

// headroom is not measured here.
func headroom(string) (memory, disk int64) { return 0, 0 }
