package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// process is one child, the leader of its own session.
type process struct {
	name string
	log  string // path
	pid  int
	done chan struct{} // closed once it was reaped
	err  error         // how it ended; read after done

	cgroup  string // its own cgroup, "" where none could be made
	machine bool   // it is the first process of a machine of its own
}

// processes are this program's children. Closing ends every one, with all that
// they started, whatever state it is in.
type processes struct {
	logs string   // directory
	env  []string // of every child

	starts chan func()
	mu     sync.Mutex
	all    []*process
}

// newProcesses begins the goroutine that starts children. The kernel ends a
// child when the thread that started it does, so that thread has to stay.
func newProcesses(logs string, env []string) *processes {
	ps := &processes{logs: logs, env: env, starts: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for start := range ps.starts {
			start()
		}
	}()
	return ps
}

// start runs argv with env added to what every child gets. Its output goes to
// log/<name>.log, and its standard output to out as well where that is not nil.
func (ps *processes) start(name string, env []string, out io.Writer, argv ...string) (*process, error) {
	return ps.launch(&process{name: name}, env, out, argv)
}

// boxCommand makes this program the first process of a box instead.
const boxCommand = "box"

// startMachine is start on a machine of its own: argv sees its own processes
// only, and is started again when it is killed.
func (ps *processes) startMachine(name string, env []string, self string, argv ...string) (*process, error) {
	return ps.launch(&process{name: name, machine: true}, env, nil, append([]string{self, boxCommand}, argv...))
}

func (ps *processes) launch(p *process, env []string, out io.Writer, argv []string) (*process, error) {
	p.log, p.done = filepath.Join(ps.logs, p.name+".log"), make(chan struct{})
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), ps.env...), env...)
	cmd.Stdout, cmd.Stderr = log, log
	if out != nil {
		cmd.Stdout = io.MultiWriter(log, out)
	}
	release, err := isolate(cmd, p)
	if err != nil {
		log.Close()
		return nil, err
	}
	started := make(chan error)
	ps.starts <- func() { started <- cmd.Start() }
	err = <-started
	release()
	if err != nil {
		log.Close()
		p.removeCgroup()
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	p.pid = cmd.Process.Pid
	ps.mu.Lock()
	ps.all = append(ps.all, p)
	ps.mu.Unlock()
	go func() {
		p.err = cmd.Wait()
		log.Close()
		close(p.done)
	}()
	return p, nil
}

// command runs argv to its end, adds what it printed to log/<name>.log, and
// returns the log's last lines with a failure.
func (ps *processes) command(ctx context.Context, name string, argv ...string) error {
	path := filepath.Join(ps.logs, name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), ps.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, tail(path, 5))
	}
	return nil
}

// ended says how a child that should be running ended, nil while it runs.
func (p *process) ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %v\n%s", p.name, p.err, tail(p.log, 5))
	default:
		return nil
	}
}

// killWithin bounds the end of a process and all that it started.
const killWithin = 10 * time.Second

// close ends every child.
func (ps *processes) close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.all {
		if p.kill() == nil {
			<-p.done
			p.removeCgroup()
		}
	}
	close(ps.starts)
}

// tailLines is how much of each log a failed run prints.
const tailLines = 20

// tails prints the end of every log.
func (ps *processes) tails(w io.Writer) {
	logs, _ := filepath.Glob(filepath.Join(ps.logs, "*.log"))
	for _, log := range logs {
		fmt.Fprintf(w, "--- %s\n%s", log, tail(log, tailLines))
	}
}

// tail is the last n lines of a file, or why it cannot be read.
func tail(path string, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error() + "\n"
	}
	defer f.Close()
	var last []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if last = append(last, lines.Text()+"\n"); len(last) > n {
			last = last[1:]
		}
	}
	return strings.Join(last, "")
}
