package runner

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func validConfig(t *testing.T) Config {
	dir := t.TempDir()
	return Config{Host: "notes.example", Region: "ie", Session: 3, Dir: dir,
		Command: []string{"/bin/true"}, Database: dir + "/db/app.db", Files: dir + "/files",
		InstanceKey: bytes.Repeat([]byte{0xfb}, KeySize), Log: slog.New(slog.DiscardHandler)}
}

func TestBadConfigurationIsRefusedByName(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"host ":                  func(c *Config) { c.Host = "" },
		`host "a/b"`:             func(c *Config) { c.Host = "a/b" },
		`host ".."`:              func(c *Config) { c.Host = ".." },
		"session":                func(c *Config) { c.Session = 0 },
		"command is empty":       func(c *Config) { c.Command = nil },
		`command "notes"`:        func(c *Config) { c.Command = []string{"notes"} },
		`user "bob"`:             func(c *Config) { c.User = "bob" },
		`listen "tcp"`:           func(c *Config) { c.Listen = "tcp" },
		"instance key has 2":     func(c *Config) { c.InstanceKey = []byte{1, 2} },
		"ready_path":             func(c *Config) { c.ReadyPath = "healthz" },
		"negative":               func(c *Config) { c.StopTimeout = -1 },
		`database "app.db"`:      func(c *Config) { c.Database = "app.db" },
		`files ""`:               func(c *Config) { c.Files = "" },
		"env CARLOS_HOST":        func(c *Config) { c.Env = map[string]string{"CARLOS_HOST": "x"} },
		"env CARLOS_ANY":         func(c *Config) { c.Env = map[string]string{"CARLOS_ANY": "x"} },
		"env DATABASE_PATH":      func(c *Config) { c.Env = map[string]string{"DATABASE_PATH": "x"} },
		"env PORT":               func(c *Config) { c.Env = map[string]string{"PORT": "1"} },
		`env "A=B"`:              func(c *Config) { c.Env = map[string]string{"A=B": "1"} },
		"env A: its value holds": func(c *Config) { c.Env = map[string]string{"A": "\x00"} },
	} {
		t.Run(want, func(t *testing.T) {
			c := validConfig(t)
			change(&c)
			_, err := Start(c)
			require.ErrorContains(t, err, want)
			require.NoDirExists(t, filepath.Join(c.Dir, "work"), "nothing is written")
		})
	}
}

func TestAnotherUserIsUnsupported(t *testing.T) {
	c := validConfig(t)
	c.User = "bob"
	_, err := Start(c)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestTheEnvironmentIsWhatTheDesignNames(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the agent's own")
	c := validConfig(t)
	c.Env = map[string]string{"LOG_LEVEL": "info", "TZ": "Europe/Dublin"}
	require.Equal(t, []string{
		"CARLOS_HOST=notes.example",
		"CARLOS_INSTANCE_KEY=" + strings.Repeat("-_v7", 10) + "-_s=",
		"CARLOS_REGION=ie",
		"CARLOS_SESSION=3",
		"DATABASE_PATH=" + c.Database,
		"FILES_DIR=" + c.Files,
		"HOME=" + c.Dir + "/work",
		"LANG=C.UTF-8",
		"LOG_LEVEL=info",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"PORT=8123",
		"TZ=Europe/Dublin",
	}, c.environ(listener{env: "PORT", value: "8123"}))
}

func TestASocketPathThatNoAddressHoldsIsRefused(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("d", maxSocketPath))
	require.NoError(t, os.Mkdir(long, 0o700))
	t.Setenv("TMPDIR", long)
	_, err := Config{Listen: ListenSocket}.newListener()
	require.ErrorContains(t, err, "TMPDIR")
	left, err := os.ReadDir(long)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestTheLogIsRotatedBySizeAndKeepsTheNewest(t *testing.T) {
	dir := t.TempDir()
	l, err := openLog(dir, 10, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for i := range 8 {
		fmt.Fprintf(l, "line %d\n", i)
	}
	require.NoError(t, l.Close())
	for name, want := range map[string]string{"app.log": "line 7\n", "app.log.1": "line 6\n", "app.log.4": "line 3\n"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got), name)
	}
	require.NoFileExists(t, filepath.Join(dir, "app.log.5"))
}

func TestALogThatCannotBeWrittenNeverFailsTheApp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	var warned bytes.Buffer
	l, err := openLog(dir, 10, slog.New(slog.NewTextHandler(&warned, nil)))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	for range 3 {
		n, err := l.Write([]byte("too long for one file\n"))
		require.NoError(t, err)
		require.Equal(t, 22, n)
	}
	require.Equal(t, 1, strings.Count(warned.String(), "dropped"))
	require.NoError(t, l.Close())
}

func TestZeroValuesMeanTheDocumentedDefaults(t *testing.T) {
	c, err := validConfig(t).withDefaults()
	require.NoError(t, err)
	require.Equal(t, ListenPort, c.Listen)
	require.Equal(t, "/healthz", c.ReadyPath)
	require.Equal(t, 30*time.Second, c.StartTimeout)
	require.Equal(t, 10*time.Second, c.StopTimeout)
	require.EqualValues(t, 10<<20, c.LogSize)
}
