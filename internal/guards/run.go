package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// variable names, in a test binary's environment, the guard that is off.
const variable = "REGIONHA_GUARD_OFF"

// suite is the compiled tests of a package, each of whose guards can be off.
type suite struct {
	*source
	binary  string
	flags   []string
	timeout time.Duration
}

// compile builds the tests of s once, in tmp, over copies of its files in which
// each guard asks first whether it is off. The work tree is not touched.
func (s *source) compile(ctx context.Context, tmp string, checks int, timeout time.Duration) (*suite, error) {
	texts, err := s.weaken()
	if err != nil {
		return nil, err
	}
	replace := map[string]string{}
	for name, text := range texts {
		replace[filepath.Join(s.at, name)] = filepath.Join(tmp, name)
		if err := os.WriteFile(filepath.Join(tmp, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return nil, err
	}
	t := &suite{source: s, binary: filepath.Join(tmp, "tests.exe"), timeout: timeout}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", file, "-o", t.binary, ".")
	build.Dir = s.at
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", s.dir, err, out)
	}
	usage, _ := exec.CommandContext(ctx, t.binary, "-help").CombinedOutput() // its exit code says nothing
	if bytes.Contains(usage, []byte("-rapid.checks")) {
		t.flags = []string{"-rapid.checks=" + strconv.Itoa(checks), "-rapid.seed=1", "-rapid.shrinktime=0s", "-rapid.nofailfile"}
	}
	return t, nil
}

// weaken returns the package's files with a switch in each guard.
func (s *source) weaken() (map[string][]byte, error) {
	texts := map[string][]byte{
		"guard_off.go": fmt.Appendf(nil, "package %s\n\nimport \"os\"\n\nvar guardOff = os.Getenv(%q)\n", s.name, variable),
	}
	for i, x := range slices.Backward(s.sites) { // so that the offsets of those before hold
		name := filepath.Base(x.file)
		if texts[name] == nil {
			text, err := os.ReadFile(filepath.Join(s.at, name))
			if err != nil {
				return nil, err
			}
			texts[name] = text
		}
		for _, span := range slices.Backward(x.spans) {
			cond := fmt.Appendf(nil, "guardOff != \"%d\" && (%s)", i, texts[name][span[0]:span[1]])
			texts[name] = slices.Replace(texts[name], span[0], span[1], cond...)
		}
	}
	return texts, nil
}

// none is the number of no guard.
const none = -1

// killer returns the first test that fails while guard i is off, and "" if all
// pass: known, which failed before, then the plain tests, then the properties.
func (t *suite) killer(ctx context.Context, i int, known string) (string, error) {
	var before []string
	if slices.Contains(t.plain, known) || slices.Contains(t.prop, known) {
		before = []string{known}
	}
	for _, tests := range [][]string{before, t.plain, t.prop} {
		if len(tests) == 0 {
			continue
		}
		if failing, err := t.run(ctx, i, tests); failing != "" || err != nil {
			return failing, err
		}
	}
	return "", nil
}

var (
	failLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\w+)`)
	runLine  = regexp.MustCompile(`(?m)^=== RUN +(\w+)`)
)

func (t *suite) run(ctx context.Context, i int, tests []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout+10*time.Second)
	defer cancel()
	flags := []string{"-test.v", "-test.failfast", "-test.short", "-test.timeout=" + t.timeout.String(), "-test.run=^(" + strings.Join(tests, "|") + ")$"}
	cmd := exec.CommandContext(ctx, t.binary, append(flags, t.flags...)...)
	cmd.Dir = t.at
	cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(i), "TMPDIR="+filepath.Dir(t.binary))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "", nil
	}
	if failing := failLine.FindSubmatch(out); failing != nil {
		return string(failing[1]), nil
	}
	// It panicked outside a test, or took too long: the last to start did it.
	if started := runLine.FindAllSubmatch(out, -1); started != nil && ctx.Err() == nil {
		return string(started[len(started)-1][1]), nil
	}
	return "", errors.Join(fmt.Errorf("%s: %w\n%s", t.dir, err, out), ctx.Err())
}
