package stopevidence_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

// An actor is this test binary, run again to play one part: named by the
// environment, and told the database by it too.
const (
	actorRole     = "STOPEVIDENCE_ACTOR"
	actorDatabase = "STOPEVIDENCE_DATABASE"
	actorCgroup   = "STOPEVIDENCE_CGROUP"
)

func init() {
	if os.Getenv(actorRole) != "" {
		runtime.LockOSThread() // main stays on the leader, and nothing else gets there
	}
}

func TestMain(m *testing.M) {
	if role := os.Getenv(actorRole); role != "" {
		if err := actors[role](os.Getenv(actorDatabase)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	stoptest.Main(m)
}

// ready says that the actor is where the test wants it, and waits to be killed.
func ready(says any) error {
	line, err := json.Marshal(says)
	if err != nil {
		return err
	}
	fmt.Printf("ready %s\n", line)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

var actors = map[string]func(database string) error{
	// hold has the database open as a replicator does, and says by which descriptors.
	"hold": func(database string) error {
		_, err := unix.Open(database, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		held, err := stopevidence.ProcessDescriptors(database)
		if err != nil {
			return err
		}
		return ready(held)
	},
	// hold-later waits for a line before it opens the database.
	"hold-later": func(database string) error {
		fmt.Println("ready null")
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return err
		}
		if _, err := unix.Open(database, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		return ready(nil)
	},
	// map has closed the descriptor of what it mapped.
	"map": func(database string) error {
		if _, err := mapped(database); err != nil {
			return err
		}
		return ready(nil)
	},
	// hand-on opens the database and goes, and leaves it to a child in another
	// cgroup and session.
	"hand-on": func(database string) error {
		f, err := os.Open(database)
		if err != nil {
			return err
		}
		cgroup, err := os.Open(os.Getenv(actorCgroup))
		if err != nil {
			return err
		}
		child := exec.Command("sleep", "infinity")
		child.ExtraFiles = []*os.File{f}
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: int(cgroup.Fd())}
		if err := child.Start(); err != nil {
			return err
		}
		fmt.Println("ready", child.Process.Pid)
		return nil
	},
	// hand-down does the same by a child that goes too.
	"hand-down": func(database string) error {
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), actorRole+"=hand-on")
		child.Stdout = os.Stdout
		return child.Run()
	},
	// elsewhere has it by another path, which only its mount namespace has.
	"elsewhere": func(database string) error {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		if err := unix.Mount(filepath.Dir(database), "/mnt", "", unix.MS_BIND, ""); err != nil {
			return err
		}
		if _, err := unix.Open("/mnt/app.db", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		return ready(nil)
	},
	// unshared has it in a thread's own table alone.
	"unshared": func(database string) error {
		return inThread(func() error {
			if err := unix.Unshare(unix.CLONE_FILES); err != nil {
				return err
			}
			_, err := unix.Open(database, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			return err
		}, nil)
	},
	// reopened is a replicator with a thread that put another open of the database
	// onto the replicator's number.
	"reopened": func(database string) error {
		fd, err := unix.Open(database, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		held, err := stopevidence.ProcessDescriptors(database)
		if err != nil {
			return err
		}
		return inThread(func() error {
			if err := unix.Unshare(unix.CLONE_FILES); err != nil {
				return err
			}
			again, err := unix.Open(database, unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			if err := unix.Dup3(again, fd, unix.O_CLOEXEC); err != nil {
				return err
			}
			return unix.Close(again)
		}, held)
	},
	// leaderless has it mapped and open, and its first thread has exited.
	"leaderless": func(database string) error {
		if _, err := mapped(database); err != nil {
			return err
		}
		if _, err := unix.Open(database, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		go func() {
			for {
				stat, err := os.ReadFile("/proc/self/stat")
				if err != nil {
					fmt.Println(err)
				}
				if strings.Contains(string(stat), ") Z ") {
					_ = ready(nil)
				}
			}
		}()
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		return nil
	},
	// look looks, and says what it got.
	"look": func(database string) error {
		_, err := stopevidence.Collect(theContext, stopevidence.Subject{Cgroup: os.Getenv(actorCgroup), Database: database})
		return ready(fmt.Sprint(err))
	},
}

// inThread does something on a thread that then stays as it is.
func inThread(do func() error, says any) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- do()
		unix.Pause()
	}()
	if err := <-done; err != nil {
		return err
	}
	return ready(says)
}

func mapped(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// actor is one that plays its part.
type actor struct {
	*exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
	says  string
}

// play starts an actor and waits until it is ready. It is killed when the test
// ends. prepare may change how it is started.
func (h host) play(t *testing.T, role string, prepare func(*exec.Cmd)) *actor {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), actorRole+"="+role, actorDatabase+"="+h.Database, actorCgroup+"="+h.Cgroup)
	cmd.Stderr = os.Stderr
	if prepare != nil {
		prepare(cmd)
	}
	a := &actor{Cmd: cmd}
	var err error
	a.stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	a.lines = bufio.NewScanner(stdout)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { a.end() })
	a.wait(t)
	return a
}

// wait waits for the actor's next word.
func (a *actor) wait(t *testing.T) {
	t.Helper()
	require.True(t, a.lines.Scan(), "the actor ended")
	says, ok := strings.CutPrefix(a.lines.Text(), "ready ")
	require.True(t, ok, a.lines.Text())
	a.says = says
}

// tell sends the actor a line and waits until it has acted.
func (a *actor) tell(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(a.stdin, "go\n")
	require.NoError(t, err)
	a.wait(t)
}

// end kills the actor and reaps it.
func (a *actor) end() {
	_ = a.Process.Kill()
	_ = a.Wait() // killed
}

// descriptors are those that the actor said it has.
func (a *actor) descriptors(t *testing.T) []stopevidence.Descriptor {
	t.Helper()
	var held []stopevidence.Descriptor
	require.NoError(t, json.Unmarshal([]byte(a.says), &held))
	require.NotEmpty(t, held)
	return held
}
