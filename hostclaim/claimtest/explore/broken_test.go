package explore_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim/claimtest/explore"
)

var update = flag.Bool("update", false, "write testdata/counterexamples.txt anew")

// without names the guard that hostclaim is built without, for a test binary
// that [TestBrokenVariants] built.
const without = "HOSTCLAIM_WITHOUT"

// enough is after how many states a broken variant counts as not found.
const enough = 20_000

// TestBrokenVariants takes each guard out of hostclaim, one at a time, in a copy
// that only the compiler sees, and lets the exploration find what breaks.
func TestBrokenVariants(t *testing.T) {
	if testing.Short() || os.Getenv(without) != "" {
		t.Skip("it builds and runs another test binary")
	}
	binary := build(t)
	var all strings.Builder
	for _, v := range variants {
		t.Run(v.guard, func(t *testing.T) {
			found := explored(t, binary, v.guard, v.boxes(), v.faults)
			require.NotEmpty(t, found, "no counterexample")
			fmt.Fprintf(&all, "Without the guard that %s:\n\n%s\n", v.guard, found)
		})
	}
	for _, d := range doubled {
		t.Run(d.guard, func(t *testing.T) {
			require.Empty(t, explored(t, binary, d.guard, 2, d.faults))
			fmt.Fprintf(&all, "Without the guard that %s nothing is found: %s.\n\n", d.guard, d.why)
		})
	}
	golden(t, "counterexamples.txt", strings.TrimSpace(all.String())+"\n")
}

// explored is the counterexample that a binary finds without a guard; "": none.
func explored(t *testing.T, binary, guard string, boxes, faults int) string {
	cmd := exec.Command(binary, "-test.run=^TestOneVariant$", fmt.Sprintf("-boxes=%d", boxes), fmt.Sprintf("-faults=%d", faults))
	cmd.Env = append(os.Environ(), without+"="+guard, "GOGC=400")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, found, _ := strings.Cut(string(out), begin)
	found, _, _ = strings.Cut(found, end)
	return found
}

const begin, end = "<counterexample>\n", "</counterexample>\n"

// TestOneVariant explores whatever hostclaim this binary was built with.
func TestOneVariant(t *testing.T) {
	if os.Getenv(without) == "" {
		t.Skip("it is for a binary without a guard")
	}
	g := explore.Explore(t, explore.Bounds{Boxes: *boxes, Faults: *faults, States: enough})
	if g.Failure != nil {
		fmt.Print(begin, g.Failure, end)
	}
}

// build makes a test binary in which each guard can be taken out.
func build(t *testing.T) string {
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	texts := map[string]string{"keep_guard.go": fmt.Sprintf(
		"package hostclaim\n\nimport \"os\"\n\nvar guardLeftOut = os.Getenv(%q)\n\nfunc keepGuard(guard string) bool { return guard != guardLeftOut }\n", without)}
	all := slices.Clone(variants)
	for _, d := range doubled {
		all = append(all, d.variant)
	}
	for _, v := range all {
		for _, e := range v.edits {
			text, ok := texts[e.file]
			if !ok {
				b, err := os.ReadFile(filepath.Join(root, e.file))
				require.NoError(t, err)
				text = string(b)
			}
			require.Equal(t, 1, strings.Count(text, e.old), "%s: %s in %s", v.guard, e.old, e.file)
			texts[e.file] = strings.Replace(text, e.old, strings.ReplaceAll(e.new, "KEEP", fmt.Sprintf("keepGuard(%q)", v.guard)), 1)
		}
	}
	replace := map[string]string{}
	for file, text := range texts {
		replace[filepath.Join(root, file)] = filepath.Join(dir, file)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	binary := filepath.Join(dir, "explore.test")
	out, err := exec.Command("go", "test", "-c", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

func golden(t *testing.T, name, got string) {
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
