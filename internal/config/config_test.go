package config_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/roster"
)

type settings struct {
	config.Base
	config.Deployment
	DataDir string            `default:"/var/lib/regionha"`
	Sweep   time.Duration     `default:"30s"`
	Deep    bool              `help:"x"`
	Lists   []string          `help:"x"`
	Labels  map[string]string `help:"x"`
	Once    string            `env:"-"`
}

func parse(t *testing.T, file string, args ...string) (settings, string, error) {
	t.Helper()
	var s settings
	var out bytes.Buffer
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if file != "" {
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	}
	_, err := config.Parse(&s, config.App{Name: "agent", Description: "x", File: path, Stdout: &out, Stderr: &out}, args)
	return s, out.String(), err
}

var publicKey = roster.EncodeKey(ed25519.PublicKey(bytes.Repeat([]byte{7}, ed25519.PublicKeySize)))

func required(args ...string) []string {
	return append([]string{"--control", "dir:///c", "--roster-key", publicKey}, args...)
}

func TestFlagBeatsEnvironmentBeatsFileBeatsDefault(t *testing.T) {
	s, _, err := parse(t, "", required()...)
	require.NoError(t, err)
	require.Equal(t, "/var/lib/regionha", s.DataDir)

	file := "data-dir: /file\nsweep: 1m\n"
	s, _, err = parse(t, file, required()...)
	require.NoError(t, err)
	require.Equal(t, "/file", s.DataDir)
	require.Equal(t, time.Minute, s.Sweep)

	t.Setenv("REGIONHA_DATA_DIR", "/env")
	s, _, err = parse(t, file, required()...)
	require.NoError(t, err)
	require.Equal(t, "/env", s.DataDir)
	require.Equal(t, time.Minute, s.Sweep)

	s, _, err = parse(t, file, required("--data-dir", "/flag")...)
	require.NoError(t, err)
	require.Equal(t, "/flag", s.DataDir)
}

func TestTheFileHoldsEveryKindOfSetting(t *testing.T) {
	s, _, err := parse(t, "# a comment\ncontrol: dir:///c\nroster-key: \""+publicKey+"\"\ndeep: true\nlists: [a, \"b\"]\nlabels: {a: 1, b: x}\nlog-level: warn\n")
	require.NoError(t, err)
	require.True(t, s.Deep)
	require.Equal(t, []string{"a", "b"}, s.Lists)
	require.Equal(t, map[string]string{"a": "1", "b": "x"}, s.Labels)
	require.Equal(t, "WARN", s.LogLevel.String())
	require.Equal(t, ed25519.PublicKey(bytes.Repeat([]byte{7}, 32)), s.RosterKey.PublicKey)
}

func TestConfigNamesAnotherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	require.NoError(t, os.WriteFile(path, []byte("sweep: 9s\n"), 0o600))
	s, _, err := parse(t, "data-dir: /not-read\n", required("--config", path)...)
	require.NoError(t, err)
	require.Equal(t, 9*time.Second, s.Sweep)
	require.Equal(t, "/var/lib/regionha", s.DataDir)

	t.Setenv("REGIONHA_CONFIG", path)
	s, _, err = parse(t, "", required()...)
	require.NoError(t, err)
	require.Equal(t, 9*time.Second, s.Sweep)

	_, _, err = parse(t, "", required("--config", path+".absent")...)
	require.ErrorIs(t, err, os.ErrNotExist, "a file that was named must be there")
}

