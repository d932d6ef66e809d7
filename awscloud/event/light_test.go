package event_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnEventIsReadWithoutTheSDK(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "regionha/termfence")
	for dep := range strings.Lines(string(out)) {
		require.NotContains(t, dep, "github.com/aws/")
	}
}
