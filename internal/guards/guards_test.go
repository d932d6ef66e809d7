package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// TestTheTableListsEveryGuard keeps docs/guards.md honest at no cost: a guard
// that came, went or changed, or a test that was renamed, is a reason to run the
// command again.
func TestTheTableListsEveryGuard(t *testing.T) {
	const root = "../.."
	require.NoError(t, options{root: root, dirs: existing(root), check: true}.run(t.Context(), io.Discard))
}

// gate is a module of one package with a guard of each kind.
func gate(t *testing.T) options {
	t.Helper()
	fixture, err := txtar.ParseFile("testdata/gate.txtar")
	require.NoError(t, err)
	root := t.TempDir()
	require.NoError(t, txtar.Write(fixture, root))
	return options{root: root, dirs: []string{"gate"}, parallel: 2, timeout: time.Minute}
}

// edit replaces text in a file of the module.
func (o options) edit(t *testing.T, file, old, now string) {
	t.Helper()
	file = filepath.Join(o.root, file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte(old), []byte(now)), 0o600))
}

func (o options) outcome(t *testing.T) (string, error) {
	t.Helper()
	var out strings.Builder
	err := o.run(t.Context(), &out)
	return out.String(), err
}

const section = `
## gate

| guard | function | file | fails without it |
|---|---|---|---|
| ''err := g.check(); err != nil'' | ''Gate.Open'' | ''gate/gate.go'' | TestOpenChecks |
| ''g.second()'' | ''Gate.Open'' | ''gate/gate.go'' | none: The check above says so already. |
| ''g.Height < 0'' | ''Gate.check'' | ''gate/gate.go'' | TestHeight |
| ''g.Owner == nil, *g.Owner == ""'' | ''Gate.check'' | ''gate/gate.go'' | TestOwner |
| ''g.Width\|1 == 7 \|\| g.Width == 99'' | ''Gate.check'' | ''gate/gate.go'' | MISSING |
| ''g.Key == "a"'' | ''Gate.checkKey'' | ''gate/gate.go'' | TestOpenChecks |
| ''g.Key == "b"'' | ''Gate.checkKey'' | ''gate/gate.go'' | TestKey |
| ''len(g.Key) > 50'' | ''Gate.checkKey'' | ''gate/gate.go'' | TestProperty |
| ''g.Key == "a" (2)'' | ''Gate.checkKey'' | ''gate/gate.go'' | MISSING |
| ''done := make(chan bool); g.Key == "c"'' | ''Gate.checkKey'' | ''gate/gate.go'' | TestAcross |
`

func TestATable(t *testing.T) {
	o := gate(t)
	o.write = true
	out, err := o.outcome(t)
	require.EqualError(t, err, `MISSING: gate Gate.check: g.Width|1 == 7 || g.Width == 99`+"\n"+
		`MISSING: gate Gate.checkKey: g.Key == "a" (2)`)
	require.Equal(t, "gate: 10 guards\n", out)
	text, err := os.ReadFile(filepath.Join(o.root, tableFile))
	require.NoError(t, err)
	require.Equal(t, intro+strings.ReplaceAll(section, "''", "`"), string(text))

	t.Run("checked", func(t *testing.T) {
		o := o
		o.write, o.check = false, true
		_, err := o.outcome(t)
		require.EqualError(t, err, `gate Gate.check: g.Width|1 == 7 || g.Width == 99: the table says "MISSING"`+"\n"+
			`gate Gate.checkKey: g.Key == "a" (2): the table says "MISSING"`)
	})
	t.Run("verified", func(t *testing.T) {
		o := o
		o.write, o.verify = false, 100
		o.edit(t, tableFile, "none: The check above", "none: The check below")
		o.edit(t, tableFile, "TestAcross", "TestHeight")
		_, err := o.outcome(t)
		require.ErrorContains(t, err, `gate Gate.Open: g.second(): the table says "none: The check below says so already.", it is "none: The check above says so already."`)
		require.ErrorContains(t, err, `gate Gate.checkKey: done := make(chan bool); g.Key == "c": the table says "TestHeight", it is "TestAcross"`)
	})
	t.Run("checked against what changed", func(t *testing.T) {
		o := o
		o.write, o.check = false, true
		o.edit(t, "gate/gate.go", `len(g.Key) > 50`, `len(g.Key) > 49`)
		o.edit(t, "gate/gate_test.go", `TestOpenChecks`, `TestOpening`)
		o.edit(t, allowedFile, `g.second()`, `g.third()`)
		_, err := o.outcome(t)
		for _, want := range []string{
			`gate Gate.checkKey: len(g.Key) > 49: not in the table`,
			`gate Gate.checkKey: len(g.Key) > 50: only in the table`,
			`gate Gate.checkKey: g.Key == "a": the table says "TestOpenChecks"`,
			`gate Gate.Open: g.third(): allowed, but not in the source`,
			`gate Gate.Open: g.second(): the table says "none: The check below says so already."`,
		} {
			require.ErrorContains(t, err, want)
		}
	})
}

func TestAGuardThatATestNeedsIsNotAllowed(t *testing.T) {
	g := guard{file: "gate/gate.go", function: "Open", condition: "x"}
	_, err := settle(row{g, "TestX"}, map[string]string{"gate Open: x": "it is never so"})
	require.EqualError(t, err, "gate Open: x is allowed, but TestX fails without it")
}

func TestWhatIsAllowedHasAReason(t *testing.T) {
	o := gate(t)
	o.edit(t, allowedFile, "\tThe check above\n\tsays so already.\n", "")
	_, err := o.outcome(t)
	require.ErrorContains(t, err, "want both")
}

func TestASuiteThatFailsAnywayProvesNothing(t *testing.T) {
	o := gate(t)
	o.edit(t, "gate/gate_test.go", "Height: -1", "Height: 1")
	_, err := o.outcome(t)
	require.ErrorContains(t, err, "gate: TestHeight fails with every guard on")
}

func TestASampleIsSmaller(t *testing.T) {
	o := gate(t)
	sources, err := o.sources()
	require.NoError(t, err)
	require.Len(t, sources[0].sites, 10)
	sample(sources, 3)
	require.Len(t, sources[0].sites, 3)
}
