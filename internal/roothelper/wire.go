package roothelper

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/machine"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/stopevidence"
)

// The bounds of what a peer may say. A host's record holds 64 KiB of arguments
// and as much of environment.
const (
	maxMessage     = 256 << 10 // bytes of a message
	maxArgs        = 256
	maxEnv         = 1024
	maxDescriptors = 512 // of either kind in a look
	maxText        = 512 // bytes of a text in an answer
)

// What a request may ask for. Spawn makes its connection the run's: the next
// three are asked on it, and when it ends the run is killed. Every other
// connection is over after one answer.
const (
	doHello     = "hello"
	doSpawn     = "spawn"
	doTerminate = "terminate"
	doListens   = "listens"
	doEnd       = "end"
	doStopped   = "writers-stopped"
	doCollect   = "collect"
)

// A request is one message of the agent. On a run's own connection it names no
// box and no host.
type request struct {
	V    int    `json:"v"`
	Do   string `json:"do"`
	Box  string `json:"box,omitempty"`
	Host string `json:"host,omitempty"`
	Run  *spec  `json:"run,omitempty"`  // of spawn, which also carries the output's descriptor
	Port int    `json:"port,omitempty"` // of listens
	Look *look  `json:"look,omitempty"` // of the two looks
}

type spec struct {
	Command []string `json:"command"`
	Dir     string   `json:"dir"`
	Env     []string `json:"env,omitempty"`
	UID     uint32   `json:"uid"`
	GID     uint32   `json:"gid"`
}

type look struct {
	Database   string       `json:"database"`
	Known      []descriptor `json:"known,omitempty"`
	Replicator []descriptor `json:"replicator,omitempty"` // of writers-stopped
}

type descriptor struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
	FD    int    `json:"fd"`
	Dev   uint64 `json:"dev"`
	Ino   uint64 `json:"ino"`
	Born  int64  `json:"born"`
	Path  string `json:"path"`
}

// A reply answers a request, or says on a run's connection that its first
// process exited.
type reply struct {
	V      int    `json:"v"`
	Do     string `json:"do"` // what was asked, or exited
	Fail   string `json:"fail,omitempty"`
	Error  string `json:"error,omitempty"`  // for people, where Fail is set
	Cgroup string `json:"cgroup,omitempty"` // of hello: the box's
	PID    int    `json:"pid,omitempty"`    // of spawn
	Status string `json:"status,omitempty"` // of end, on a run's connection
	Held   *held  `json:"held,omitempty"`   // where Fail is failHeld
	Seen   *seen  `json:"seen,omitempty"`   // of a look
}

const doExited = "exited"

// How a request failed: what its sender does next.
const (
	failOther      = "failed"
	failHeld       = "held"
	failIncomplete = "incomplete"
	failStranger   = "stranger"
)

type held struct {
	Cgroup  string   `json:"cgroup,omitempty"`
	Holders []holder `json:"holders,omitempty"`
	More    int      `json:"more,omitempty"`
}

type holder struct {
	PID     int    `json:"pid"`
	TID     int    `json:"tid"`
	Start   uint64 `json:"start"`
	Command string `json:"command"`
	FD      int    `json:"fd"`
	Path    string `json:"path"`
}

type seen struct {
	Checks []stopevidence.Check `json:"checks,omitempty"`
	BootID string               `json:"boot_id"`
	At     time.Time            `json:"at"`
}

// decodeRequest reads a connection's first message.
func decodeRequest(b []byte) (request, error) {
	r, err := record.Decode[request](b)
	if err == nil {
		err = r.check()
	}
	return r, err
}

// check holds a first request to its form. That it may be done is said by the
// server.
func (r request) check() error {
	if r.V != 1 {
		return fmt.Errorf("v is %d, want 1", r.V)
	}
	if err := boxid.CheckRef(r.Box); err != nil {
		return fmt.Errorf("box: %w", err)
	}
	want := request{V: r.V, Do: r.Do, Box: r.Box, Host: r.Host}
	switch r.Do {
	case doHello:
		want.Host = ""
	case doSpawn:
		want.Run = r.Run
	case doEnd:
	case doStopped, doCollect:
		want.Look = r.Look
	default:
		return fmt.Errorf("do is %.20q, which is not known", r.Do)
	}
	if r != want {
		return fmt.Errorf("%s: it says what only another request does", r.Do)
	}
	if r.Do == doHello {
		return nil
	}
	return r.checkHost()
}

