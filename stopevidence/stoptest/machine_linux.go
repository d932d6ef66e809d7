package stoptest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// inside is set where the tests run on their own machine already.
const inside = "STOPTEST_MACHINE"

// Main runs a package's tests on a machine of their own, as far as a look at it
// goes: in a new pid namespace with its own /proc, where nothing but the tests
// runs, and of which nothing is left when they end. Call it from TestMain. Without
// root the tests run where they are.
func Main(m *testing.M) {
	switch {
	case os.Geteuid() != 0:
		os.Exit(m.Run())
	case os.Getenv(inside) == "":
		os.Exit(boot())
	}
	if os.Getpid() == 1 {
		if err := mountProc(); err != nil {
			fmt.Fprintln(os.Stderr, "stoptest: mount /proc:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// boot runs this very command as the first process of a new machine.
func boot() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stoptest:", err)
		return 1
	}
	return 0
}

func mountProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("proc", "/proc", "proc", 0, "")
}
