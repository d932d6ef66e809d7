package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// row is a line of the table: a guard, and the test that fails without it, or
// missing, or why there is none.
type row struct {
	guard
	test string
}

// missing stands where a test should.
const missing = "MISSING"

// because begins what stands instead of a test for a guard that is allowed.
const because = "none: "

// settle says in a row that no test failed for whether that is allowed. The
// error is for a person to act on.
func settle(r row, allowed map[string]string) (row, error) {
	reason, ok := allowed[r.guard.String()]
	switch {
	case r.test != "" && ok:
		return r, fmt.Errorf("%s is allowed, but %s fails without it", r.guard, r.test)
	case r.test != "":
		return r, nil
	case ok:
		return row{r.guard, because + reason}, nil
	}
	return row{r.guard, missing}, fmt.Errorf("%s: %s", missing, r.guard)
}

const intro = `# Guards

Each refusal of the packages below, and the first test that fails without it.
` + "`go run ./internal/guards -write`" + ` made this table: it turned each guard off and ran
the tests. The comment on that command says what counts as a guard.
`

var rowLine = regexp.MustCompile("(?m)^\\| `(.*)` \\| `(.*)` \\| `(.*)` \\| (.*) \\|$")

// format prints the table, a section for each package.
func formatTable(rows []row) []byte {
	out := []byte(intro)
	dir := ""
	for _, r := range rows {
		if d := path.Dir(r.file); d != dir {
			dir = d
			out = fmt.Appendf(out, "\n## %s\n\n| guard | function | file | fails without it |\n|---|---|---|---|\n", dir)
		}
		condition := strings.ReplaceAll(r.condition, "|", `\|`)
		out = fmt.Appendf(out, "| `%s` | `%s` | `%s` | %s |\n", condition, r.function, r.file, r.test)
	}
	return out
}

// readTable reads what a table says of each guard. The file may not exist.
func readTable(file string) (map[guard]string, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	table := map[guard]string{}
	for _, m := range rowLine.FindAllStringSubmatch(string(text), -1) {
		table[guard{condition: strings.ReplaceAll(m[1], `\|`, "|"), function: m[2], file: m[3]}] = m[4]
	}
	return table, nil
}

// readAllowed reads which guards need no test: a guard's name on one line, and
// below it, indented, why removing it changes nothing.
func readAllowed(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	allowed, name := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		switch reason := strings.TrimSpace(line); {
		case reason == "" || strings.HasPrefix(line, "#"):
		case strings.TrimLeft(line, " \t") == line:
			name = reason
			allowed[name] = ""
		default:
			allowed[name] = strings.TrimSpace(allowed[name] + " " + reason)
		}
	}
	for name, reason := range allowed {
		if reason == "" || name == "" {
			return nil, fmt.Errorf("%s: guard %q with reason %q: want both", file, name, reason)
		}
	}
	return allowed, nil
}

// check says what is wrong with a table, without running a test: it lists each
// guard of the source and no other, and a test that there is.
func check(sources []*source, table map[guard]string, allowed map[string]string) error {
	var wrong []error
	has, names := map[guard]bool{}, map[string]bool{}
	for _, s := range sources {
		for _, x := range s.sites {
			has[x.guard], names[x.String()] = true, true
			test, listed := table[x.guard]
			reason, ok := allowed[x.String()]
			switch {
			case !listed:
				wrong = append(wrong, fmt.Errorf("%s: not in the table", x))
			case ok && test != because+reason, !ok && !slices.Contains(s.plain, test) && !slices.Contains(s.prop, test):
				wrong = append(wrong, fmt.Errorf("%s: the table says %q", x, test))
			}
		}
	}
	for g := range table {
		if !has[g] {
			wrong = append(wrong, fmt.Errorf("%s: only in the table", g))
		}
	}
	for name := range allowed {
		if !names[name] {
			wrong = append(wrong, fmt.Errorf("%s: allowed, but not in the source", name))
		}
	}
	slices.SortFunc(wrong, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(wrong...)
}
