package regionha_test

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unwanted is what no text of the repository holds: dashes that a keyboard does
// not have, notes to oneself, and lines of decoration.
var unwanted = map[string]*regexp.Regexp{
	"an em dash":     regexp.MustCompile("\u2014|\u2013"),
	"a note to self": regexp.MustCompile(`(?m)(//|#).*\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`),
	"a banner":       regexp.MustCompile(`(?m)^\s*//\s*[-=*#]{4,}`),
}

func TestProse(t *testing.T) {
	walk(t, func(file string) {
		if !slices.Contains([]string{".go", ".md", ".py"}, path.Ext(file)) {
			return
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for what, pattern := range unwanted {
			if at := pattern.FindIndex(text); at != nil {
				t.Errorf("%s:%d holds %s", file, 1+strings.Count(string(text[:at[0]]), "\n"), what)
			}
		}
	})
}