func TestWhatIsWrongIsAUsageErrorThatNamesIt(t *testing.T) {
	for _, row := range []struct {
		name, file string
		args       []string
		want       []string
	}{
		{"unknown key", "sweep: 1s\ncontrl: x\n", required(), []string{"agent.yaml", `line 2: unknown setting "contrl"`, "control"}},
		{"key twice", "sweep: 1s\nsweep: 2s\n", required(), []string{"agent.yaml", "sweep"}},
		{"once is for one run", "once: x\n", required(), []string{`unknown setting "once"`}},
		{"config in config", "config: x\n", required(), []string{`unknown setting "config"`}},
		{"no value", "sweep:\n", required(), []string{`setting "sweep"`, "line 1", "one value"}},
		{"nested", "lists: [[a]]\n", required(), []string{`setting "lists"`, "line 1"}},
		{"not a map", "- a\n", required(), []string{"line 1", "setting: value"}},
		{"not YAML", "a: [\n", required(), []string{"agent.yaml"}},
		{"too large", "# " + strings.Repeat("a", 1<<20), required(), []string{"at most 1048576"}},
		{"value in the file", "sweep: often\n", required(), []string{"--sweep", `"often"`}},
		{"value on the line", "", required("--sweep", "often"), []string{"--sweep", `"often"`}},
		{"unknown flag", "", required("--swep=1s"), []string{"--swep", "--sweep"}},
		{"level", "", required("--log-level", "loud"), []string{"--log-level", "loud"}},
		{"missing", "", nil, []string{"missing flags", "--control", "--roster-key"}},
		{"key is no key", "", []string{"--control", "x", "--roster-key", "AAAA"}, []string{"--roster-key", "roster public key: 3 bytes, expected 32"}},
		{"extra argument", "", required("x"), []string{"unexpected argument x"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, _, err := parse(t, row.file, row.args...)
			require.ErrorIs(t, err, config.ErrUsage)
			for _, want := range row.want {
				require.ErrorContains(t, err, want)
			}
			var stderr bytes.Buffer
			require.Equal(t, 2, config.Exit("agent", err, &stderr))
			require.Contains(t, stderr.String(), `Run "agent --help"`)
		})
	}
}

func TestHelpVersionAndCheckConfigAreAnswered(t *testing.T) {
	for arg, want := range map[string]string{
		"--help": "Store URL of the control bucket", "--version": "regionha agent", "--check-config": "the settings are good",
	} {
		args := []string{arg}
		if arg == "--check-config" {
			args = required(arg)
		}
		_, out, err := parse(t, "", args...)
		require.ErrorIs(t, err, config.ErrDone, arg)
		require.Contains(t, out, want)
		require.Equal(t, 0, config.Exit("agent", err, nil))
	}
	_, _, err := parse(t, "contrl: x\n", required("--check-config")...)
	require.ErrorContains(t, err, "contrl")
}

func TestExitCodes(t *testing.T) {
	var stderr bytes.Buffer
	require.Equal(t, 0, config.Exit("agent", nil, &stderr))
	require.Empty(t, stderr.String())
	require.Equal(t, 1, config.Exit("agent", errors.New("no"), &stderr))
	require.Equal(t, "agent: no\n", stderr.String())
	require.Equal(t, 2, config.ExitCode(fmt.Errorf("x: %w", config.ErrUsage)))
}

func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	pub, priv := roster.GenerateKey()
	pubFile, privFile := filepath.Join(dir, "roster.pub"), filepath.Join(dir, "roster.key")
	require.NoError(t, os.WriteFile(pubFile, []byte(roster.EncodeKey(pub)+"\n"), 0o600))
	require.NoError(t, os.WriteFile(privFile, []byte(roster.EncodeKey(priv)+"\n"), 0o600))

	var got config.PublicKey
	require.NoError(t, got.UnmarshalText([]byte(pubFile)))
	require.Equal(t, pub, got.PublicKey)
	gotPriv, err := config.LoadPrivateKey(privFile)
	require.NoError(t, err)
	require.Equal(t, priv, gotPriv)

	_, err = config.LoadPrivateKey(pubFile)
	require.ErrorContains(t, err, "32 bytes, expected 64")
	require.ErrorContains(t, got.UnmarshalText([]byte(privFile)), "64 bytes, expected 32")
}

func TestCertificatesOfAnotherCloudAreLogged(t *testing.T) {
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	certs, err := config.Deployment{}.Certs(log)
	require.NoError(t, err)
	require.Contains(t, certs, "eu-west-1")
	require.Empty(t, logged.String())
	_, err = config.Deployment{IdentityCerts: t.TempDir()}.Certs(log)
	require.ErrorContains(t, err, "no <region>.pem file")
	require.Contains(t, logged.String(), "not AWS's own")
}
