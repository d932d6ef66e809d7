package agent

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/config"
)

// TestEveryCrashPointIsInTheCodeOnce and nothing that the code calls one is
// missing in the list: the drain test kills a box at each that is listed.
func TestEveryCrashPointIsInTheCodeOnce(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var found []string
	for _, name := range sources {
		body, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\.crash\("([a-z-]+)"\)`).FindAllStringSubmatch(string(body), -1) {
			found = append(found, m[1])
		}
	}
	require.ElementsMatch(t, CrashPoints(), found)
}

func TestAnUnknownCrashPointIsAUsageError(t *testing.T) {
	set := Settings{BoxSettings: BoxSettings{Box: "box-1", Region: "ie", DataDir: "/data", Crash: "nowhere"}}
	require.ErrorIs(t, set.check(), config.ErrUsage)
	set.Crash = "fenced"
	require.NoError(t, set.check())
}
