package runner

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What Config.Listen may say.
const (
	ListenPort   = "port"   // PORT: a free port on 127.0.0.1
	ListenSocket = "socket" // LISTEN_SOCKET: the path of a unix socket
)

// KeySize is the length of an instance key in bytes.
const KeySize = 32

// Config says what to run and what it gets. The app's environment is PATH, HOME
// (its working directory), LANG, TZ, Env, and then PORT or LISTEN_SOCKET,
// DATABASE_PATH, FILES_DIR, CARLOS_INSTANCE_KEY, CARLOS_HOST, CARLOS_REGION and
// CARLOS_SESSION. Nothing of the agent's own environment is passed on, and the
// first four are the same on every box, so that an app does not change when it
// moves.
type Config struct {
	Host    string // the host's name
	Region  string // the placement code
	Session uint64 // the writer session; above 0

	Dir     string            // the host's directory, absolute; holds work/, log/ and run.json
	Command []string          // argv; the first is an absolute path
	User    string            // must be empty: the app runs as the agent does
	Env     map[string]string // the record's env; may replace PATH, HOME, LANG and TZ

	Listen      string // ListenPort or ListenSocket; ListenPort if empty
	Database    string // DATABASE_PATH, absolute
	Files       string // FILES_DIR, absolute
	InstanceKey []byte // KeySize bytes

	ReadyPath    string        // asked with GET; /healthz if empty
	StartTimeout time.Duration // from start to ready, else the run is ended; 30s if zero
	StopTimeout  time.Duration // from TERM to KILL; 10s if zero

	// Machine gives each run a cgroup of its own; nil: process groups only.
	Machine Machine

	LogSize int64 // bytes after which a log file is rotated; 10 MiB if zero
	Log     *slog.Logger

	pickPort func() (int, error) // tests choose ports; freePort if nil
}

// platform are the names that only the platform sets.
var platform = []string{"PORT", "LISTEN_SOCKET", "DATABASE_PATH", "FILES_DIR"}

const platformPrefix = "CARLOS_"

// withDefaults checks the configuration and fills in what is zero.
func (c Config) withDefaults() (Config, error) {
	if c.Listen == "" {
		c.Listen = ListenPort
	}
	if c.ReadyPath == "" {
		c.ReadyPath = "/healthz"
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = 30 * time.Second
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 10 * time.Second
	}
	if c.LogSize == 0 {
		c.LogSize = 10 << 20
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.pickPort == nil {
		c.pickPort = freePort
	}
	return c, c.check()
}

func (c Config) check() error {
	switch {
	case c.Host == "" || !filepath.IsLocal(c.Host) || strings.ContainsAny(c.Host, `/\`):
		return fmt.Errorf("host %q: want a DNS name", c.Host)
	case c.Session == 0:
		return errors.New("session is 0: an app runs only in an admitted session")
	case len(c.Command) == 0:
		return errors.New("command is empty")
	case c.User != "":
		return fmt.Errorf("user %q: running an app as another user: %w; leave user empty", c.User, errors.ErrUnsupported)
	case c.Listen != ListenPort && c.Listen != ListenSocket:
		return fmt.Errorf("listen %q: want %q or %q", c.Listen, ListenPort, ListenSocket)
	case len(c.InstanceKey) != KeySize:
		return fmt.Errorf("instance key has %d bytes, want %d", len(c.InstanceKey), KeySize)
	case !strings.HasPrefix(c.ReadyPath, "/"):
		return fmt.Errorf("ready_path %q: want a path that starts with /", c.ReadyPath)
	case c.StartTimeout < 0 || c.StopTimeout < 0 || c.LogSize < 0:
		return fmt.Errorf("start_timeout %s, stop_timeout %s, log size %d: want no negative value", c.StartTimeout, c.StopTimeout, c.LogSize)
	}
	paths := []struct{ name, path string }{
		{"command", c.Command[0]}, {"dir", c.Dir}, {"database", c.Database}, {"files", c.Files}}
	for _, p := range paths {
		if !filepath.IsAbs(p.path) {
			return fmt.Errorf("%s %q: want an absolute path", p.name, p.path)
		}
	}
	return c.checkEnv()
}

func (c Config) checkEnv() error {
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("env %q: not a name", name)
		case strings.Contains(c.Env[name], "\x00"):
			return fmt.Errorf("env %s: its value holds a zero byte", name)
		case slices.Contains(platform, name) || strings.HasPrefix(name, platformPrefix):
			return fmt.Errorf("env %s: only the platform sets it", name)
		}
	}
	return nil
}
