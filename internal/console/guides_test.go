package console

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/roster"
)

// commandsOf lists the console's command lines in a document, without the
// comments behind them.
func commandsOf(t *testing.T, document string) (lines []string) {
	raw, err := os.ReadFile(document)
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		if command, ok := strings.CutPrefix(strings.TrimPrefix(line, "$ "), "console "); ok {
			command, _, _ = strings.Cut(command, " #")
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	return lines
}

func TestEveryCommandOfTheGuidesIsOne(t *testing.T) {
	public, _ := roster.GenerateKey()
	file := filepath.Join(t.TempDir(), "none.yaml")
	for name, value := range map[string]string{"CONTROL": "dir:///control", "ROSTER_KEY": roster.EncodeKey(public), "ROSTER_PRIVATE_KEY": "key"} {
		t.Setenv("REGIONHA_"+name, value)
	}
	n := 0
	for _, document := range []string{"operations.md", "running.md", "../README.md"} {
		for _, line := range commandsOf(t, filepath.Join("../../docs", document)) {
			n++
			var c commands
			app := config.App{Name: "console", File: file, Stdout: io.Discard, Stderr: io.Discard}
			_, err := config.Parse(&c, app, strings.Fields(line))
			require.NoError(t, err, "%s: console %s", document, line)
		}
	}
	require.Greater(t, n, 8)
}