func (r request) checkHost() error {
	if err := hostrecord.CheckHost(r.Host); err != nil {
		return err
	}
	switch r.Do {
	case doSpawn:
		return r.Run.check()
	case doStopped, doCollect:
		return r.Look.check(r.Do)
	}
	return nil
}

func (s *spec) check() error {
	switch {
	case s == nil:
		return errors.New("run is missing")
	case len(s.Command) == 0 || len(s.Command) > maxArgs:
		return fmt.Errorf("command has %d arguments, want 1 to %d", len(s.Command), maxArgs)
	case len(s.Env) > maxEnv:
		return fmt.Errorf("env has %d entries, want at most %d", len(s.Env), maxEnv)
	case s.UID == 0 || s.GID == 0:
		return fmt.Errorf("uid %d, gid %d: nothing is started as root", s.UID, s.GID)
	}
	for _, arg := range s.Command {
		if strings.Contains(arg, "\x00") {
			return errors.New("command holds a zero byte")
		}
	}
	for _, e := range s.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" || strings.Contains(e, "\x00") {
			return errors.New("env holds what is not NAME=value")
		}
	}
	if err := checkPath("command", s.Command[0]); err != nil {
		return err
	}
	return checkPath("dir", s.Dir)
}

func (l *look) check(do string) error {
	switch {
	case l == nil:
		return errors.New("look is missing")
	case len(l.Known) > maxDescriptors || len(l.Replicator) > maxDescriptors:
		return fmt.Errorf("look has %d and %d descriptors, want at most %d", len(l.Known), len(l.Replicator), maxDescriptors)
	case do == doCollect && l.Replicator != nil:
		return errors.New("collect: it exempts a replicator")
	}
	return checkPath("database", l.Database)
}

func checkPath(field, path string) error {
	if !filepath.IsAbs(path) || strings.Contains(path, "\x00") {
		return fmt.Errorf("%s is %.200q, want an absolute path", field, path)
	}
	return nil
}

func (l *look) subject() stopevidence.Subject {
	return stopevidence.Subject{Database: l.Database, Known: descriptors(l.Known)}
}

func descriptors(list []descriptor) []stopevidence.Descriptor {
	var out []stopevidence.Descriptor
	for _, d := range list {
		out = append(out, stopevidence.Descriptor{PID: d.PID, Start: d.Start, FD: d.FD, Dev: d.Dev, Ino: d.Ino, Born: d.Born, Path: d.Path})
	}
	return out
}

func wireDescriptors(list []stopevidence.Descriptor) []descriptor {
	var out []descriptor
	for _, d := range list {
		out = append(out, descriptor{PID: d.PID, Start: d.Start, FD: d.FD, Dev: d.Dev, Ino: d.Ino, Born: d.Born, Path: text(d.Path)})
	}
	return out
}

// failed is the answer to a request that was not done.
func failed(do string, err error) reply {
	r := reply{V: 1, Do: do, Fail: failOther, Error: text(err.Error())}
	var h *stopevidence.HeldError
	switch {
	case errors.As(err, &h):
		r.Fail, r.Held = failHeld, &held{Cgroup: text(h.Cgroup), More: h.More}
		for _, o := range h.Holders {
			r.Held.Holders = append(r.Held.Holders, holder{o.PID, o.TID, o.Start, text(o.Command), o.FD, text(o.Path)})
		}
	case errors.Is(err, stopevidence.ErrIncomplete):
		r.Fail = failIncomplete
	case errors.Is(err, machine.ErrStranger):
		r.Fail = failStranger
	}
	return r
}

// err is what failed said.
func (r reply) err() error {
	switch r.Fail {
	case "":
		return nil
	case failHeld:
		if r.Held == nil {
			return errors.New("the root helper names nothing that is held")
		}
		h := &stopevidence.HeldError{Cgroup: r.Held.Cgroup, More: r.Held.More}
		for _, o := range r.Held.Holders {
			h.Holders = append(h.Holders, stopevidence.Holder{PID: o.PID, TID: o.TID, Start: o.Start, Command: o.Command, FD: o.FD, Path: o.Path})
		}
		return h
	case failIncomplete:
		return fmt.Errorf("%w: root helper: %s", stopevidence.ErrIncomplete, r.Error)
	case failStranger:
		return fmt.Errorf("%w: root helper: %s", machine.ErrStranger, r.Error)
	}
	return fmt.Errorf("root helper: %s", r.Error)
}

// text makes what comes from the kernel fit a message.
func text(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxText)], "?")
}
